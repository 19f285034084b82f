"""Documents as trees of elements (METRIC_SPEC.md, "Preparing" and "Flattening").

In: a parsed document and the Trie of its schema. Out: an Element whose leaves are numbers: spot number to key
number. One walk unwraps envelopes, drops sidecars, leaves open maps out, and keys every distinct value once.
"""

from __future__ import annotations

from typing import Any

from .canon import canon_key, float_key, int_key, text_key
from .names import has_empty_key
from .schema import SIDECARS, Spot, Trie

ENVELOPE = frozenset(
    "value citations citation confidence score reasoning evidence provenance source sources page pages bbox span "
    "spans offset offsets extraction_status status meta".split()
)
Steps = tuple[tuple[str, Any], ...]  # an address: ("k", name) and ("i", number)


class Element:
    """What sits at one index of an array, or the root.

    ``named``: spot number to key number of the leaves reached without an index. ``raws``: the same spots to the
    values as they came (only where verdicts are wanted). ``arrays``: spot number to the arrays within.
    ``leaves``: all leaves within. ``row``: it is an object.
    """

    __slots__ = ("arrays", "flat", "leaves", "named", "raws", "row")

    def __init__(self, row: bool) -> None:
        self.named: dict[int, int] = {}
        self.raws: dict[int, Any] = {}
        self.arrays: dict[int, Array] = {}
        self.leaves = 0
        self.row = row
        self.flat: dict[int, int] | None = None  # named leaves and those of ordered arrays; made when first priced


class Array:
    """The elements of one list that hold a leaf, with the index each came with.

    A list of scalars alone keeps ``keys`` (and ``raws``) and makes its elements only when they are asked for.
    """

    __slots__ = ("_elements", "indices", "item", "keys", "leaves", "raws", "spot")

    def __init__(self, spot: Spot) -> None:
        self.spot = spot
        self.item = spot.item()
        self.indices: list[int] = []
        self.keys: list[int] | None = []
        self.raws: list[Any] = []
        self._elements: list[Element] | None = None
        self.leaves = 0

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def elements(self) -> list[Element]:
        if self._elements is None:
            assert self.keys is not None
            self._elements = [_scalar(self.item.id, key) for key in self.keys]
            for element, raw in zip(self._elements, self.raws, strict=False):
                element.raws[self.item.id] = raw
        return self._elements

    def append(self, index: int, element: Element) -> None:
        elements = self.elements  # scalars so far become elements
        self.keys = None
        elements.append(element)
        self.indices.append(index)
        self.leaves += element.leaves


def _scalar(spot: int, key: int) -> Element:
    element = Element(row=False)
    element.named[spot] = key
    element.leaves = 1
    return element


_KEY_OF_TEXT: dict[str, str] = {}  # shared by all documents of the process, cleared when full
_KEYS_KEPT, _LONGEST_KEPT = 100_000, 200


class Vocabulary:
    """Numbers for the canonical keys of one pair of documents: equal keys, equal numbers; 0 states nothing."""

    def __init__(self) -> None:
        self.texts: list[str] = [""]
        self._numbers: dict[str, int] = {"": 0}
        # A dictionary per type, since 1, 1.0 and True are one key to Python.
        self.strings: dict[str, int] = {}
        self.integers: dict[int, int] = {}
        self._floats: dict[float, int] = {}

    def number(self, key: str) -> int:
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.texts)
            self.texts.append(key)
        return found

    def string(self, value: str) -> int:
        key = _KEY_OF_TEXT.get(value)
        if key is None:
            key = text_key(value)
            if len(value) <= _LONGEST_KEPT:
                if len(_KEY_OF_TEXT) >= _KEYS_KEPT:
                    _KEY_OF_TEXT.clear()
                _KEY_OF_TEXT[value] = key
        found = self.strings[value] = self.number(key)
        return found

    def integer(self, value: int) -> int:
        found = self.integers[value] = self.number(int_key(value))
        return found

    def scalar(self, value: Any) -> int:
        """The number of any scalar's key; 0 if it states nothing."""
        kind = type(value)
        if kind is str:
            found = self.strings.get(value)
            return self.string(value) if found is None else found
        if kind is int:
            found = self.integers.get(value)
            return self.integer(value) if found is None else found
        if kind is float:
            found = self._floats.get(value)
            if found is None:
                found = self._floats[value] = self.number(float_key(value))
            return found
        return 0 if value is None else self.number(canon_key(value))


def unwrapped(value: dict[str, Any]) -> Any:
    """The value inside its envelopes, outermost first."""
    inner: Any = value
    while isinstance(inner, dict) and "value" in inner and len(inner) > 1 and ENVELOPE.issuperset(inner):
        inner = inner["value"]
    return inner


