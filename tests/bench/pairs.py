"""Pairs of runs, ours and a peer's in turn, each in a fresh process; and the environments that the peers need.

In: cases (corpora.py). Out: Pair records; medians of time and memory and their ratios.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SIDE = HERE / "side.py"
UNSET = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")  # they would change the speed of one side's linear algebra


@dataclass(frozen=True)
class Peer:
    """A published scorer: its package and version, the module that side.py calls, ours that it is put beside."""

    package: str
    version: str
    module: str
    ours: str
    python: str = ""


PEERS = {
    "field_matching": Peer("omni-extract-bench", "0.1.7", "omni_extract_bench", "field_matching"),
    "value_f1": Peer("llama-extract-bench", "1.0.0", "extract_bench", "value_f1", python="3.13"),
}


@dataclass
class Measured:
    """All runs of one case; ``reason``: why there is no peer's."""

    scorer: str
    case: str
    verdicts: bool
    ours: list[dict[str, Any]] = field(default_factory=list)
    theirs: list[dict[str, Any]] = field(default_factory=list)
    reason: str = ""

    @property
    def key(self) -> str:
        return f"{self.scorer} {self.case}{' verdicts' if self.verdicts else ''}"

    @property
    def agree(self) -> bool:
        return len({run["figures"] for run in (*self.ours, *self.theirs)}) == 1

    def median(self, side: str, figure: str) -> float | None:
        runs = getattr(self, side)
        return float(statistics.median(run[figure] for run in runs)) if runs else None

    def ratio(self, figure: str = "seconds") -> float | None:
        """The median over pairs, so that a machine whose speed drifts changes it little."""
        if not self.theirs:
            return None
        pairs = zip(self.theirs, self.ours, strict=True)
        return float(statistics.median(theirs[figure] / ours[figure] for theirs, ours in pairs))


def environment(peer: Peer, work: Path, interpreter: Path | None) -> Path:
    """The peer's own interpreter, made if it is not there; of ``interpreter``, if given, where the peer wants another
    Python than ours. Raises CalledProcessError.
    """
    folder = work / "peers" / f"{peer.package}-{peer.version}"
    python = folder / "bin" / "python"
    made = folder / "complete"
    if not made.exists():
        uv = [sys.executable, "-m", "uv"]
        version = ["--python", str(interpreter or peer.python) if peer.python else sys.executable]
        subprocess.run([*uv, "venv", "--quiet", "--clear", *version, str(folder)], check=True)
        wanted = [f"{peer.package}=={peer.version}", "pyarrow"]
        subprocess.run([*uv, "pip", "install", "--quiet", "--python", str(python), *wanted], check=True)
        made.touch()
    return python


def run_side(python: Path | str, scorer: str, case: Path, verdicts: Path | None) -> dict[str, Any]:
    """One run of side.py in a fresh process."""
    known = {name: value for name, value in os.environ.items() if name not in (*UNSET, "PYTHONPATH")}
    if str(python) == sys.executable:
        known["PYTHONPATH"] = str(ROOT)
    words = [str(python), str(SIDE), scorer, str(case), *(["--verdicts", str(verdicts)] if verdicts else [])]
    done = subprocess.run(words, env=known, stdout=subprocess.PIPE, check=True, cwd=case.parent)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def measure(scorer: str, case: str, path: Path, pairs: int, python: Path | None, *, verdicts: bool) -> Measured:
    """Pairs of runs, ours first; without ``python`` ours alone."""
    peer = PEERS[scorer]
    measured = Measured(scorer, case, verdicts)
    for _ in range(pairs):
        files = [path.with_suffix(f".{side}.parquet") if verdicts else None for side in ("ours", "theirs")]
        measured.ours.append(run_side(sys.executable, f"oeb_ray {peer.ours}", path, files[0]))
        if python is not None:
            measured.theirs.append(run_side(python, peer.module, path, files[1]))
    return measured


def load(path: Path) -> dict[str, Measured]:
    """What earlier runs measured, by key."""
    known = json.loads(path.read_text()) if path.exists() else []
    return {one.key: one for one in (Measured(**entry) for entry in known)}


def save(path: Path, measured: dict[str, Measured]) -> None:
    path.write_text(json.dumps([asdict(one) for one in measured.values()], indent=1) + "\n")
