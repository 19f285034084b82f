"""The package against the oracle on random input; every failure names its seed.

``OEB_FUZZ_DOCUMENTS`` sets how many documents are tried (2,000 unless set; each test has its share, in per cent),
``OEB_FUZZ_START`` the first seed.
"""

import copy
import os
import random

import pytest

from oeb_ray.scoring.field_matching import align, assign, batch, canon_key, large, limits, overlap, pricing, score

from .. import oracle
from . import generated

DOCUMENTS = int(os.environ.get("OEB_FUZZ_DOCUMENTS", "2000"))
START = int(os.environ.get("OEB_FUZZ_START", "0"))
FREE = ("fabricated", "invented_item", "invented_field", "matched_rows", "verdicts")
INVENTED = ("fabricated", "invented_item", "invented_field")
COUNTS = ("matched", "misread", "unfound", *INVENTED)


def outcome(scorer, *args):
    """All figures and verdicts, or the type of the exception."""
    try:
        result = scorer(*args, verdicts=True)
    except (TypeError, ValueError) as error:
        return {"raises": type(error)}
    return result | {"verdicts": [tuple(verdict) for verdict in result["verdicts"]]}


def text(result):
    return repr(list(result.items()))  # tells types and the order of keys, and takes nan for nan


def fixed(result):
    """What does not depend on the choice among equally good pairings."""
    if "raises" in result:
        return result
    return {name: value for name, value in result.items() if name not in FREE} | {
        "invented": sum(result[name] for name in INVENTED)
    }


def consistent(result):
    """The counts, the list of verdicts and the addresses hang together."""
    listed = [verdict[-1] for verdict in result["verdicts"]]
    addresses = [verdict[0] for verdict in result["verdicts"]]
    assert {kind: listed.count(kind) for kind in COUNTS} == {kind: result[kind] for kind in COUNTS}
    assert listed.count("skipped_open_map") == len(result["skipped_open_maps"])
    assert len(set(addresses)) == len(addresses)
    assert sum(result[kind] for kind in COUNTS) == result["total"]
    assert result["asserted"] == result["total"] - result["unfound"]


