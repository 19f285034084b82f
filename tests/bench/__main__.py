"""All benchmarks, and BENCHMARKS.md: ``python -m tests.bench``, or ``make bench``.

Makes the corpora and the peers' environments under ``--work``, runs the pairs, then what measures the runner. What was
measured is kept there, so that ``--cases`` measures a few cases again and the rest of the report stays.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import textwrap
from pathlib import Path

from .corpora import generated, read_corpus, write_case
from .pairs import PEERS, ROOT, environment, load, measure, save
from .report import markdown, plot, series

# Cases with the least ratio that we hold ourselves to; " verdicts": into Parquet.
GOALS: dict[str, float] = {
    "field_matching small": 16,
    "field_matching mix": 16,
    "field_matching mix verdicts": 14,
    "field_matching corpus": 11,
    "field_matching flat 1000": 13,
    "field_matching flat 2000": 10,
    "field_matching flat 5000": 16,
    "field_matching nested 100": 30,
    "field_matching nested 400": 100,
    "field_matching nested 1000": 180,
    "field_matching twins 1000": 15,
    "field_matching twins 2000": 12,
    "value_f1 vectors": 5,
    "value_f1 small": 5,
    "value_f1 mix": 5,
    "value_f1 flat 500": 5,
    "value_f1 flat 2000": 5,
    "value_f1 flat 5000": 5,
}
OTHERS = ("value_f1 corpus",)
REASONS: dict[str, str] = {  # of goals that are missed, as far as profiles tell
    "field_matching small": "met on another machine (18.8): a document takes 2 ms here, spread evenly over reading, "
    "keys and pairing, and no module has more than a tenth of it",
    "field_matching mix verdicts": "beside scoring there are the texts of all values and addresses, and Parquet itself",
    "field_matching nested 400": "what is paid once per table is seen here; the peer's time grows with the square",
    "field_matching nested 1000": "pairing to the peer's own choice among equals; see where its time goes, below",
}
ALONE = ("field_matching flat 20000", "field_matching nested 500", "field_matching nested 5000")  # growth, no peer
NOTES = {  # what explains the figures of the runner's parts, as far as timings tell
    "runner": "Beyond scoring a job of this size pays what does not grow with it: the command and its plan "
    "(`starting`), the connection (`Ray`), and workers, which belong to one job in Ray and begin anew with it, Python "
    "and packages included (`predicting`, until the first batch is back). On two processors the driver shares them "
    "with two workers, and each worker begins on its own: that is what two lack of twice one. Ray does not start "
    "beside the plan in a thread, since its processes end with the thread that started them."
}
PROFILED = {"mix": "the mix", "flat 5000": "5,000 flat rows", "nested 1000": "1,000 nested rows"}
FURTHER = {
    "runner": ("Where the time of a job goes beyond scoring", ["tests.bench.runner"]),
    "pools": ("How much of an account's limits a job uses", ["tests.bench.pools"]),
    "scale": ("How a job grows with its documents", ["tests.bench.scale", "--documents", "1000", "10000", "100000"]),
    "million": ("A complete run of a million documents", ["tests.bench.million"]),
}


def wanted() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    known = [*GOALS, *OTHERS, *ALONE]
    parser.add_argument("--cases", nargs="*", default=known, metavar="CASE", help=f"of: {', '.join(known)}")
    parser.add_argument("--pairs", type=int, default=3, help="pairs of runs per case; 3 unless said")
    parser.add_argument("--corpus", type=Path, help="folder of a real corpus (manifest.parquet and what it names)")
    parser.add_argument("--predictions", type=Path, help="a system's, beside those of others, for --corpus")
    parser.add_argument("--python313", type=Path, help="a Python 3.13 for the peer that needs one; found by uv if not")
    parser.add_argument("--further", nargs="*", choices=list(FURTHER), default=list(FURTHER), help="runner's parts")
    parser.add_argument("--no-profile", action="store_true")
    parser.add_argument("--work", type=Path, default=ROOT / ".bench")
    parser.add_argument("--out", type=Path, default=ROOT / "BENCHMARKS.md")
    chosen = parser.parse_args()
    unknown = [case for case in chosen.cases if case not in known]
    if unknown:
        parser.error(f"no such case: {', '.join(unknown)}")
    return chosen


def case_file(case: str, chosen: argparse.Namespace) -> Path | None:
    """The documents of a case, made if they are not there; None for the real corpus without one."""
    path: Path = chosen.work / "cases" / f"{case.replace(' ', '_')}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    if case == "corpus":
        if chosen.corpus is None:
            return None
        write_case(path, read_corpus(chosen.corpus, chosen.predictions))
    elif not path.exists():
        write_case(path, generated(case))
    return path


def interpreters(chosen: argparse.Namespace) -> dict[str, tuple[Path | None, str]]:
    """Per scorer the peer's interpreter, or why there is none."""
    found: dict[str, tuple[Path | None, str]] = {}
    for name, peer in PEERS.items():
        try:
            found[name] = environment(peer, chosen.work, chosen.python313), ""
        except subprocess.CalledProcessError:
            found[name] = None, f"{peer.package} {peer.version} could not be installed"
    return found


