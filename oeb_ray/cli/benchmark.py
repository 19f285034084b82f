"""`oeb benchmark`: flags become config values, and the config a job."""

from __future__ import annotations

import argparse
from typing import Any

from ..errors import RequestError
from ..providers.models import EXAMPLES
from .base import declare, json_object, take_overrides
from .job import run_and_print


def add(commands: Any) -> None:
    """Declares `oeb benchmark`."""
    parser = declare(
        commands, "benchmark", "Predict a corpus with every provider and option set, and score it; resumes.",
        "oeb benchmark --providers pdftext --out runs/ --limit 4 corpus=sample",
    )  # fmt: skip
    parser.add_argument("--providers", nargs="+", metavar="NAME",
                        help=f"providers to run, see oeb providers; models by id, such as {EXAMPLES[0]}")  # fmt: skip
    parser.add_argument("--options", metavar="JSON|FILE", help='per provider, such as {"datalab": {"mode": "fast"}}')
    parser.add_argument("--out", metavar="DIR|URL", help="where runs go; default runs")
    parser.add_argument("--manifest", metavar="FILE|URL", help="a corpus of your own")
    parser.add_argument("--repo", metavar="ORG/NAME[@REV]",
                        help="a dataset of the Hugging Face hub; default datalab-to/omni_extract_bench")  # fmt: skip
    parser.add_argument("--data-root", metavar="DIR|URL",
                        help="where the manifest's relative paths start, or the dataset is fetched to")  # fmt: skip
    parser.add_argument("--suites", nargs="+", metavar="SUITE", help="these suites only")
    parser.add_argument("--only", nargs="+", metavar="DOC_ID", help="these documents only")
    parser.add_argument("--limit", type=int, metavar="N", help="the first N documents; 0: all")
    parser.add_argument("--timeout", type=float, metavar="S", help="seconds one document may take; default 1800")
    parser.add_argument("--predict-workers", metavar="N|NAME=N,...",
                        help="documents in flight per provider; 0: its own number")  # fmt: skip
    parser.add_argument("--score-workers", type=int, metavar="N", help="processors used; default and 0: all")
    parser.add_argument("--max-usd", metavar="N|NAME=N,...", help="dollars that each run may spend")
    parser.add_argument("--no-verdicts", action="store_true", help="write no verdicts")
    parser.add_argument("--rescore", action="store_true", help="score every document again")
    parser.add_argument("--score-only", action="store_true", help="score what is recorded, call no provider")
    parser.add_argument("--retry-failed", nargs="?", const="transient", metavar="transient|all",
                        help="ask documents again that failed")  # fmt: skip
    parser.add_argument("--predict-stale", action="store_true", help="ask again where document or schema have changed")
    parser.add_argument("--repeats", type=int, metavar="N", help="run every option set N times, for its stability")
    parser.add_argument("--dry-run", action="store_true", help="print the plan and why, and stop")
    parser.add_argument("--timings", action="store_true", help="say at the end where the time went")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask before beginning")
    parser.add_argument("--config-dir", metavar="DIR", help="more configs: a folder with provider/, corpus/ and so on")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="any value of the config")
    parser.set_defaults(command=_benchmark, take=take_overrides)


def _benchmark(given: argparse.Namespace) -> int:
    from ..request import job_of, numbers_by_name

    wrong = [word for word in given.overrides if "=" not in word and not word.startswith("~")]
    if wrong:
        raise RequestError(f"{wrong[0]!r} is no key=value; lists end where the next flag starts")
    job = job_of(
        given.providers,
        json_object("--options", given.options, 'by provider, such as {"datalab": {"mode": "fast"}}'),
        _values(given),
        in_flight=numbers_by_name("--predict-workers", given.predict_workers),
        max_usd=numbers_by_name("--max-usd", given.max_usd),
        manifest=given.manifest,
        repo=given.repo,
        data_root=given.data_root,
        overrides=given.overrides,
        config_dir=given.config_dir,
    )
    return run_and_print(job)


def _values(given: argparse.Namespace) -> dict[str, Any]:
    """Flags that stand for one value, by config key; None where there is no flag."""
    return {
        "storage.root": given.out,
        "suites": given.suites,
        "only": given.only,
        "limit": given.limit,
        "timeout": given.timeout,
        "cluster.cpus": given.score_workers or None,
        "verdicts": False if given.no_verdicts else None,
        "rescore": given.rescore or None,
        "score_only": given.score_only or None,
        "retry_failed": given.retry_failed,
        "predict_stale": given.predict_stale or None,
        "repeats": given.repeats,
        "dry_run": given.dry_run or None,
        "timings": given.timings or None,
        "confirm": False if given.yes else None,
    }
