"""The command line `oeb`: thin wrappers of run.py and the scorers.

Results go to standard output, everything else to standard error. Exit codes: 0 done; 1 all documents of a Run
failed, or a fault of ours; 2 the request; 3 the account; 4 a gate not met; 5 storage; 129, 130 and 143 interrupted.
"""

from __future__ import annotations

import argparse
import errno
import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from . import __version__
from .errors import OebError, RequestError, Stopped, suggestion
from .jsontext import printable, read_json

if TYPE_CHECKING:
    from .run import Outcome
    from .runstate import RunState

EPILOG = (
    "exit codes: 0 done, 1 all documents of a run failed, or a fault of ours, 2 request, 3 account, 4 gate not met, "
    "5 storage, 129/130/143 stopped"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns the exit code."""
    return ended(lambda: _run(arguments))


def ended(command: Callable[[], int]) -> int:
    """The exit code of a command; its errors are printed as one message, never as a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # whatever a terminal cannot say
    try:
        code = command()
        sys.stdout.flush()
        return code
    except OebError as error:
        print(f"oeb: {printable(str(error))}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing more can be said
        return 0
    except KeyboardInterrupt:
        print("oeb: interrupted; the same command goes on where this ended", file=sys.stderr)
        return 130
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EIO):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"oeb: cannot write the output: {error.strerror}", file=sys.stderr)
        return 5


def _run(arguments: Sequence[str] | None) -> int:
    parser = _parser()
    given, rest = parser.parse_known_args(arguments)
    # key=value may stand anywhere, also where argparse has stopped to look for it.
    flags = [word for word in rest if "=" not in word or word.startswith("-") or not hasattr(given, "overrides")]
    if flags:
        known = [word for word in given.flags if word.startswith("--")]
        raise RequestError(f"{given.called}: {flags[0]!r} is not understood; {suggestion(flags[0], known)}")
    if hasattr(given, "overrides"):
        given.overrides = [*given.overrides, *rest]
        names = given.providers or []
        given.overrides += [word for word in names if "=" in word]
        given.providers = [word for word in names if "=" not in word] or None
        if "=" in (given.retry_failed or ""):
            given.overrides.append(given.retry_failed)
            given.retry_failed = "transient"
        place = {word: at for at, word in enumerate(sys.argv if arguments is None else arguments)}
        given.overrides.sort(key=lambda word: place.get(word, 0))  # the last word counts, as it does for Hydra
    code: int = given.command(given)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="oeb", description="Benchmark document extraction, value by value.", epilog=EPILOG
    )
    parser.add_argument("--version", action="version", version=f"oeb_ray {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_score(commands)
    _add_benchmark(commands)
    _add_providers(commands)
    _add_corpus(commands)
    _add_simulate(commands)
    return parser


def _command(commands: Any, name: str, help: str, example: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=help,
        description=help,
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(called=f"oeb {name}", flags=parser._option_string_actions)
    return parser


# --- score --------------------------------------------------------------------------------------------------------


def _add_score(commands: Any) -> None:
    parser = _command(
        commands, "score", "Grade one prediction against one gold document.",
        "oeb score --pred pred.json --gt gold.json --schema schema.json | jq .accuracy",
    )  # fmt: skip
    parser.add_argument("--pred", required=True, metavar="FILE", help="the prediction")
    parser.add_argument("--gt", required=True, metavar="FILE", help="the gold document")
    parser.add_argument("--schema", required=True, metavar="FILE", help="the JSON Schema both answer to")
    parser.add_argument(
        "--order-matters", nargs="*", default=[], metavar="ARRAY", help="arrays whose order counts, such as steps"
    )
    parser.add_argument("--verdicts", action="store_true", help="also what happened at every address")
    parser.set_defaults(command=_score)


def _score(given: argparse.Namespace) -> int:
    from .scoring.field_matching import score

    pred, gold, schema = (_json_file(path) for path in (given.pred, given.gt, given.schema))
    try:
        result = score(pred, gold, schema, order_matters=given.order_matters, verdicts=given.verdicts)
    except (TypeError, ValueError) as error:
        raise RequestError(str(error)) from error
    if given.verdicts:
        result["verdicts"] = [verdict._asdict() for verdict in result["verdicts"]]
    _print_json(result)
    return 0


def _json_file(path: str) -> Any:
    try:
        with open(path, "rb") as stream:
            return read_json(stream.read())
    except OSError as error:
        raise RequestError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise RequestError(f"{path} is no JSON: {error}") from error


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2))  # ASCII: any terminal, any encoding


# --- benchmark ----------------------------------------------------------------------------------------------------