def run_pairs(chosen: argparse.Namespace) -> None:
    stored = chosen.work / "measured.json"
    known, peers = load(stored), interpreters(chosen)
    for key in chosen.cases:
        scorer, _, case = key.partition(" ")
        verdicts = case.endswith(" verdicts")
        case = case.removesuffix(" verdicts")
        path = case_file(case, chosen)
        if path is None:
            continue
        python, reason = (None, "") if key in ALONE else peers[scorer]
        one = measure(scorer, case, path, chosen.pairs, python, verdicts=verdicts)
        one.reason = reason
        known[one.key] = one
        save(stored, known)
        ratio = one.ratio()
        print(f"{one.key:34} {one.median('ours', 'seconds'):8.3f} s", f"ratio {ratio:.1f}" if ratio else "", flush=True)


def further(chosen: argparse.Namespace) -> None:
    """The benchmarks of the runner and the profiles; what they print is kept beside the pairs."""
    jobs = {name: list(FURTHER[name][1]) for name in chosen.further}
    if chosen.corpus and chosen.predictions and "runner" in jobs:
        jobs["runner"] = [
            *jobs["runner"],
            "--corpus",
            str(chosen.corpus),
            "--predictions",
            str(chosen.predictions.parent),
        ]
    for case in () if chosen.no_profile else PROFILED:
        path = case_file(case, chosen)
        jobs[f"profile {case}"] = ["tests.bench.shares", str(path)]
    for name, words in jobs.items():
        done = subprocess.run([sys.executable, "-m", *words], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            print(f"{name} failed, exit {done.returncode}", file=sys.stderr, flush=True)
            continue
        (chosen.work / f"{name}.txt").write_text(done.stdout)


def kept(chosen: argparse.Namespace, name: str) -> list[str]:
    path = chosen.work / f"{name}.txt"
    return path.read_text().splitlines() if path.exists() else []


def main() -> None:
    chosen = wanted()
    chosen.work.mkdir(parents=True, exist_ok=True)
    run_pairs(chosen)
    further(chosen)
    measured = load(chosen.work / "measured.json")
    order = {key: place for place, key in enumerate([*GOALS, *OTHERS, *ALONE])}
    measured = dict(sorted(measured.items(), key=lambda entry: order.get(entry[0], len(order))))
    drawing = chosen.out.with_name("benchmarks.svg")
    if any(series(measured, shape) for shape in ("flat", "nested", "twins")):
        drawing.write_text(plot(measured))
    profiles = {title: lines for case, title in PROFILED.items() if (lines := kept(chosen, f"profile {case}"))}
    others = {
        title: ["```", *lines, "```", *(["", *textwrap.wrap(NOTES[name], 120)] if name in NOTES else [])]
        for name, (title, _) in FURTHER.items()
        if (lines := kept(chosen, name))
    }
    chosen.out.write_text(markdown(measured, GOALS, REASONS, profiles, others, drawing.name))
    print(json.dumps({"written": str(chosen.out)}))


if __name__ == "__main__":
    main()
