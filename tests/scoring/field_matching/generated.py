"""Random pairs of documents with a schema, all from one `random.Random`, made to be awkward for the scorer.

A shape is ("scalar", groups), ("object", {name: shape}), ("array", shape) or ("map",). Gold documents follow a shape,
predictions are gold documents with damage.
"""

import copy

# Spellings of one value in a row; values of different rows differ.
GROUPS = [
    ["2024-03-05", "03/05/2024", "Mar 5, 2024", "5 March 2024", "2024-03-05T00:00:00Z", "05.03.2024"],
    ["2024-05-03", "05/03/2024", "3-May-2024", "03May2024"],
    ["2024-03-05T09:30:00", "2024-03-05 09:30", "2024-03-05T09:30:00.000+02:00"],
    [1234.5, "1,234.50", "$1234.5", "1 234.500", "+1234.5"],
    [-5.5, "(5.5)", "5.5-", "\u22125.5"],
    [5, 5.0, "5", "5%", "(5)", "$5"],
    [-5, "-5", "(5.0)", "\u22125"],
    [15, "1,5", "15"],
    [0, "0", 0.0, "-0.0"],
    ["007", "007 "],
    [7],
    [True, "true", "TRUE"],
    [False, "false"],
    [1, "1", 1.0, "1.0"],
    ["Acme Ltd", "ACME LTD.", "acme-ltd", "Acme  Ltd [1]", "\u2022 Acme Ltd"],
    ["Acme Ltd 2", "acme ltd2"],
    ["Zo\u00eb & S\u00f6hne", "ZOE & SOHNE"],
    ["n/a", "N/A", "NA"],
    ["-", "\u2014", "- -"],
    ["x"],
    ["\U0001f41f"],
    [9007199254740993, "9007199254740992"],
]
NOTHING = [None, "", "  ", [], {}]
NAMES = ["a", "b", "c", "id", "total", "x.y", "name", "qty", "a_b", "Name"]


def shape(rng, depth):
    roll = rng.random()
    if depth <= 0 or roll < 0.45:
        return ("scalar", rng.sample(range(len(GROUPS)), rng.randint(1, 6)))
    if roll < 0.6:
        return ("object", members(rng, depth - 1))
    if roll < 0.95:
        return ("array", shape(rng, depth - 1) if rng.random() < 0.45 else ("object", members(rng, depth - 1)))
    return ("map",)


def members(rng, depth):
    return {name: shape(rng, depth) for name in rng.sample(NAMES, rng.randint(1, 4))}


def schema_of(rng, part, definitions):
    """The schema of a shape, with some of it undeclared and some moved to ``definitions``."""
    kind = part[0]
    if kind == "map":
        node = {"type": "object", "additionalProperties": rng.choice([True, {}, {"type": "string"}])}
    elif kind == "object":
        declared = {
            name: schema_of(rng, member, definitions) for name, member in part[1].items() if rng.random() < 0.93
        }
        node = {"type": "object", "properties": declared}
        if rng.random() < 0.2:
            node["additionalProperties"] = False
    elif kind == "array":
        node = (
            {"type": "array"}
            if rng.random() < 0.05
            else {"type": "array", "items": schema_of(rng, part[1], definitions)}
        )
    else:
        node = {"type": rng.choice(["string", "number", ["string", "null"]])}
    if rng.random() < 0.1:
        members = rng.choice([[{"type": "null"}, node], [node, {"type": "string"}]])
        node = {rng.choice(["anyOf", "oneOf", "allOf"]): members}
    if rng.random() < 0.06:
        name = f"d{len(definitions)}"
        definitions[name] = node
        node = {"$ref": f"#/$defs/{name}"} | rng.choice([{}, {}, {"title": "t"}, {"type": "string"}])
    return node