def seeds(share):
    return range(START, START + max(DOCUMENTS * share // 100, 2))


def compare_all(seed, *args):
    """The outcome, if it is the oracle's."""
    before = repr(args)
    found = outcome(score, *args)
    assert text(found) == text(outcome(oracle.score, *args)), f"seed {seed}"
    assert repr(args) == before, f"seed {seed}: inputs changed"
    return found


def a_table(rng):
    kind = rng.random()
    if kind < 0.1:
        return generated.table(rng, rng.randint(30, 40), rng.randint(30, 40), values=rng.choice([4, 30]))
    if kind < 0.5:
        return generated.table(rng, rng.randint(7, 14), rng.randint(7, 14), values=rng.choice([2, 3, 5, 40]))
    if kind < 0.6:
        return generated.table(rng, rng.randint(1, 4), rng.randint(12, 40), inner=2)
    return generated.table(
        rng, rng.randint(7, 10), rng.randint(7, 10), values=rng.choice([2, 30]), inner=rng.choice([2, 4])
    )


def test_documents_come_out_as_by_the_oracle():
    raised = 0
    for seed in seeds(60):
        args = generated.documents(random.Random(seed))
        raised += "raises" in compare_all(seed, *args)
    assert raised * 10 < len(seeds(60)), "most documents are meant to be scored"


TIES = {
    "a chain of halves": ([{"a": 1}, {"a": 1, "b": 2}], [{"b": 2}, {"a": 1, "b": 2}]),
    "two twins": ([{"a": 1, "b": 5}, {"a": 1, "b": 6}], [{"a": 1, "c": 7}, {"a": 1, "c": 8}]),
    "a ring of three": (
        [{"a": 1, "b": 2}, {"b": 2, "c": 3}, {"c": 3, "a": 1}],
        [{"a": 1, "c": 3}, {"b": 2, "a": 1}, {"c": 3, "b": 2}],
    ),
    "one for two": ([{"a": 1}], [{"a": 1, "b": 2}, {"a": 1, "c": 2}]),
    "two for one": ([{"a": 1, "x": 1}, {"a": 1, "y": 1}], [{"a": 1}]),
    "equal scalars": ([1, "1", 1.0], ["1.0", 1]),
    "lists": ([[1, 2], [2, 1]], [[2], [1], [1, 2]]),
    "inner arrays": ([{"t": [1, 1, 2]}, {"t": [1, 2], "u": [3]}], [{"u": [3], "t": [1, 1]}, {"t": [1, 2, 2]}]),
}


@pytest.mark.parametrize("small", [0, 36])
@pytest.mark.parametrize("tie", TIES)
def test_ties_come_out_as_by_the_oracle(tie, small, monkeypatch):
    monkeypatch.setattr(pricing, "SMALL", small)
    pred, gold = TIES[tie]
    for left in (pred, pred[::-1]):
        for right in (gold, gold[::-1]):
            compare_all(tie, {"v": left}, {"v": right}, {"properties": {"v": {"items": {"properties": {"a": {}}}}}})
            compare_all(tie, {"v": right}, {"v": left}, {"properties": {"v": {}}})


def test_tables_beyond_the_small_limit_come_out_as_by_the_oracle():
    for seed in seeds(4):
        compare_all(seed, *a_table(random.Random(seed)))


def test_all_arrays_solved_the_large_way_come_out_as_by_the_oracle(monkeypatch):
    monkeypatch.setattr(pricing, "SMALL", 0)
    for seed in seeds(6):
        compare_all(seed, *generated.documents(random.Random(seed + 1_000_000)))


def test_nested_rows_priced_all_at_once_come_out_as_by_the_oracle(monkeypatch):
    monkeypatch.setattr(pricing, "SMALL", 0)
    monkeypatch.setattr(large, "ONE_BY_ONE", 0)
    for seed in seeds(6):
        rng = random.Random(seed + 5_000_000)
        monkeypatch.setattr(batch, "BLOCK_CELLS", rng.choice([1, 40, 4_000_000]))
        inner, size = rng.choice([2, 4]), (rng.randint(3, 8), rng.randint(3, 8))
        compare_all(seed, *generated.table(rng, *size, values=rng.choice([2, 3, 30]), inner=inner))


def test_cores_that_grow_come_out_as_by_the_oracle(monkeypatch):
    """Tables of a size at which what lies outside the core contradicts its values now and then."""
    monkeypatch.setattr(pricing, "SMALL", 0)
    monkeypatch.setattr(align, "REFERENCE_CELLS", 0)
    for seed in seeds(5):
        rng = random.Random(seed + 6_000_000)
        args = generated.table(rng, rng.randint(4, 25), rng.randint(4, 25), values=rng.choice([3, 5, 8]))
        assert text(fixed(outcome(score, *args))) == text(fixed(outcome(oracle.score, *args))), f"seed {seed}"


def test_without_the_reference_choice_all_fixed_figures_stay(monkeypatch):
    monkeypatch.setattr(pricing, "SMALL", 0)
    monkeypatch.setattr(align, "REFERENCE_CELLS", 0)
    monkeypatch.setattr(align, "REFERENCE_CELLS_NESTED", 0)
    for seed in seeds(4):
        rng = random.Random(seed + 2_000_000)
        args = a_table(rng) if seed % 3 == 0 else generated.documents(rng, size=8, nested_ordered=False)
        result = outcome(score, *args)
        assert text(fixed(result)) == text(fixed(outcome(oracle.score, *args))), f"seed {seed}"
        if "raises" not in result:
            consistent(result)


def test_small_blocks_change_nothing(monkeypatch):
    monkeypatch.setattr(pricing, "SMALL", 0)
    for seed in seeds(3):
        rng = random.Random(seed + 6_000_000)
        monkeypatch.setattr(overlap, "BLOCK_CELLS", rng.choice([1, 20, 100]))
        monkeypatch.setattr(overlap, "KEPT_CELLS", rng.choice([0, 10_000]))
        monkeypatch.setattr(overlap, "_DENSE_SHARE", rng.choice([1, 50, 100_000]))
        monkeypatch.setattr(assign, "PART_CELLS", rng.choice([1, 30]))
        reference = rng.choice([0, 1_000_000])
        monkeypatch.setattr(align, "REFERENCE_CELLS", reference)
        monkeypatch.setattr(align, "REFERENCE_CELLS_NESTED", reference)
        args = a_table(rng)
        result, wanted = outcome(score, *args), outcome(oracle.score, *args)
        if reference:
            assert text(result) == text(wanted), f"seed {seed}"
        assert text(fixed(result)) == text(fixed(wanted)), f"seed {seed}"


def test_small_cores_are_solved_greedily_and_said_so(monkeypatch):
    monkeypatch.setattr(pricing, "SMALL", 0)
    monkeypatch.setattr(align, "REFERENCE_CELLS", 0)
    monkeypatch.setattr(align, "REFERENCE_CELLS_NESTED", 0)
    monkeypatch.setattr(assign, "CORE_CELLS", 3)
    solved = []
    greedy = assign._greedy
    monkeypatch.setattr(assign, "_greedy", lambda problem: solved.append(problem.bound.n) or greedy(problem))
    seen = {True: 0, False: 0}
    for seed in seeds(5):
        rng = random.Random(seed + 3_000_000)
        pred, gold, schema = generated.table(rng, rng.randint(2, 12), rng.randint(2, 12), values=rng.choice([2, 6, 60]))
        solved.clear()
        result = outcome(score, pred, gold, schema)
        exact = oracle.score(pred, gold, schema)
        assert result["matching_exact"] == (not solved), f"seed {seed}"
        sizes = [max(sum(any(row.values()) for row in side["rows"]) for side in (pred, gold))]
        assert result["approximated"] == (sizes if solved else []), f"seed {seed}"
        consistent(result)
        assert result["matched"] <= exact["matched"], f"seed {seed}"
        assert result["asserted"] == exact["asserted"]
        assert (
            result["matched"] + result["misread"] + result["unfound"]
            == exact["matched"] + exact["misread"] + exact["unfound"]
        )
        if not solved:
            assert text(fixed(result)) == text(fixed(exact)), f"seed {seed}"
        seen[bool(solved)] += 1
    assert all(seen.values()), seen


def test_greedy_flags_follow_the_table_with_lowered_limits(monkeypatch):
    flagged = 0
    for seed in seeds(6):
        rng = random.Random(seed + 4_000_000)
        always = rng.choice([6, 12, 20])
        lowered = {
            "dense": rng.choice([1, 3, 6]),
            "side": rng.randint(2, 6),
            "always": always,
            "never": always + rng.choice([0, 10, 30]),
        }
        for name, cells in lowered.items():
            monkeypatch.setattr(limits.Limits, name, cells)
        monkeypatch.setattr(oracle, "LIMITS", lowered)
        args = (
            generated.table(rng, rng.randint(1, 8), rng.randint(1, 8), values=3, inner=4)
            if seed % 2
            else generated.documents(rng)
        )
        compare_all(f"{seed} {lowered}", *args)
        flagged += outcome(score, *args).get("matching_exact") is False
    assert flagged, "no array was beyond the limits"


def test_order_of_keys_and_of_free_elements_changes_no_figure():
    def turned(rng, value):
        if isinstance(value, dict):
            members = [(name, turned(rng, member)) for name, member in value.items()]
            rng.shuffle(members)
            return dict(members)
        if isinstance(value, list):
            members = [turned(rng, member) for member in value]
            rng.shuffle(members)
            return members
        return value

    for seed in seeds(3):
        rng = random.Random(seed + 5_000_000)
        pred, gold, schema, _ = generated.documents(rng, ordered=False)
        results = [
            outcome(score, pred, gold, schema),
            outcome(score, turned(rng, pred), turned(rng, copy.deepcopy(gold)), schema),
        ]
        for result in results:
            result.pop("skipped_open_maps", None)  # these keep the indices they came with
            result.pop("verdicts", None)
        assert text(results[0]) == text(results[1]), f"seed {seed}"


# --- canonical keys -----------------------------------------------------------------------------------------------

TEXTS = """
2024-03-05|13/05/2024|05.13.2024|May 13, 2024|MAR 5 2024|05-Mar-2024|5 may 2024|03/05/68|03/05/69|2024/3/5
1/2/2024|1- 2-2024|2024-03-05T00:00|2024-03-05 24:00:00|2024-03-05T09:30:00.123456+02:00
2024-03-05T09:30:00.1234567|2024-3-5T9:5:1.5Z|2024-03-05T09:30:00z|2024-03-05T00:00:00-23:59:59.5|2024-02-30
0000-01-01|2024-03-05  09:30:60|Sept 5, 2024|(5.0)|($1,234.50)|-5.5-|+-1.5|1 000.50|1_000.5|5.|1. 5|007.0
1.240,00|-0.0|0.0000001|1.5e-7|1.0e5|12345678901234567890.0|99999999999999999.5|1.99999999999|0.00123456785
2.00000004|1.0e101|1.0e-101|9e99.0|((5.5))|.5|-.5|1.5E+3|0.1234567500000000001|(5)|--5|10\u00b2|\u00bd|1 1/2
\u216b|\u00b5g|5%|1,5|02000|-007|+05|++5|9007199254740993|1e5|NaN|Infinity|1e400.0|Revenue [1]|Rev [A]|[1]
[1] [2]|x [123]|a[ 1 ]b|\u2022 Item|\u2022Item|\u2022|- Item|- -|\u2014|1.5 mg|1.5.2 mg|512.784.7407|P.O. BOX 1
A(B)C|("a")|'it's'|\u201equoted\u201c|#d2024-03-05|a\0b|\0|()|( )|.|..|\u0301|\u200b|Acme\u2122|\u2133
\u0130stanbul|\u1e9e|\ufb01n|\u0661\u0662.\u0665|\u0662\u0660\u0662\u0664-\u0660\u0663-\u0660\u0665|\u0662\u0660
2024\u201103\u201105|5\u00a0000.5|\uff11\uff12\uff0e5|\uff08\uff15\uff09|1\u2009234|\u2153 cup|x\u0338|1\u0338.5
\u200b5|5\u200b.5|\u00ad-|[\u0661]|\u3000|a\u3000b|1\u0665.0|\u06f5\u066b5|\u06f2024-03-05"""
SEEDS = [spelling for group in generated.GROUPS for spelling in group if isinstance(spelling, str)]
SEEDS += TEXTS.replace("\n", "|").split("|")
INSERTED = list("0159.,-+/()[]$%'\" \t\n\0:TZz_eE#ax")
INSERTED += list("\u00a0\u2009\u200b\u0301\u2013\u2014\u2212\u2019\u201c\u2022\u00b2\u0665\uff15\u2044\u3000\x1c\x85")
INSERTED += ["May", "Mar ", "march", "2024", "00:00", "AM", "\ud83d", "[1]"]


def spoiled(rng):
    characters = list(rng.choice(SEEDS))
    if rng.random() < 0.1:
        characters += rng.choice(["", " ", "-", ".", ", "]) + rng.choice(SEEDS)
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        at = rng.randint(0, len(characters))
        if rng.random() < 0.6 or not characters:
            characters.insert(at, rng.choice(INSERTED))
        elif rng.random() < 0.7:
            del characters[min(at, len(characters) - 1)]
        else:
            rng.shuffle(characters)
    return "".join(characters)


def scalar(rng):
    kind = rng.random()
    if kind < 0.85:
        return spoiled(rng)
    if kind < 0.9:
        return rng.choice([1, -1]) * rng.choice(
            [rng.random(), rng.uniform(0, 1e6), rng.uniform(0, 1e20), 10 ** rng.uniform(-120, 120)]
        )
    if kind < 0.95:
        return rng.randint(-(10 ** rng.randint(1, 25)), 10 ** rng.randint(1, 320))
    return rng.choice([
        str(rng.uniform(-10, 10)),
        f"{rng.uniform(0, 1e5):.{rng.randint(0, 12)}f}",
        f"{rng.randint(1, 31)}{rng.choice('/-. ')}{rng.randint(1, 13)}{rng.choice('/-. ')}{rng.randint(1, 9999)}",
        "1" * rng.randint(300, 320) + rng.choice(["", ".5", " m"]),
    ])  # fmt: skip


def test_canonical_keys_come_out_as_by_the_oracle():
    rng = random.Random(START)
    wrong = []
    for _ in range(DOCUMENTS * 5):
        value = scalar(rng)
        got, wanted = canon_key(value), oracle.canon_key(value)
        if got != wanted:
            wrong.append(f"{value!r}: {got!r}, by the oracle {wanted!r}")
    assert not wrong, f"{len(wrong)} keys differ:\n" + "\n".join(wrong[:20])


@pytest.mark.parametrize("value", [None, [], {}, [1.5], {"a": 1}, True, False, float("nan"), float("inf"), -0.0])
def test_canonical_keys_of_other_values_come_out_as_by_the_oracle(value):
    assert canon_key(value) == oracle.canon_key(value)