def _add_benchmark(commands: Any) -> None:
    parser = _command(
        commands, "benchmark", "Predict a corpus with every provider and option set, and score it; resumes.",
        "oeb benchmark --providers pdftext --out runs/ --limit 4",
    )  # fmt: skip
    parser.add_argument("--providers", nargs="+", metavar="NAME", help="providers to run; see oeb providers")
    parser.add_argument("--options", metavar="JSON|FILE", help='per provider, such as {"replay": [{"system": "a"}]}')
    parser.add_argument("--out", metavar="DIR|URL", help="where runs go; default runs")
    parser.add_argument("--manifest", metavar="FILE|URL", help="a corpus of your own; default the sample corpus")
    parser.add_argument("--data-root", metavar="DIR|URL", help="where the manifest's relative paths start")
    parser.add_argument("--suites", nargs="+", metavar="SUITE", help="these suites only")
    parser.add_argument("--only", nargs="+", metavar="DOC_ID", help="these documents only")
    parser.add_argument("--limit", type=int, metavar="N", help="the first N documents; 0: all")
    parser.add_argument("--timeout", type=float, metavar="S", help="seconds one document may take; default 1800")
    parser.add_argument("--score-workers", type=int, metavar="N", help="processors used; default all")
    parser.add_argument("--no-verdicts", action="store_true", help="write no verdicts")
    parser.add_argument("--rescore", action="store_true", help="score every document again")
    parser.add_argument("--score-only", action="store_true", help="score what is recorded, call no provider")
    parser.add_argument("--retry-failed", nargs="?", const="transient", metavar="transient|all",
                        help="ask documents again that failed")  # fmt: skip
    parser.add_argument("--predict-stale", action="store_true", help="ask again where document or schema have changed")
    parser.add_argument("--dry-run", action="store_true", help="print the plan and stop")
    parser.add_argument("--config-dir", metavar="DIR", help="more configs: a folder with provider/, corpus/ and so on")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="any value of the config")
    parser.set_defaults(command=_benchmark)


def _benchmark(given: argparse.Namespace) -> int:
    from .config import composed, read_job

    config = composed(_overrides(given), given.config_dir)
    return run_and_print(read_job(config, _values(given)), dry_run=given.dry_run)


def _overrides(given: argparse.Namespace) -> list[str]:
    """The groups that flags choose; single values follow in `_values`, since they need no quoting there."""
    chosen = []
    if given.manifest:
        chosen.append("corpus=manifest")
    if given.providers:
        # Names that commands and shells give are already separate; Hydra's list syntax takes them quoted.
        chosen.append("provider=[" + ",".join(f"'{name}'" for name in given.providers) + "]")
    wrong = [word for word in given.overrides if "=" not in word and not word.startswith("~")]
    if wrong:
        raise RequestError(f"{wrong[0]!r} is no key=value; lists end where the next flag starts")
    return [*chosen, *given.overrides]


def _values(given: argparse.Namespace) -> dict[str, Any]:
    """Flags that are there, by config key."""
    values = {
        "storage.root": given.out,
        "corpus.manifest": given.manifest,
        "corpus.data_root": given.data_root,
        "suites": given.suites,
        "only": given.only,
        "limit": given.limit,
        "timeout": given.timeout,
        "cluster.cpus": given.score_workers,
        "verdicts": False if given.no_verdicts else None,
        "rescore": given.rescore or None,
        "score_only": given.score_only or None,
        "retry_failed": given.retry_failed,
        "predict_stale": given.predict_stale or None,
    }
    for provider, options in _options(given.options).items():
        values[f"providers/{provider}/options"] = options
    return {key: value for key, value in values.items() if value is not None}


