"""`oeb benchmark`: flags become config values, and the config a job."""

from __future__ import annotations

import argparse
from typing import Any

from ..errors import RequestError
from ..jsontext import read_json
from ..providers.models import EXAMPLES, GROUP
from .base import declare, json_file
from .job import run_and_print


def add(commands: Any) -> None:
    """Declares `oeb benchmark`."""
    parser = declare(
        commands, "benchmark", "Predict a corpus with every provider and option set, and score it; resumes.",
        "oeb benchmark --providers pdftext --out runs/ --limit 4 corpus=sample",
    )  # fmt: skip
    parser.add_argument("--providers", nargs="+", metavar="NAME",
                        help=f"providers to run, see oeb providers; models by id, such as {EXAMPLES[0]}")  # fmt: skip
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
    parser.add_argument("--repeats", type=int, metavar="N", help="run every option set N times, for its stability")
    parser.add_argument("--dry-run", action="store_true", help="print the plan and why, and stop")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask before beginning")
    parser.add_argument("--config-dir", metavar="DIR", help="more configs: a folder with provider/, corpus/ and so on")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="any value of the config")
    parser.set_defaults(command=_benchmark)


def _benchmark(given: argparse.Namespace) -> int:
    from ..config import composed, read_job

    config = composed(_overrides(given), given.config_dir)
    return run_and_print(read_job(config, _values(given)))


def _overrides(given: argparse.Namespace) -> list[str]:
    """The groups that flags choose; single values follow in `_values`, since they need no quoting there."""
    chosen = []
    if given.manifest:
        chosen.append("corpus=manifest")
    if given.providers:
        # Names that commands and shells give are already separate; Hydra's list syntax takes them quoted.
        groups = dict.fromkeys(GROUP if "/" in name else name for name in given.providers)
        chosen.append("provider=[" + ",".join(f"'{name}'" for name in groups) + "]")
    wrong = [word for word in given.overrides if "=" not in word and not word.startswith("~")]
    if wrong:
        raise RequestError(f"{wrong[0]!r} is no key=value; lists end where the next flag starts")
    return [*chosen, *given.overrides]


def _values(given: argparse.Namespace) -> dict[str | tuple[str, ...], Any]:
    """Flags that are there, by config key."""
    models = [name for name in given.providers or () if "/" in name]
    values: dict[str | tuple[str, ...], Any] = {
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
        "repeats": given.repeats,
        "dry_run": given.dry_run or None,
        "confirm": False if given.yes else None,
        f"providers.{GROUP}.models": models or None,
    }
    for name, options in _options(given.options).items():
        place = (GROUP, "options", name) if "/" in name else (name, "options")
        values["providers", *place] = options
    return {key: value for key, value in values.items() if value is not None}


def _options(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    data = text.encode("utf-8", "surrogateescape")
    if not text.lstrip().startswith("{"):
        options = json_file(text)
    else:
        try:
            options = read_json(data)
        except ValueError as error:
            raise RequestError(f"--options is no JSON: {error}") from error
    if not isinstance(options, dict):
        raise RequestError('--options wants an object by provider, such as {"replay": [{"system": "a"}]}')
    return options
