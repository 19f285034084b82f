"""CORD receipts (version 2): annotations to gold, and rows out of Parquet files.

In: the ``ground_truth`` object of a row, or the address of Parquet files with the columns image and ground_truth. Out:
a Gold with the places of every value, or CordMappingError where the annotations leave a doubt.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from .. import storage
from ..errors import RequestError
from ..jsontext import read_json
from ..scoring.field_accuracy.gold import Gold, GoldField, Region
from ..scoring.field_accuracy.kinds import values_match
from ..scoring.geometry import Box
from .forms import RECEIPT, MappingError, Value, objects

SECTIONS = {"total": "total"}  # of the labels of single values; the others stand in sub_total
MOST_WORDS = 2000  # of one value: every suffix of them is compared
Lines = list[dict[str, Any]]


class CordMappingError(MappingError):
    """The annotations of a receipt do not say for certain what is right."""


def map_cord(truth: Any) -> Gold:
    """The gold of one receipt.

    Args:
        truth: the ``ground_truth`` object, parsed JSON. Never changed.

    Raises:
        CordMappingError: with a ``reason``: item_group_count, sub_group_count, item_value_type, section_type,
            scalar_value_type, text_mismatch, or annotation where the object has another shape than CORD-v2.
    """
    if not isinstance(truth, dict):
        raise CordMappingError("annotation", "ground_truth is no object")
    parse, lines = _section(truth, "gt_parse"), list(_objects(truth.get("valid_line"), "valid_line"))
    page = _page_size(truth)
    items = [
        [_field(value, text, of_item, page) for value, text in zip(RECEIPT.cells, texts, strict=True)]
        for texts, of_item in list(_items(parse.get("menu"), lines))
    ]
    heads = [_head(parse, value, lines, page) for value in RECEIPT.heads]
    return RECEIPT.gold(heads, items)


def _items(menu: Any, lines: Lines) -> Iterator[tuple[list[str | None], Callable[[Value], Lines]]]:
    """Per printed item its four texts, and the lines of each of its values: an item, then what is below it."""
    items = _one_or_many(menu)
    groups = _ids([line for line in lines if line.get("category") == "menu.nm"], "group_id")
    if len(items) != len(groups):
        raise CordMappingError("item_group_count", f"{len(items)} items, and {len(groups)} groups of lines with a name")
    for item, group in zip(items, groups, strict=True):
        own = [line for line in lines if line.get("group_id") == group]
        yield _texts(item), _lines_of("menu", own)
        below = _one_or_many(item.get("sub"))
        if not below:
            continue
        subs = [line for line in own if str(line.get("category")).startswith("menu.sub.")]
        numbers = _ids(subs, "sub_group_id")
        if len(below) != len(numbers):
            raise CordMappingError(
                "sub_group_count", f"{len(below)} items below an item, and {len(numbers)} groups of their lines"
            )
        for sub, number in zip(below, numbers, strict=True):
            yield _texts(sub), _lines_of("menu.sub", [line for line in subs if _number(line, "sub_group_id") == number])


def _texts(item: Any) -> list[str | None]:
    if not isinstance(item, dict):
        raise CordMappingError("item_value_type", f"an item is {_shown(item)}, not an object")
    for value in RECEIPT.cells:
        if not isinstance(item.get(value.labels[0]), (str, type(None))):
            raise CordMappingError(
                "item_value_type", f"{value.labels[0]} of an item is {_shown(item[value.labels[0]])}, not one text"
            )
    return [item.get(value.labels[0]) for value in RECEIPT.cells]


def _lines_of(prefix: str, lines: Lines) -> Callable[[Value], Lines]:
    return lambda value: [line for line in lines if line.get("category") == f"{prefix}.{value.labels[0]}"]


def _head(parse: dict[str, Any], value: Value, lines: Lines, page: tuple[float, float]) -> GoldField:
    section, (label,) = SECTIONS.get(value.name, "sub_total"), value.labels
    text = _section(parse, section).get(label)
    if not isinstance(text, (str, type(None))):
        raise CordMappingError("scalar_value_type", f"{section}.{label} is {_shown(text)}, not one text")
    return _field(value, text, lambda _: [line for line in lines if line.get("category") == f"{section}.{label}"], page)


def _field(value: Value, text: str | None, lines_of: Callable[[Value], Lines], page: tuple[float, float]) -> GoldField:
    regions = () if text is None else _regions(value, text, lines_of(value), page)
    return GoldField(value.name, text, value.compare, regions)


def _regions(value: Value, text: str, lines: Lines, page: tuple[float, float]) -> tuple[Region, ...]:
    """Where the value is printed: the last words of its lines, as many as read like it; each match is a place."""
    words = [word for line in lines for word in _objects(line.get("words"), "words")]
    if not words:
        return ()
    said = [word.get("text") for word in words]
    if len(words) > MOST_WORDS or not all(isinstance(word, str) for word in said):
        raise CordMappingError("annotation", f"the words of {value.name} are too many, or no texts")
    starts = range(len(words) - 1, -1, -1)
    found = [start for start in starts if values_match(text, " ".join(map(str, said[start:])), value.compare)]
    if not found:
        raise CordMappingError(
            "text_mismatch", f"{value.name} is {text!r}, and the words of its lines are {' '.join(map(str, said))!r}"
        )
    return tuple(Region(0, _hull(words[start:], page)) for start in found)


def _hull(words: Lines, page: tuple[float, float]) -> Box:
    """The upright rectangle around the quads of words, as shares of the page."""
    across = [_corner(word, f"x{corner}") / page[0] for word in words for corner in range(1, 5)]
    down = [_corner(word, f"y{corner}") / page[1] for word in words for corner in range(1, 5)]
    left, top, right, bottom = (min(1.0, max(0.0, n)) for n in (min(across), min(down), max(across), max(down)))
    return left, top, right, bottom


def _corner(word: dict[str, Any], name: str) -> float:
    quad = word.get("quad")
    return _finite(quad.get(name) if isinstance(quad, dict) else None, f"{name} of a word")


def _page_size(truth: dict[str, Any]) -> tuple[float, float]:
    size = _section(_section(truth, "meta"), "image_size")
    width, height = (_finite(size.get(name), f"the image's {name}") for name in ("width", "height"))
    if width <= 0 or height <= 0:
        raise CordMappingError("annotation", f"the image is {width} by {height}")
    return width, height


def _finite(value: Any, what: str) -> float:
    if type(value) not in (int, float) or not -1e9 < value < 1e9:
        raise CordMappingError("annotation", f"{what} is {_shown(value)}, not a number of pixels")
    return float(value)


def _section(node: dict[str, Any], name: str) -> dict[str, Any]:
    found = node.get(name)
    if not isinstance(found, (dict, type(None))):
        raise CordMappingError("section_type", f"{name} is {_shown(found)}, not an object")
    return found or {}


def _ids(lines: Lines, key: str) -> list[int]:
    return sorted({_number(line, key) for line in lines})


def _number(line: dict[str, Any], key: str) -> int:
    found = line.get(key)
    if found is None and key == "sub_group_id":
        return 0
    if type(found) is not int:
        raise CordMappingError("annotation", f"{key} of a line is {_shown(found)}, not a number")
    return found


def _one_or_many(value: Any) -> list[Any]:
    return [] if value is None else value if isinstance(value, list) else [value]


def _objects(value: Any, what: str) -> Iterator[dict[str, Any]]:
    return objects([] if value is None else value, "annotation", what, CordMappingError)


def _shown(value: Any) -> str:
    return "missing" if value is None else repr(value)[:60]


class CordRow(NamedTuple):
    """One row of a split: its number in it, the image's bytes, and the annotations, parsed."""

    number: int
    image: bytes
    truth: Any