def _options(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    data = text.encode("utf-8", "surrogateescape")
    if not text.lstrip().startswith("{"):
        options = _json_file(text)
    else:
        try:
            options = read_json(data)
        except ValueError as error:
            raise RequestError(f"--options is no JSON: {error}") from error
    if not isinstance(options, dict):
        raise RequestError('--options wants an object by provider, such as {"replay": [{"system": "a"}]}')
    return options


def run_and_print(job: Any, *, dry_run: bool = False) -> int:
    """Plans and runs a Job, shows it to people, and returns the exit code."""
    from . import progress, run
    from .signals import noted_interrupts

    plan = run.plan_job(job)
    screen = progress.Screen(sys.stdout if dry_run else sys.stderr)
    for warning in plan.warnings:
        screen.note(f"warning: {warning}")
    for made in plan.runs:
        for doc_id, why in made.stale if not job.predict_stale else ():
            screen.note(f"stale: {made.run.name}: {doc_id}: {why}; predict_stale=true asks again")
    screen.note(f"out        {plan.out}")
    screen.note(f"corpus     {plan.corpus.identity}")
    screen.note(f"documents  {len(plan.corpus.selected)} of {len(plan.corpus)} selected")
    screen.console.print(progress.plan_text(plan))
    if dry_run:
        return 0
    states: list[RunState] = []
    recorder = progress.Recorder(screen, states)
    with noted_interrupts() as interrupts:
        cluster = run.start_cluster(job, idle=plan.is_done())
        interrupts.install()  # Ray has put its own handler in place
        try:
            with screen:
                outcome = run.execute(plan, cluster, recorder, interrupts)
        except Stopped as stopped:
            screen.note(progress.last_line(states, screen.elapsed()))
            screen.note("stopped; the same command goes on where this ended")
            return stopped.exit_code
        finally:
            cluster.close()
    _print_outcome(outcome, plan.out, screen.elapsed())
    for name, error in outcome.stopped.items():
        screen.note(f"{name}: {error}")
    if outcome.stopped:
        screen.note("the same command goes on once that is mended")
        return next(iter(outcome.stopped.values())).exit_code
    return 1 if any(summary["documents"] and not summary["scored"] for summary in outcome.summaries.values()) else 0


def _print_outcome(outcome: Outcome, out: str, seconds: float) -> None:
    from rich.console import Console

    from . import progress

    console = Console(highlight=False, width=None if sys.stdout.isatty() else 200)  # a pipe has no width to fit
    console.print(progress.summary_table(outcome.states, console.width))
    for state in outcome.states:
        if state.errors:
            print(printable(progress.errors_line(state)))
    print(progress.last_line(outcome.states, seconds))
    for name in outcome.summaries:
        print(f"{out}/{name}")


# --- providers and corpus -----------------------------------------------------------------------------------------


def _add_providers(commands: Any) -> None:
    parser = _command(commands, "providers", "The providers, or what one of them takes.", "oeb providers datalab")
    parser.add_argument("name", nargs="?", help="a provider, or a model id org/model")
    parser.set_defaults(command=_providers)


def _providers(given: argparse.Namespace) -> int:
    import dataclasses

    from .providers.contract import NoOptions
    from .providers.registry import ALL_PROVIDERS, OFFLINE, settings_class, settings_for

    if given.name is None:
        print("\n".join(ALL_PROVIDERS))
        print("any OpenRouter model id org/model, such as openai/gpt-5.6-sol")
        return 0
    kind = settings_class(given.name)
    options = OFFLINE[given.name].Options if given.name in OFFLINE else NoOptions
    print(given.name)
    if given.name not in OFFLINE:
        print("this version knows its settings, and so names its runs, but cannot call it yet")
    for title, fields in (("settings, in the name of the run", kind), ("run options, not in the name", options)):
        rows = list(dataclasses.fields(fields))
        if rows:
            print(f"{title}:")
        required = {field.name for field in rows if field.default is dataclasses.MISSING}
        values = {} if required or fields is options else settings_for(given.name)
        for field in rows:
            default = "(must be given)" if field.name in required else repr(values.get(field.name, field.default))
            more = [
                field.metadata.get("help", ""),
                *(["one of " + ", ".join(field.metadata["choices"])] if field.metadata.get("choices") else []),
            ]
            unit = f" {field.metadata['unit']}" if field.metadata.get("unit") else ""
            print(f"  {field.name} = {default}{unit}  {'; '.join(more)}")
    return 0


def _add_corpus(commands: Any) -> None:
    parser = _command(
        commands, "corpus", "Look at a corpus before anything is paid for.", "oeb corpus check my/manifest.parquet"
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    check = _command(actions, "check", "All faults of a manifest, and what its golds say that their schemas do not.",
                     "oeb corpus check my/manifest.parquet --data-root my/")  # fmt: skip
    check.add_argument("manifest", nargs="?", help="path or URL; default the sample corpus")
    check.add_argument("--data-root", metavar="DIR|URL")
    check.set_defaults(command=_corpus_check)


def _corpus_check(given: argparse.Namespace) -> int:
    from collections import Counter

    from .config import sample_manifest
    from .corpus.check import check_golds
    from .corpus.manifest import load

    corpus = load(given.manifest or sample_manifest(), data_root=given.data_root)
    notes, unusable = check_golds(corpus)
    for note in notes:
        print(printable(note))
    suites = ", ".join(f"{suite} {count}" for suite, count in sorted(Counter(corpus.suites).items()))
    print(f"{len(corpus)} documents: {suites}")
    if unusable:
        print(f"{unusable} golds cannot be scored against")
    return 4 if unusable else 0


# --- simulate -----------------------------------------------------------------------------------------------------


def _add_simulate(commands: Any) -> None:
    parser = _command(
        commands, "simulate", "A server on loopback that speaks the vendors' protocols, with dials for faults.",
        "oeb simulate --profile profile.json --port 8099",
    )  # fmt: skip
    parser.add_argument("--profile", required=True, metavar="FILE", help="answers, documents and dials as JSON")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="0: any free one; the address is printed")
    parser.set_defaults(command=_simulate)


def _simulate(given: argparse.Namespace) -> int:
    from .simulator import Profile, serve

    serve(Profile.from_file(given.profile), given.port)
    return 0
