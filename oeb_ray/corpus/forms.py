"""Receipts and invoices: the fields asked for, the schema that says so, and what mapping annotations to them shares.

In: what an annotated data set knows about one document. Out: a Gold with every field of the form, or a MappingError
with the reason why the document cannot be graded. Values are texts as printed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..scoring.field_accuracy.gold import Gold, GoldField


class MappingError(ValueError):
    """The annotations of a document do not say for certain what is right. ``reason``: a word for tables."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(reason, message)
        self.reason, self.message = reason, message

    def __str__(self) -> str:
        return f"{self.message} ({self.reason})"


@dataclass(frozen=True)
class Value:
    """One field. ``compare``: its kind; ``labels``: the classes of the data set that it comes from, best first."""

    name: str
    compare: str
    labels: tuple[str, ...]
    about: str
    required: bool = False


@dataclass(frozen=True)
class Form:
    """A kind of document: its single fields, the fields of each line item, and which of the two come first."""

    name: str
    heads: tuple[Value, ...]
    cells: tuple[Value, ...]
    items_first: bool
    items_about: str

    def schema(self) -> str:
        """The JSON Schema that models are asked with, as JSON text. A field that need not be there may be null."""
        items = {"type": "array", "description": self.items_about, "items": _object(self.cells, {})}
        return json.dumps(_object(self.heads, {"lineItems": items}, first=self.items_first))

    def gold(self, heads: Iterable[GoldField], items: Sequence[Iterable[GoldField]]) -> Gold:
        """The fields in the form's order; those of items are numbered here."""
        numbered = [
            GoldField(f"lineItems.{number}.{cell.path}", cell.value, cell.compare, cell.regions, cell.others)
            for number, cells in enumerate(items)
            for cell in cells
        ]
        fields = [*numbered, *heads] if self.items_first else [*heads, *numbered]
        return Gold(tuple(fields), len(items))


def _object(values: Sequence[Value], others: dict[str, Any], first: bool = False) -> dict[str, Any]:
    own = {value.name: _leaf(value) for value in values}
    properties = {**others, **own} if first else {**own, **others}
    return {
        "type": "object", "properties": properties, "required": list(properties), "additionalProperties": False,
    }  # fmt: skip


def _leaf(value: Value) -> dict[str, Any]:
    return {"type": "string" if value.required else ["string", "null"], "description": value.about}


RECEIPT = Form(
    "receipt",
    heads=(
        Value("subtotal", "money", ("subtotal_price",), "The sum of the items before charges, as printed."),
        Value("discount", "money", ("discount_price",), "What is taken off the whole receipt, as printed."),
        Value("serviceCharge", "money", ("service_price",), "The charge for service, as printed."),
        Value("tax", "money", ("tax_price",), "The tax, as printed."),
        Value("total", "money", ("total_price",), "What is to be paid in the end, as printed.", required=True),
    ),
    cells=(
        Value("description", "text", ("nm",), "The name of the item, as printed.", required=True),
        Value("quantity", "count", ("cnt",), "How many of it, as printed."),
        Value("unitPrice", "money", ("unitprice",), "The price of one, as printed."),
        Value("amount", "money", ("price",), "The price of the line, as printed."),
    ),
    items_first=True,
    items_about=(
        "Every item bought, in printed order. Extras below an item, such as toppings, are items of their own."
    ),
)
INVOICE = Form(
    "invoice",
    heads=(
        Value("vendorName", "text", ("vendor_name",), "Who sends the invoice, as printed."),
        Value("invoiceNumber", "text", ("document_id",), "The number of the invoice, as printed."),
        Value("issueDate", "text", ("date_issue",), "The date of the invoice, as printed."),
        Value("dueDate", "text", ("date_due",), "The date until which it is to be paid, as printed."),
        Value("currency", "text", ("currency_code_amount_due",), "The currency of the amount due, as printed."),
        Value("subtotal", "money", ("amount_total_net",), "The total without tax, as printed."),
        Value("tax", "money", ("amount_total_tax",), "The total of the tax, as printed."),
        Value("total", "money", ("amount_total_gross",), "The total with tax, as printed."),
    ),
    cells=(
        Value("description", "text", ("line_item_description",), "What the line is about, as printed."),
        Value("quantity", "count", ("line_item_quantity",), "How many or how much, as printed."),
        Value("unitPrice", "money", ("line_item_unit_price_net", "line_item_unit_price_gross"),
              "The price of one unit, without tax where both are printed."),
        Value("amount", "money", ("line_item_amount_net", "line_item_amount_gross"),
              "The amount of the line, without tax where both are printed."),
    ),
    items_first=False,
    items_about="Every line of the table of goods and services, in printed order over all pages.",
)  # fmt: skip
FORMS = {form.name: form for form in (RECEIPT, INVOICE)}


def objects(value: Any, reason: str, what: str, error: type[MappingError]) -> Iterator[dict[str, Any]]:
    """The members of a list of objects; raises ``error`` where it is none."""
    if not isinstance(value, list):
        raise error(reason, f"{what} is no list")
    for member in value:
        if not isinstance(member, dict):
            raise error(reason, f"a member of {what} is no object")
        yield member
