"""Why two values are or are not equal: the steps by which each became its canonical key.

In: one or two JSON values. Out: the steps that changed something, and where two values met or parted. The steps are the
very rules that `canon_key` applies (canon.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from .canon import FOLDS, ROUTES, Rule, canon_key, cut_short, has_digit, kept_whole

ABSENT, BOOLEAN, WRITTEN, WHOLE, CUT = "nothing", "boolean", "written out", "kept whole", "cut short"
STAGES = (ABSENT, BOOLEAN, WRITTEN, *(rule.name for rule in (*ROUTES, *FOLDS)), WHOLE, CUT)


class Step(NamedTuple):
    """One step: its name, what it does, the text after it, and whether that is the key."""

    name: str
    what: str
    text: str
    final: bool


class Trace(NamedTuple):
    """How a value became its key: the steps that changed its text or gave the key."""

    value: Any
    steps: tuple[Step, ...]
    key: str


class Comparison(NamedTuple):
    """Two traces.

    ``at``: the step at which they met or parted; None if the texts were equal or different all along. ``only``: where
    they parted since that step gave the key of one of them alone, that one: 0 or 1.
    """

    left: Trace
    right: Trace
    equal: bool
    at: str | None
    only: int | None = None


def trace(value: Any) -> Trace:
    """The steps from a JSON value to its canonical key."""
    steps = tuple(_steps(value))
    return Trace(value, steps, steps[-1].text if steps else value)


def _steps(value: Any) -> Iterator[Step]:
    if value is None or value == [] or value == {} or (isinstance(value, str) and not value.strip()):
        yield Step(ABSENT, "null, blank and empty values state nothing", "", True)
    elif isinstance(value, bool):
        yield Step(BOOLEAN, "one of two words, never a number", canon_key(value), True)
    elif isinstance(value, str):
        yield from _text_steps(value, value.strip())
    else:
        text = str(value)
        yield Step(WRITTEN, "as Python writes it", text, False)
        yield from _text_steps(text, text)


def _text_steps(value: str, stripped: str) -> Iterator[Step]:
    for route in ROUTES if has_digit(stripped) else ():
        key = route.apply(stripped)
        if key is not None:
            yield _step(route, key)
            return
    before, text = value, stripped
    try:
        for fold in FOLDS:
            changed = fold.apply(text)
            if changed is None:
                continue
            if fold.final or changed != before:
                yield _step(fold, changed)
            if fold.final:
                return
            before = text = changed
    except OverflowError:
        yield Step(CUT, "no float holds the number: its first 64 characters count", cut_short(value), True)
        return
    if not text:
        yield Step(WHOLE, "nothing would be left, so its characters stay", kept_whole(stripped), True)


def _step(rule: Rule, text: str) -> Step:
    return Step(rule.name, rule.what, text, rule.final)


def compare(left: Any, right: Any) -> Comparison:
    """Traces two values and says where they met or parted."""
    one, other = trace(left), trace(right)
    courses = list(zip(_course(one), _course(other), strict=True))
    if one.key == other.key:
        apart = [at for at, ((a, _), (b, _)) in enumerate(courses) if a != b]
        return Comparison(one, other, True, STAGES[apart[-1]] if apart else None)
    for stage, ((a, a_ended), (b, b_ended)) in zip(("", *STAGES), courses, strict=True):
        if a_ended != b_ended:
            return Comparison(one, other, False, stage, 0 if a_ended else 1)
        if a_ended and a != b:
            return Comparison(one, other, False, stage)
    return Comparison(one, other, False, None)


def _course(traced: Trace) -> Iterator[tuple[str, bool]]:
    """The text as it came and after each stage, and whether it is the key by then."""
    steps = {step.name: step for step in traced.steps}
    text, ended = str(traced.value) if isinstance(traced.value, str) else f"\0{traced.value!r}", False
    yield text, ended
    for stage in STAGES:
        if stage in steps:
            text, ended = steps[stage].text, steps[stage].final
        yield text, ended
