"""A second, independent implementation of `field_matching`: slow, literal, section by section.

It imports nothing of the package. Leaves are plain dictionaries from addresses to values, every array is solved as a
full matrix by scipy, and nothing is remembered. The fuzz tests hold the package against it.
"""

import re
import unicodedata
from collections import Counter
from datetime import datetime, time
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation, getcontext, localcontext
from fractions import Fraction

import numpy as np
from scipy.optimize import linear_sum_assignment

# --- canonical keys -----------------------------------------------------------------------------------------------

DATE_FORMATS = """%Y-%m-%d|%m/%d/%Y|%m-%d-%Y|%d/%m/%Y|%B %d, %Y|%b %d, %Y|%d %B %Y|%d-%b-%Y|%d%b%Y|%m/%d/%y|%Y/%m/%d
%d.%m.%Y|%m.%d.%Y|%b %d %Y|%B %d %Y""".replace("\n", "|").split("|")
TIME_FORMATS = [f"%Y-%m-%d{gap}%H:%M:%S{tail}" for tail in ("", "%z", ".%f", ".%f%z") for gap in "T "]
TIME_FORMATS += ["%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"]


def canon_key(value):
    if value is None or value == [] or value == {}:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    if not text.strip():
        return ""
    for route in (decimal_key, date_key, time_key):
        key = route(text)
        if key is not None:
            return key
    try:
        key = fold(text)
    except OverflowError:
        return " ".join(text.split()).lower()[:64]
    return key if key else "".join(text.strip().lower().split())


def decimal_key(text):
    text = text.strip()
    negative = False
    if text.startswith("(") and text.endswith(")") and len(text) > 1 and "\n" not in text:
        negative = True
        text = text[1:-1].strip()
    text = text.replace("\u2212", "-").replace("\u2013", "-")
    if text.endswith("-"):
        negative = not negative
        text = text[:-1].strip()
    while text.startswith(("-", "+")):
        if text[0] == "-":
            negative = not negative
        text = text[1:].strip()
    for dropped in ",$% ":
        text = text.replace(dropped, "")
    if "." not in text:
        return None
    try:
        number = Decimal(("-" if negative else "") + text)
    except InvalidOperation:
        return None
    if not number.is_finite() or not -100 <= number.adjusted() <= 100:
        return None
    number = rounded(number, len(text))
    if number == int(number):
        written = str(int(number))
    else:
        written = format(getcontext().plus(number).normalize(), "f")
    return number_fold(written)


def rounded(number, length):
    fraction = Fraction(abs(number)) % 1
    if not fraction:
        return number
    zeros = 0
    while fraction * 10 ** (zeros + 1) < 1:
        zeros += 1
    with localcontext() as context:
        context.prec = length + 500
        return number.quantize(Decimal(1).scaleb(-(7 + zeros)), rounding=ROUND_HALF_EVEN)


def moment(text, formats):
    text = text.strip()
    if len(text) > 34 or not re.search(r"\d", text):
        return None
    for form in formats:
        try:
            return datetime.strptime(text, form).replace(tzinfo=None)
        except ValueError:
            pass
    return None


def date_key(text):
    when = moment(text, DATE_FORMATS)
    if when is None:
        when = moment(text, TIME_FORMATS)
        if when is None or when.time() != time(0):
            return None
    return f"#d{when.date().isoformat()}"


def time_key(text):
    when = moment(text, TIME_FORMATS)
    return None if when is None else f"#t{when.isoformat(timespec='microseconds')}"


def fold(text):
    text = text.strip().lower()
    kept = [c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c)]
    text = "".join(c for c in kept if unicodedata.category(c) != "Cf").replace("\u03bc", "u")
    without = re.sub(r"\s*\[\s*(\d\d?|[a-z])\s*\]", "", text)
    text = without if without.strip() else text
    for old, new in (
        ("\u2019\u2018\u2032", "'"),
        ("\u201c\u201d\u201e\u2033", '"'),
        ("\u201a", ","),
        ("\u2013\u2014\u2010\u2011\u2212\u2015", "-"),
        ("\u2044", "/"),
    ):
        for sign in old:
            text = text.replace(sign, new)
    if re.match(r"[\u2022\u2023\u25e6\u25aa\u25b6\u2219\u25cf\u25a0](\s|$)", text):
        text = text[1:]
    number = number_fold(text)
    if number is not None:
        return number
    bare = "".join(text.split())
    if bare and set(bare) == {"-"}:
        return "#ph_dash"
    safe = [at for at, c in enumerate(text) if c == "." and re.fullmatch(r"\d\.\d", text[max(at - 1, 0) : at + 2])]
    if len(safe) == 1:
        text = text[: safe[0]] + "\0" + text[safe[0] + 1 :]
    text = "".join(text.split())
    for dropped in ",-.":
        text = text.replace(dropped, "")
    text = text.replace("\0", ".").strip("\"'")
    return text.replace("(", "").replace(")", "").replace("/", "")