def gold_of(rng, part, size):
    kind = part[0]
    if kind == "scalar":
        return rng.choice(NOTHING) if rng.random() < 0.08 else rng.choice(GROUPS[rng.choice(part[1])])
    if kind == "map":
        return rng.choice([{"k": 1}, {"k": {"l": "v"}}, None, "x"])
    if kind == "object":
        return {name: gold_of(rng, member, size) for name, member in part[1].items() if rng.random() < 0.92}
    values = [gold_of(rng, part[1], max(size // 2, 2)) for _ in range(rng.randint(0, size))]
    for _ in range(rng.choice([0, 0, 1, 2])):
        if values:  # a duplicate, sometimes with one change
            twin = copy.deepcopy(rng.choice(values))
            values.insert(rng.randint(0, len(values)), damaged(rng, twin, 0.15) if rng.random() < 0.5 else twin)
    return values


def damaged(rng, value, harm, root=False):
    """A copy with values respelled, changed, dropped and added; ``harm`` from 0 to 1."""
    if isinstance(value, dict):
        members = list(value.items())
        if rng.random() < 0.2:
            rng.shuffle(members)
        result = {}
        for name, member in members:
            if rng.random() < harm / 3:
                continue
            result[name] = damaged(rng, member, harm)
            if rng.random() < harm / 8:
                result[name + rng.choice(["_meta", "_citations"])] = rng.choice([1, ["p1"], {"page": 1}])
        if rng.random() < harm / 5:
            result[rng.choice([*NAMES, "extra", "lone_meta", "value"])] = rng.choice(
                [1, "more", [1, "2"], {"in": ["x"]}]
            )
    elif isinstance(value, list):
        result = [damaged(rng, member, harm) for member in value if rng.random() >= harm / 4]
        if rng.random() < 0.4:
            rng.shuffle(result)
        while rng.random() < harm / 2:
            more = rng.choice([*result, "stray", 3, None, {"a": "x"}, ["x"]])
            result.insert(rng.randint(0, len(result)), copy.deepcopy(more))
    else:
        result = respelled(rng, value)
        if rng.random() < harm / 3:
            result = rng.choice([*NOTHING, *(rng.choice(group) for group in GROUPS), {"a": 1}, ["x", "y"]])
    if not root and rng.random() < harm / 12:
        result = {
            "value": result,
            rng.choice(["page", "confidence", "unit", "citations"]): rng.choice([1, None, ["x"]]),
        }
    return result


def respelled(rng, value):
    if rng.random() < 0.4:
        for group in GROUPS:
            if any(type(value) is type(member) and value == member for member in group):
                return rng.choice(group)
    return value


def array_names(part, name=""):
    """Written names of the arrays of a shape, each with whether it lies in another."""
    if part[0] == "object":
        for key, member in part[1].items():
            step = f"[{key!r}]" if "." in key else f".{key}" if name else key
            yield from array_names(member, name + step)
    elif part[0] == "array":
        yield name, "[*]" in name
        yield from array_names(part[1], name + "[*]")


def documents(rng, *, size=5, depth=4, ordered=True, nested_ordered=True):
    """Prediction, gold, schema, order_matters.

    ``nested_ordered``: arrays in arrays may be ordered too; with those the figures can depend on the choice among
    equally good pairings.
    """
    root = ("object", {name: shape(rng, depth - 1) for name in rng.sample(NAMES, rng.randint(1, 4))})
    definitions = {}
    schema, gold = schema_of(rng, root, definitions), gold_of(rng, root, size)
    if definitions:
        schema = {**schema, "$defs": definitions}
    pred = damaged(rng, gold, rng.choice([0.0, 0.1, 0.3, 0.6]), root=True)
    if rng.random() < 0.1:
        gold = damaged(rng, gold, 0.2)
    if not isinstance(gold, dict):
        gold = {}
    if rng.random() < 0.02:
        pred = rng.choice([None, [], [pred], "x", {"value": pred, "page": 1}, {"value": [pred], "page": 1}])
    if rng.random() < 0.02:
        gold = {"value": gold, "meta": {}}
    if rng.random() < 0.01:
        schema = {**schema, "additionalProperties": {}}
    names = []
    if ordered and rng.random() < 0.35:
        known = [name for name, inside in array_names(root) if nested_ordered or not inside]
        names = rng.sample(known, rng.randint(0, min(len(known), 2)))
    return pred, gold, schema, tuple(names)


def table(rng, rows, columns, *, values=12, inner=0):
    """Two documents with one array of ``rows`` x ``columns`` elements, near-twins and duplicates among them."""
    fields = NAMES[: rng.randint(1, 5)]
    filled, kinds, deepest = rng.choice([0.5, 0.9, 0.9]), rng.choice([1, 4]), rng.choice([2, 2, 5])

    def row():
        made = {name: rng.randint(1, values) if rng.random() < filled else None for name in fields}
        for name in ("inner", "more") if inner else ():
            if rng.random() < filled:
                made[name] = [line() for _ in range(rng.randint(0, inner if name == "inner" else 2))]
        return made

    def line():
        return {"k": rng.randint(1, kinds), "deep": [rng.randint(1, kinds) for _ in range(rng.randint(0, deepest))]}

    gold = [row() for _ in range(columns)]
    pred = [copy.deepcopy(rng.choice(gold)) if rng.random() < 0.3 else row() for _ in range(rows)]
    for place, member in enumerate(copy.deepcopy(gold[: max(rows - 2, 0)])):
        if rng.random() < 0.7:
            pred[place] = member
            if rng.random() < 0.4:
                pred[place][rng.choice(fields)] = rng.randint(1, values)
    rng.shuffle(pred)
    pred = [{name: member[name] for name in rng.sample(list(member), len(member))} for member in pred]
    slot = {"type": "integer"}
    lines = {"type": "array", "items": {"properties": {"k": slot, "deep": {"type": "array", "items": slot}}}}
    item = {"type": "object", "properties": dict.fromkeys(fields, slot) | {"inner": lines, "more": lines}}
    schema = {"type": "object", "properties": {"rows": {"type": "array", "items": item}}}
    return {"rows": pred}, {"rows": gold}, schema
