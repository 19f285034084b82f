"""Random cases for value_f1, all from one `random.Random`, made to be awkward for the scorer.

A case is what the scorer takes: ``schema``, ``expected``, ``output``, and for some ``field_rules`` and ``citations``.
"""

TEXTS = [
    *("Acme", "acme ", "North  Wind", "north wind", "x", "y", "", "\u00dcn\u00ef", "e\u0301", "\u00e9", "A.", "A"),
    *("A ,b", "A, b", "\ufb01n", "\u00df", "SS", "\u00a0x", "true", "null", "0", "1", "1.0", "1,000", "12 55"),
    *("20240305", "+1 (555) 123-4567", "5551234567", "555-123-4567"),
]  # fmt: skip
DATES = [
    *("2024-03-05", "03/05/2024", "3/5/24", "March 5, 2024", "5 March 2024", "Mar. 5, 2024", "Tue March 5 2024"),
    *("2024/03/05", "05-03-2024", "5-3-24", "3/5/2024 10:30", "13/04/2024", "2/30/2024", "19 55", "3/5/19 55"),
    *("3/5 55", "on March 5, 2024", "10-12-2020", "1890-01-01", "2024-03-05T09:00:00Z", "March 2024", "3/5/76"),
    *("3/5/77", "July 9,2021", "1/2/2021 , x"),
]
LONG = [
    "the quick brown fox jumps over the lazy dog today",
    "the quick brown fox jumps over the lazy dog to-day",
    "the quick brown fox jumped over the lazy dog today",
    "Quick! brown FOX jumps over the lazy dog today",
    *("Supreme Court of Ohio", "Supreme Court, Ohio", "Superior Court of Ohio", "a", "A!", "...", "court"),
]
NUMBERS = [0, 1, 1.0, -0.0, True, False, 2, 3.5, 10**20, 10**20 + 1, 1e20, 100, 12, 5]
FEW = ["x", "y", 1, None, 2]  # rows of these are often alike
NAMES = ["a", "b", "c", "d", "description", "court", "e.f", "date", "n"]
NORMALIZERS = [
    *("optional_terminal_punctuation", "punctuation_spacing", "case_insensitive", "phone_digits", "lenient_date"),
    "null_equals_false",
]
LEAVES = [
    *({}, {"type": "string"}, {"type": "number"}, {"type": ["string", "null"]}, {"type": "array"}, {"type": "object"}),
    *({"type": "array", "items": {"type": "string"}}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
    *({"type": "string", "default": "x"}, {"default": None}, {"default": 1}, {"$ref": "#/$defs/leaf"}),
]


def case(rng):
    """A document of tables within tables, objects and unions."""
    few = rng.random() < 0.45
    schema = _object(rng, rng.choice([0, 1, 1, 2, 2, 3])) | {"type": "object"}
    definitions = {"leaf": {"type": "string"}, "obj": _flat(rng), "rows": {"type": "array", "items": _flat(rng)}}
    schema["$defs"] = definitions
    rows = rng.choice([60, 120] if rng.random() < 0.1 else [2, 4, 6, 12, 30])
    made = _case(rng, schema, _filled(rng, schema, definitions, few, rows), few)
    return _grounded(rng, made) if rng.random() < 0.45 else made


def table(rng):
    """A document that is one table of up to 400 rows."""
    few = rng.random() < 0.5
    columns = {name: rng.choice([{}, *LEAVES[1:3], LEAVES[6], LEAVES[8]]) for name in rng.sample(NAMES, 3)}
    if rng.random() < 0.4:
        columns["sub"] = {"type": "array", "items": _flat(rng)}
    if rng.random() < 0.2:
        columns["obj"] = _flat(rng)
    items = {"type": "object", "properties": columns}
    definitions = {"leaf": {"type": "string"}}
    rows = [_filled(rng, items, definitions, few, 4) for _ in range(rng.choice([20, 50, 100, 200, 400]))]
    schema = {"type": "object", "properties": {"t": {"type": "array", "items": items}}, "$defs": definitions}
    return _case(rng, schema, {"t": rows}, few)


def _case(rng, schema, expected, few):
    output = _damaged(rng, expected, rng.choice([0, 0.02, 0.05, 0.2, 0.5]), few)
    return {"schema": schema, "expected": expected, "output": output if isinstance(output, dict) else {"a": 1}}


# --- schemas ------------------------------------------------------------------------------------------------------


def _object(rng, depth):
    def member():
        roll = rng.random()
        if depth and roll < 0.22:
            items = _object(rng, depth - 1)
            return {"type": "array", "items": {"allOf": [items]} if rng.random() < 0.05 else items}
        if depth and roll < 0.34:
            return _object(rng, depth - 1)
        if depth and roll < 0.4:
            return rng.choice(
                [{"anyOf": [{"type": "null"}, _flat(rng)]}, {"$ref": "#/$defs/obj"}, {"$ref": "#/$defs/rows"}]
            )
        return rng.choice(LEAVES)

    properties = {name: member() for name in rng.sample(NAMES, rng.randint(1, 4))}
    return {"properties": properties} | rng.choice([{}, *[{"type": "object"}] * 4])


def _flat(rng):
    return {"type": "object", "properties": {name: rng.choice(LEAVES) for name in rng.sample(NAMES, rng.randint(1, 4))}}


def _members(node, definitions):
    """Of a node: its properties and the schema of its rows, None where it has none."""
    node = definitions[node["$ref"].rpartition("/")[2]] if "$ref" in node else node
    branches = [node, *(branch for kind in ("anyOf", "allOf") for branch in node.get(kind, []))]
    properties = {name: part for branch in branches for name, part in branch.get("properties", {}).items()}
    items = node.get("items")
    return properties or None, items if items and _members(items, definitions)[0] else None


# --- values -------------------------------------------------------------------------------------------------------


def _scalar(rng, few):
    if few:
        return rng.choice(FEW)
    roll = rng.random()
    if roll < 0.9:
        return rng.choice(rng.choice([TEXTS, TEXTS, DATES, LONG, NUMBERS, NUMBERS, FEW]))
    if roll < 0.96:
        return [rng.choice(TEXTS + NUMBERS) for _ in range(rng.randint(0, 3))]
    return {rng.choice("ab"): rng.choice(TEXTS + NUMBERS) for _ in range(rng.randint(0, 2))}


def _filled(rng, node, definitions, few, rows):
    properties, items = _members(node, definitions)
    if items:
        lines = range(rng.choice([0, 1, 2, 3, rows]))
        inner = max(2, rows // 3)
        return [
            _filled(rng, items, definitions, few, inner) if rng.random() < 0.97 else _scalar(rng, few) for _ in lines
        ]
    if properties:
        return {
            name: _filled(rng, part, definitions, few, rows) for name, part in properties.items() if rng.random() < 0.9
        }
    return _scalar(rng, few)


def _damaged(rng, value, rate, few):
    """A copy, changed at about ``rate`` of its places, rows out of order."""
    if rng.random() < rate * 0.1:
        return _scalar(rng, few)
    if isinstance(value, dict):
        kept = {name: _damaged(rng, part, rate, few) for name, part in value.items() if rng.random() > rate * 0.3}
        return kept | ({rng.choice(NAMES): _scalar(rng, few)} if rng.random() < rate * 0.2 else {})
    if isinstance(value, list):
        kept = [_damaged(rng, part, rate, few) for part in value if rng.random() > rate * 0.3]
        if rng.random() < 0.4:
            rng.shuffle(kept)
        if kept and rng.random() < rate:
            kept.insert(rng.randint(0, len(kept)), _damaged(rng, rng.choice(kept), rate, few))
        return kept
    if rng.random() >= rate:
        return value
    if isinstance(value, str) and rng.random() < 0.4:
        return rng.choice([value.upper(), value + " ", value + ".", value.replace(" ", "  ")])
    return _scalar(rng, few)


# --- rules and places ---------------------------------------------------------------------------------------------


def _grounded(rng, made):
    """The case with rules for some of its cells, and in half of the cases places and citations."""
    places = rng.random() < 0.5
    share = rng.choice([0.1, 0.5, 1])
    rules = {path: _rule(rng, value, places) for path, value in _cells(made, made["expected"]) if rng.random() < share}
    if not places:
        return made | {"field_rules": rules}
    cited = [path for path, _ in _cells(made, made["output"]) for _ in range(rng.choice([0, 1, 1, 2]))]
    return made | {"field_rules": rules, "citations": [{"field_path": path} | _place(rng) for path in cited]}


def _rule(rng, value, places):
    rule = {"evidence": []}
    for _ in range(rng.choice([0, 1, 1, 2])):
        entry = _place(rng) if places and rng.random() < 0.8 else {}
        if rng.random() < 0.7:
            same = rng.random() < 0.6 and not isinstance(value, (list, dict))
            entry["value"] = value if same else rng.choice([*TEXTS, *DATES, "x", "y", 1])
        rule["evidence"] += [entry] if entry else []
    if rng.random() < 0.25:
        rule["normalizers"] = rng.sample(NORMALIZERS, rng.randint(1, 2))
    return rule


def _place(rng):
    left, top, width = rng.choice([0.1, 0.2, 0.5]), rng.choice([0.1, 0.2, 0.5]), rng.choice([0.1, 0.2, 0.3])
    box = [left, top, width, rng.choice([0.05, 0.1])]
    return {"page": rng.choice([1, 1, 2, 3])} | ({"bbox": box} if rng.random() < 0.8 else {})


def _cells(made, value):
    """Paths and values of a document's cells, as far as it follows the schema."""
    definitions = made["schema"]["$defs"]

    def walk(value, node, path):
        properties, items = _members(node, definitions)
        if items and isinstance(value, list):
            for index, row in enumerate(value):
                yield from walk(row, items, f"{path}[{index}]")
        elif properties and isinstance(value, dict):
            for name in [name for name in properties if name in value]:
                yield from walk(value[name], properties[name], f"{path}.{name}".lstrip("."))
        elif path:
            yield path, value

    yield from walk(value, made["schema"], "")