def parquet_files(source: str, split: str) -> list[str]:
    """The addresses of a split's files: the file that was given, or those of its name in a folder or its data/.

    Raises:
        RequestError: there is none.
    """
    if source.endswith(".parquet"):
        return [source]
    for folder in (source, storage.join(source, "data")):
        names = sorted(storage.listed(folder, deep=False))
        if files := [name for name in names if name.startswith(f"{split}-") and name.endswith(".parquet")]:
            return [storage.join(folder, name) for name in files]
    raise RequestError(f"no {split}-*.parquet in {source} or its folder data; give a CORD-v2 Parquet file or folder")


def read_rows(source: str, split: str) -> Iterator[CordRow]:
    """All rows of a split in order, read a group of rows at a time.

    Raises:
        RequestError: no such file, or none of CORD-v2.
    """
    index = 0
    for address in parquet_files(source, split):
        try:
            file = pq.ParquetFile(io.BytesIO(storage.read(address)))
            for batch in file.iter_batches(batch_size=16, columns=["image", "ground_truth"], use_threads=False):
                for image, truth in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    yield CordRow(index, _image(image, address, index), _truth(truth, address, index))
                    index += 1
        except FileNotFoundError:
            raise RequestError(f"no file at {address}; fetch it with oeb corpus fetch, or give its folder") from None
        except (pa.ArrowException, OSError, ValueError) as error:
            raise RequestError(f"{address} is no CORD-v2 Parquet file: {error}") from error


def _image(value: Any, address: str, index: int) -> bytes:
    data = value.get("bytes") if isinstance(value, dict) else None
    if not isinstance(data, bytes) or not data:
        raise RequestError(f"{address}: row {index} has no image bytes")
    return data


def _truth(value: Any, address: str, index: int) -> Any:
    if not isinstance(value, str):
        raise RequestError(f"{address}: ground_truth of row {index} is no text")
    try:
        return read_json(value.encode("utf-8", "surrogatepass"))
    except ValueError as error:
        raise RequestError(f"{address}: ground_truth of row {index} is no JSON: {error}") from error
