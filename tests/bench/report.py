"""BENCHMARKS.md and the plot of time against rows, from what was measured.

In: Measured records, profiles and the lines of the other benchmarks. Out: Markdown, and an SVG.
"""

from __future__ import annotations

import math
import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

from .pairs import PEERS, Measured

SIZES = ("flat", "nested", "twins")
TITLES = {
    "mix": "mix of 100 documents",
    "small": "small documents of the mix",
    "vectors": "vectors, 20 times",
    "corpus": "real corpus",
}


def machine() -> list[str]:
    """What it ran on, a line each."""
    info = Path("/proc/cpuinfo")
    names = [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "pyarrow"))
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return [
        f"- Machine: {names[0] if names else platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GiB, "
        f"{platform.system()}; load {os.getloadavg()[0]:.1f} at the end of the run",
        f"- Ours: commit {done.stdout.strip() or 'unknown'}, Python {platform.python_version()}, {packages}",
    ]


def _number(value: float | None, form: str = ".3g") -> str:
    return "" if value is None else format(value, form)


def table(measured: list[Measured], goals: dict[str, float]) -> list[str]:
    """One row per case: medians of both sides, the median of the pairs' ratios, and the goal."""
    lines = [
        "| case | ours s | peer s | ratio | of CPU | goal | ours MB | peer MB | runs | figures |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|---|",
    ]
    for one in measured:
        name = TITLES.get(one.case, f"{one.case} rows") + (", into verdict Parquet" if one.verdicts else "")
        ratio, goal = one.ratio(), goals.get(one.key)
        missed = ratio is not None and goal is not None and ratio < goal
        cells = [
            name, _number(one.median("ours", "seconds")), _number(one.median("theirs", "seconds")),
            _number(ratio) + (" (missed)" if missed else ""), _number(one.ratio("cpu")), _number(goal, "g"),
            _number(one.median("ours", "peak_mb"), ".0f"), _number(one.median("theirs", "peak_mb"), ".0f"),
            str(len(one.ours)), one.reason or ("equal" if one.agree else "**differ**") if one.theirs else one.reason,
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def growth(measured: dict[str, Measured]) -> list[str]:
    """How our time grows: the exponent between the smallest and the largest table of each shape."""
    lines = []
    for shape in SIZES:
        points = [(rows, ours) for rows, ours, _ in series(measured, shape)]
        if len(points) > 1:
            (few, quick), (many, slow) = points[0], points[-1]
            power = math.log(slow / quick) / math.log(many / few)
            times = ", ".join(f"{rows:,}: {seconds:.3g} s" for rows, seconds in points)
            lines.append(f"- {shape} rows: {times}; from {few:,} to {many:,} rows time grows as n^{power:.2f}")
    return lines


def series(measured: dict[str, Measured], shape: str) -> list[tuple[int, float, float | None]]:
    """Rows, our seconds and the peer's of the tables of a shape, by rows."""
    found = []
    for one in measured.values():
        name, _, rows = one.case.partition(" ")
        seconds = one.median("ours", "seconds")
        if name == shape and one.scorer == "field_matching" and not one.verdicts and seconds:
            found.append((int(rows), seconds, one.median("theirs", "seconds")))
    return sorted(found)


COLOURS = {"flat": "#1f6feb", "nested": "#bc4c00", "twins": "#6e7781"}
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 760, 460, 70, 40, 150, 50


def plot(measured: dict[str, Measured]) -> str:
    """Seconds against rows, both axes logarithmic: ours solid, the peer dashed."""
    lines = {shape: series(measured, shape) for shape in SIZES}
    rows = [entry[0] for points in lines.values() for entry in points]
    times = [value for points in lines.values() for entry in points for value in entry[1:] if value]
    low_x, high_x = math.log10(min(rows)), math.log10(max(rows))
    low_y, high_y = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))

    def place(count: float, seconds: float) -> tuple[float, float]:
        across = (math.log10(count) - low_x) / max(high_x - low_x, 1e-9)
        up = (math.log10(seconds) - low_y) / (high_y - low_y)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="15">Scoring one document: seconds against rows (both logarithmic)</text>',
    ]
    for power in range(low_y, high_y + 1):
        _, y = place(10**low_x, 10**power)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#d0d7de"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g} s</text>')
    for count in sorted(set(rows)):
        x, _ = place(count, 10**low_y)
        if str(count)[0] in "125":
            parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{count:,}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle">rows</text>')
    for shape, points in lines.items():
        for side, style in ((1, ""), (2, ' stroke-dasharray="6 4"')):
            places = [place(entry[0], value) for entry in points if (value := entry[side])]
            if not places:
                continue
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            colour, (x, y) = COLOURS[shape], places[-1]
            parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{style}/>')
            parts.extend(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places)
            name = f"{shape}, {'ours' if side == 1 else 'peer'}"
            parts.append(f'<text x="{x + 8:.1f}" y="{y + 4:.1f}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>", ""])


def markdown(
    measured: dict[str, Measured],
    goals: dict[str, float],
    reasons: dict[str, str],
    profiles: dict[str, list[str]],
    others: dict[str, list[str]],
    plot_name: str,
) -> str:
    """The whole of BENCHMARKS.md."""
    lines = ["# Benchmarks", "", "Made by `make bench`; figures of one machine on one day.", "", *machine()]
    lines += [f"- Peer of {name}: {peer.package} {peer.version}" for name, peer in PEERS.items()]
    lines += [
        "", "Each run is a fresh process, one side after the other in turn. Times are of scoring alone (documents and",
        "packages loaded before), memory is the peak above that. Seconds and MB are medians, the ratio is the median",
        "of the pairs' ratios; that of processor time says more where others share the machine.",
        "`python -m tests.bench --cases CASE ...` measures single cases again.",
    ]  # fmt: skip
    for name, peer in PEERS.items():
        cases = [one for one in measured.values() if one.scorer == name and (one.theirs or one.reason)]
        if cases:
            lines += ["", f"## {name} beside {peer.package}", "", *table(cases, goals)]
            missed = [one for one in cases if (ratio := one.ratio()) and ratio < goals.get(one.key, 0)]
            told = [f"- {one.key}, missed: {reasons.get(one.key, 'not known why')}" for one in missed]
            lines += ["", *told] if told else []
    if any(series(measured, shape) for shape in SIZES):
        lines += ["", "## Growth", "", f"![Seconds against rows]({plot_name})", "", *growth(measured)]
    for title, found in profiles.items():
        lines += ["", f"## Where the time goes: {title}", "", *found]
    for title, found in others.items():
        lines += ["", f"## {title}", "", *found]
    return "\n".join(lines) + "\n"
