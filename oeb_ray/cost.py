"""What scoring a document will take, from the sizes of its gold and its prediction.

In: bytes. Out: seconds and bytes of memory, rough and for the dense worst case: tables whose rows all resemble each
other. They order the work, tell Ray what may run side by side, and say which documents are scored apart from others.
"""

from __future__ import annotations

from typing import NamedTuple

ROW_BYTES = 200  # of JSON in a row of an ordinary table
CELL_BYTES = 40  # of memory for a pair of rows that resemble each other
TREE_BYTES = 60  # of memory for a byte of JSON
CELL_SECONDS, BYTE_SECONDS, LEAST_SECONDS = 3e-7, 2e-6, 0.002
SUMMARY_BYTES = 2_500  # of memory for a document of a Run that is summed up; 1,900 were measured
APART = 4  # a document that may take a quarter of a node's memory is scored in a process of its own


class Cost(NamedTuple):
    """Seconds of one processor, and bytes of memory beyond an idle worker's."""

    seconds: float
    memory: int


def expected(gold_bytes: int, prediction_bytes: int) -> Cost:
    """The Cost of one document, whose largest table is taken to be all of it."""
    size = gold_bytes + prediction_bytes
    cells = (gold_bytes / ROW_BYTES) * (prediction_bytes / ROW_BYTES)
    seconds = LEAST_SECONDS + BYTE_SECONDS * size + CELL_SECONDS * cells
    return Cost(seconds, int(TREE_BYTES * size + CELL_BYTES * cells))


def too_large(gold: bytes | None, prediction: bytes | None) -> str:
    """The text of the row of a document that could not be scored; the estimate, since no figure would repeat itself."""
    memory = expected(len(gold or b""), len(prediction or b"")).memory
    return f"scoring it takes about {memory / 1e9:.1f} GB of memory, more than there is"