def prepared(value: Any, sidecars: bool) -> Any:
    """A copy without envelopes and, if ``sidecars``, without those; for the names of arrays only."""
    if isinstance(value, dict):
        value = unwrapped(value)
    if isinstance(value, list):
        return [prepared(member, sidecars) for member in value]
    if not isinstance(value, dict):
        return value
    return {
        key: prepared(member, sidecars)
        for key, member in value.items()
        if not (sidecars and any(key.endswith(ending) and key[: -len(ending)] in value for ending in SIDECARS))
    }


class Walker:
    """Reads one document into an Element; ``sidecars``: drop them (the prediction's side).

    Afterwards ``rows`` is the number of rows at all depths, ``open_maps`` the addresses of the open maps met, and
    ``empty_key`` says whether the key ``""`` occurs, in dropped and ungraded parts too.
    """

    def __init__(self, trie: Trie, words: Vocabulary, *, sidecars: bool, raws: bool) -> None:
        self.trie = trie
        self.words = words
        self.sidecars = sidecars
        self.raws = raws
        self.rows = 0
        self.open_maps: list[Steps] = []
        self.empty_key = False

    def read(self, document: Any) -> Element:
        root = Element(row=False)
        value = unwrapped(document) if isinstance(document, dict) else document
        if not isinstance(value, dict):
            value = {}
        if self.trie.root.open:
            self._pass_over(value, self.trie.root, ())
        else:
            self._object(value, self.trie.root, root, ())
        return root

    def _pass_over(self, value: Any, spot: Spot, at: Steps) -> None:
        self.open_maps.append(at + tuple(("k", name) for name in spot.names))
        self.empty_key = self.empty_key or has_empty_key(value)

    def _object(self, value: dict[str, Any], spot: Spot, element: Element, at: Steps) -> None:
        """Adds the leaves of an object at ``spot`` to its element; ``at``: the element's address."""
        named, children, plain, words = element.named, spot.children, spot.plain, self.words
        strings, integers, raws = words.strings, words.integers, element.raws if self.raws else None
        before = len(named)
        for key, member in value.items():
            kind = type(member)
            if kind is not dict and kind is not list:
                number = plain.get(key)
                if number is not None:  # most values
                    if kind is str:
                        code = strings.get(member)
                        if code is None:
                            code = words.string(member)
                    elif kind is int:
                        code = integers.get(member)
                        if code is None:
                            code = words.integer(member)
                    else:
                        code = words.scalar(member)
                    if code:
                        named[number] = code
                        if raws is not None:
                            raws[number] = member
                    continue
            found = children.get(key)
            if found is None:
                found = spot.child(key)
                self.empty_key = self.empty_key or key == ""
            place, base = found
            if base is not None and self.sidecars and base in value:
                self.empty_key = self.empty_key or has_empty_key(member)
                continue
            if kind is dict and "value" in member:
                member = unwrapped(member)
                kind = type(member)
            if place.open:
                self._pass_over(member, place, at)
            elif kind is dict:
                element.leaves += len(named) - before
                self._object(member, place, element, at)
                before = len(named)
            elif kind is list:
                if member:
                    array = self._array(member, place, at)
                    if array.leaves:
                        element.arrays[place.id] = array
                        element.leaves += array.leaves
            else:
                code = words.scalar(member)
                if code:
                    named[place.id] = code
                    if raws is not None:
                        raws[place.id] = member
        element.leaves += len(named) - before

    def _array(self, values: list[Any], spot: Spot, at: Steps) -> Array:
        array = Array(spot)
        item = array.item
        at = at + tuple(("k", name) for name in spot.names)
        for index, value in enumerate(values):
            kind = type(value)
            if kind is dict and "value" in value:
                value = unwrapped(value)
                kind = type(value)
            here = (*at, ("i", index))
            if item.open:
                self._pass_over(value, item, here)
            elif kind is dict:
                element = Element(row=True)
                self._object(value, item, element, here)
                if element.leaves:
                    self.rows += 1
                    array.append(index, element)
            elif kind is list:
                element = Element(row=False)
                inner = self._array(value, item, here)
                if inner.leaves:
                    element.arrays[item.id] = inner
                    element.leaves = inner.leaves
                    array.append(index, element)
            else:
                number = self.words.scalar(value)
                if number:
                    self._add_scalar(array, index, number, value)
        return array

    def _add_scalar(self, array: Array, index: int, number: int, value: Any) -> None:
        if array.keys is None:
            element = _scalar(array.item.id, number)
            element.raws[array.item.id] = value
            array.append(index, element)
            return
        array.keys.append(number)
        array.indices.append(index)
        array.leaves += 1
        if self.raws:
            array.raws.append(value)
