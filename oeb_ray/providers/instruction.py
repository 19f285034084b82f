"""What a coding agent is told: the same text for every document, with the document's name and its schema filled in.

In: the document's file name in the working folder, and the schema. Out: the instruction as Markdown.
"""

from __future__ import annotations

from ..digests import text_digest

TEMPLATE = """\
# Extract data from one document

The working folder holds one document, `{document}`. Read it, extract the data that the JSON Schema below describes, and
write the result to `output.json` in the working folder. The schema lies there as `schema.json` too.

## Rules

- `{document}` is the only source. Inspect it with local tools and shell commands; use no web search, no network, no
  browser and no outside service. Scratch files in the working folder are fine.
- The result is one JSON object that follows the schema: its property names, its nesting, its types. Read the
  description of every field, since it says what is meant.
- A field that the document says nothing about is null. Never guess a value.
- An array gets every entry of the document that belongs to it, one by one, in all pages. Do not merge entries, sum
  them up, or stop after the first few.
- For a long regular table, write a small local script that parses it and check its row count against the document. For
  forms and short passages, read the fields directly.
- Before you end, load `output.json` with a JSON parser to see that it is valid.
- Do not print the JSON in your answer. The file is the result; citations are not asked for.

## Schema

{schema}
"""
PROMPT_SHA256 = text_digest(TEMPLATE)


def instruction(document: str, schema: str) -> str:
    """The instruction for a document. ``schema``: JSON text, which is shown in full.

    The fence round it is longer than any run of backticks inside.
    """
    longest = max((len(run) for run in _backticks(schema)), default=0)
    fence = "`" * max(3, longest + 1)
    shown = f"{fence}json\n{schema.rstrip()}\n{fence}"
    return TEMPLATE.replace("{document}", document).replace("{schema}", shown)


def _backticks(text: str) -> list[str]:
    return "".join(sign if sign == "`" else " " for sign in text).split()