def number_fold(text):
    rest = text.replace(",", "").replace("$", "").replace("%", "").strip()
    if not re.fullmatch(r"[+-]?\d+(\.\d+)?", rest) or re.match(r"-?0\d", rest):
        return None
    f = float(rest)
    return str(int(f)) if int(f) == f else str(f)


# --- preparing ----------------------------------------------------------------------------------------------------

COMPANIONS = {
    *("citations", "citation", "confidence", "score", "reasoning", "evidence", "provenance", "source", "sources"),
    *("page", "pages", "bbox", "span", "spans", "offset", "offsets", "extraction_status", "status", "meta"),
}


def unwrapped(value):
    while isinstance(value, dict) and "value" in value and len(value) > 1 and set(value) - {"value"} <= COMPANIONS:
        value = value["value"]
    if isinstance(value, dict):
        return {key: unwrapped(member) for key, member in value.items()}
    return [unwrapped(member) for member in value] if isinstance(value, list) else value


def without_sidecars(value):
    if isinstance(value, list):
        return [without_sidecars(member) for member in value]
    if not isinstance(value, dict):
        return value
    kept = {}
    for key, member in value.items():
        bases = [key.removesuffix(ending) for ending in ("_citations", "_meta") if key.endswith(ending)]
        if not any(base in value for base in bases):
            kept[key] = without_sidecars(member)
    return kept


# --- the schema ---------------------------------------------------------------------------------------------------


