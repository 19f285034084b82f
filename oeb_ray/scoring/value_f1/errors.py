"""Why there is no score: the output's fault, which counts as 0, or the reference's, which counts for nobody."""

from __future__ import annotations


class OutputNotObject(ValueError):
    """The output is no object, nor can it be read as one: it earns nothing."""


class Ungradable(ValueError):
    """Reference, schema or rules give nothing to score against, or more than can be scored: no figure is written."""