def inlined(node, root, depth=0):
    if depth > 12:
        return node
    if isinstance(node, list):
        return [inlined(member, root, depth + 1) for member in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        target = pointed(node["$ref"], root)
        if target is not None:
            own = {key: member for key, member in node.items() if key != "$ref"}
            return inlined({**target, **own}, root, depth + 1)
    return {key: inlined(member, root, depth + 1) for key, member in node.items() if key != "$defs"}


def pointed(pointer, root):
    if not isinstance(pointer, str) or not pointer.startswith("#/"):
        return None
    node = root
    for part in pointer.split("/")[1:]:
        if not isinstance(node, dict) or part not in node:
            return None
        node = node[part]
    return node if isinstance(node, dict) else None


def has_ref(node):
    if isinstance(node, dict):
        return "$ref" in node or any(has_ref(member) for member in node.values())
    return isinstance(node, list) and any(has_ref(member) for member in node)


def branch(node):
    if not isinstance(node, dict):
        return {}
    for combinator in ("anyOf", "oneOf", "allOf"):
        for member in node.get(combinator) or []:
            if isinstance(member, dict) and member.get("type") != "null":
                return member
    return node


def is_open(node):
    if not isinstance(node, dict):
        return False
    extra = node.get("additionalProperties")
    if extra is True or isinstance(extra, dict):
        return True
    return any(is_open(member) for word in ("anyOf", "oneOf", "allOf") for member in node.get(word) or [])


INDEX = ("i", None)


def slots(node, path=()):
    node = branch(node)
    if is_open(node):
        return set()
    properties, items = node.get("properties") or {}, node.get("items")
    if not properties and items is None:
        return {path}
    found = set()
    for key, member in properties.items():
        found |= slots(member, (*path, ("k", key)))
    if items is not None:
        found |= slots(items, (*path, INDEX))
    return found


# --- names of arrays ----------------------------------------------------------------------------------------------


def array_name(path):
    name = ""
    for kind, key in path:
        if kind == "i":
            name += "[*]"
        elif any(c in key for c in ".[]"):
            name += f"[{key!r}]"
        else:
            name += f".{key}" if name else key
    return name


def schema_arrays(node, path=()):
    node = branch(node)
    found = {path} if node.get("type") == "array" or "items" in node else set()
    if "items" in node:
        found |= schema_arrays(node["items"], (*path, INDEX))
    for key, member in (node.get("properties") or {}).items():
        found |= schema_arrays(member, (*path, ("k", key)))
    return found


def document_arrays(value, path=()):
    found = set()
    if isinstance(value, dict):
        for key, member in value.items():
            found |= document_arrays(member, (*path, ("k", key)))
    elif isinstance(value, list):
        found.add(path)
        for member in value:
            found |= document_arrays(member, (*path, INDEX))
    return found


def ordered_arrays(order_matters, arrays):
    known = {}
    for path in arrays:
        if array_name(path) in known:
            raise ValueError("two arrays of one name")
        known[array_name(path)] = path
    for name in order_matters:
        if not isinstance(name, str):
            raise TypeError("not a text")
        if name not in known:
            raise ValueError("unknown array")
    return {known[name] for name in order_matters}


# --- flattening ---------------------------------------------------------------------------------------------------


def flattened(value, node, address, leaves, open_maps):
    node = branch(node)
    if is_open(node):
        open_maps.add(address)
    elif isinstance(value, dict):
        properties = node.get("properties") or {}
        for key, member in value.items():
            flattened(member, properties.get(key, {}), (*address, ("k", key)), leaves, open_maps)
    elif isinstance(value, list):
        for index, member in enumerate(value):
            flattened(member, node.get("items"), (*address, ("i", index)), leaves, open_maps)
    elif value is not None and not (isinstance(value, str) and not value.strip()):
        leaves[address] = value


# --- aligning -----------------------------------------------------------------------------------------------------

# Sizes from which an array counts as solved greedily; tests lower them.
LIMITS = {"dense": 64_000_000, "side": 20_000, "always": 250_000_000, "never": 500_000_000}


class Aligner:
    """An element is a dictionary from addresses within it to keys; an array one from indices to elements."""

    def __init__(self, ordered, scale):
        self.ordered, self.scale, self.approximated = ordered, scale, set()

    def arrays(self, element):
        found = {}
        for address, key in element.items():
            cut = next((at for at, (kind, _) in enumerate(address) if kind == "i"), None)
            if cut is not None:
                array = found.setdefault(address[:cut], {})
                array.setdefault(address[cut][1], {})[address[cut + 1 :]] = key
        return found

    def parts(self, element, node):
        nested = {path: array for path, array in self.arrays(element).items() if node + path not in self.ordered}
        named = {}
        for address, key in element.items():
            cut = next((at for at, (kind, _) in enumerate(address) if kind == "i"), None)
            if cut is None or address[:cut] not in nested:
                named[address] = key
        return named, nested

    def worth(self, left, right, node):
        """Matched and shared of two elements, given as their parts."""
        shared = sum(address in right[0] for address in left[0])
        matched = sum(right[0].get(address) == key for address, key in left[0].items())
        for path in left[1]:
            if path in right[1]:
                _, more_matched, more_shared = self.best(left[1][path], right[1][path], node + path)
                matched += more_matched
                shared += more_shared
        return matched, shared

    def content(self, parts, node):
        named, nested = parts
        inner = []
        for path, array in nested.items():
            below = (*node, *path, INDEX)
            inner.append((as_texts(path), sorted(self.content(self.parts(e, below), below) for e in array.values())))
        return sorted((as_texts(address), key) for address, key in named.items()), sorted(inner)

    def best(self, pred, gold, array_node):
        """Pairs of indices of the best pairing, with its matched and shared."""
        node = (*array_node, INDEX)
        sides = []
        for array in (pred, gold):
            elements = [(index, self.parts(array[index], node)) for index in sorted(array)]
            sides.append(sorted(elements, key=lambda entry: self.content(entry[1], node)))
        left, right = sides
        self.note_greedy([parts for _, parts in left], [parts for _, parts in right])
        worth = [[self.worth(a, b, node) for _, b in right] for _, a in left]
        weights = np.array([[m * self.scale + s if m else 0 for m, s in row] for row in worth], dtype=np.float64)
        if len(left) <= len(right):
            rows, columns = linear_sum_assignment(-weights)
        else:
            columns, rows = linear_sum_assignment(-weights.T)
        chosen = [(i, j) for i, j in zip(rows.tolist(), columns.tolist(), strict=True) if weights[i, j] > 0]
        matched = sum(worth[i][j][0] for i, j in chosen)
        shared = sum(worth[i][j][1] for i, j in chosen)
        return [(left[i][0], right[j][0]) for i, j in chosen], matched, shared

    def note_greedy(self, left, right):
        n, m = len(left), len(right)
        common = {path for _, nested in left for path in nested} & {path for _, nested in right for path in nested}
        if n * m <= LIMITS["dense"] or not common:
            return
        counts = [Counter(item for named, _ in side for item in named.items()) for side in (left, right)]
        b = min(n * m, sum(times * counts[1][item] for item, times in counts[0].items()))
        if min(n, m) <= LIMITS["side"]:
            if n * m <= LIMITS["always"]:
                return
            if n * m <= LIMITS["never"] and 8 * n * m <= 72 * b:
                return
        self.approximated.add(max(n, m))

    def aligned(self, pred, gold, node):
        """Per address of the predicted element the address it has after alignment."""
        renamed = {address: address for address in pred}
        gold_arrays = self.arrays(gold)
        for path, array in self.arrays(pred).items():
            partner = gold_arrays.get(path)
            if partner is None:
                continue
            if node + path in self.ordered:
                target = {index: (index, index) for index in array if index in partner}
            else:
                pairs, _, _ = self.best(array, partner, node + path)
                target = {index: (f"p{index}", None) for index in array} | {i: (j, j) for i, j in pairs}
            for index, element in array.items():
                new, other = target.get(index, (index, None))
                inside = {address: address for address in element}
                if other is not None:
                    inside = self.aligned(element, partner[other], (*node, *path, INDEX))
                for old_rest, new_rest in inside.items():
                    renamed[(*path, ("i", index), *old_rest)] = (*path, ("i", new), *new_rest)
        return renamed


def as_texts(address):
    return tuple((kind, str(name)) for kind, name in address)


# --- the whole ----------------------------------------------------------------------------------------------------


def reading_order(address):
    order = []
    for kind, name in address:
        if kind == "k":
            order.append((2, 0, name))
        elif isinstance(name, int):
            order.append((0, name, ""))
        else:
            order.append((1, 0, name))
    return order


def written(address):
    text = ""
    for kind, name in address:
        text += f"[{name}]" if kind == "i" else f".{name}" if text else name
    return text if address else "<root>"


def rows(addresses):
    found = set()
    for address in addresses:
        for at in range(len(address) - 1):
            if address[at][0] == "i" and address[at + 1][0] == "k":
                found.add(address[: at + 1])
    return found


def score(pred, gt, schema, order_matters=(), verdicts=False):
    if gt is not None and not isinstance(gt, dict):
        raise TypeError("gold")
    if not isinstance(schema, dict) or not schema:
        raise TypeError("schema")
    schema = inlined(schema, schema)
    if has_ref(schema):
        raise ValueError("$ref")
    if isinstance(order_matters, str):
        raise TypeError("one text")
    pred, gt = pred or {}, gt or {}
    prepared_pred, prepared_gold = without_sidecars(unwrapped(pred)), unwrapped(gt)
    arrays = schema_arrays(schema)
    for document in (pred, gt, prepared_pred, prepared_gold):
        arrays |= document_arrays(document)
    ordered = ordered_arrays(order_matters, arrays)

    asserted, gold, open_maps = {}, {}, set()
    flattened(prepared_pred if isinstance(prepared_pred, dict) else {}, schema, (), asserted, open_maps)
    flattened(prepared_gold if isinstance(prepared_gold, dict) else {}, schema, (), gold, open_maps)
    gold_keys = {address: canon_key(value) for address, value in gold.items()}
    keys = {address: canon_key(value) for address, value in asserted.items()}
    aligner = Aligner(ordered, 1 + len(keys))
    renamed = aligner.aligned(keys, gold_keys, ())
    pred_raws = {new: asserted[old] for old, new in renamed.items()}
    pred_keys = {new: keys[old] for old, new in renamed.items()}

    wanted = slots(schema)
    listed = [(address, None, None, None, None, "skipped_open_map") for address in sorted(open_maps, key=reading_order)]
    counts = Counter()
    for address in sorted(gold.keys() | pred_raws.keys(), key=reading_order):
        if address in gold and address in pred_raws:
            kind = "matched" if gold_keys[address] == pred_keys[address] else "misread"
        elif address in gold:
            kind = "unfound"
        elif any(step == "i" and isinstance(name, str) for step, name in address):
            kind = "invented_item"
        elif tuple(INDEX if step == "i" else (step, name) for step, name in address) in wanted:
            kind = "fabricated"
        else:
            kind = "invented_field"
        counts[kind] += 1
        raws = gold.get(address), pred_raws.get(address)
        listed.append((address, *raws, gold_keys.get(address), pred_keys.get(address), kind))

    total, matched = counts.total(), counts["matched"]
    both = matched + counts["misread"]
    precision = matched / len(pred_raws) if pred_raws else 0.0
    recall = matched / len(gold) if gold else 0.0
    gold_rows, pred_rows = rows(gold), rows(pred_raws)
    result = {
        "accuracy": matched / total if total else 0.0,
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / (precision + recall) if precision + recall else 0.0,
        "total": total,
    }
    for kind in ("matched", "misread", "unfound", "fabricated", "invented_item", "invented_field"):
        result[kind] = counts[kind]
    result |= {
        "asserted": len(pred_raws),
        "addresses_found": both / total if total else 0.0,
        "addresses_read_right": matched / both if both else 0.0,
        "gt_rows": len(gold_rows),
        "pred_rows": len(pred_rows),
        "matched_rows": len(gold_rows & pred_rows),
        "matching_exact": not aligner.approximated,
        "approximated": sorted(aligner.approximated, reverse=True),
        "skipped_open_maps": [written(address) for address in sorted(open_maps, key=reading_order)],
    }
    if verdicts:
        result["verdicts"] = listed
    return result
