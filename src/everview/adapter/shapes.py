"""The shape of a statement's text: what is left when its whole numbers are taken out.

Clients that write values into the text send one shape again and again. As a statement with parameters in the places of
the numbers it is known, and only numbers have to be read. That it means the same is for the caller to see to: it takes
such a statement only for one in which every number is compared with a column (`glance`), and nowhere else can a number
mean something else than a parameter would, as in `ORDER BY 1`.
"""

from __future__ import annotations

import re

TEXT_CHARACTERS_MAX = 1_000
NUMBERS_MAX = 20
# Up to nine digits: an integer, whatever they are. Not part of a name, a fraction or an exponent.
_NUMBER = re.compile(r"(?<![\w.$])(\d{1,9})(?![\w.])")
# Quotes and comments may hold what looks like numbers; parameters are there already; a semicolon ends a statement.
_OTHER = re.compile(r"['\"$;\\]|--|/\*")
_BLANK_END = "; \t\r\n"


def shape_of(text: str) -> tuple[str, tuple[int, ...]] | None:
    """A text with parameters in the places of its whole numbers, and the numbers; None if it is not so plain."""
    if len(text) > TEXT_CHARACTERS_MAX:
        return None
    text = text.rstrip(_BLANK_END)
    if not text.isascii() or _OTHER.search(text):
        return None
    pieces = _NUMBER.split(text)
    numbers = pieces[1::2]
    if not 0 < len(numbers) <= NUMBERS_MAX:
        return None
    for place in range(len(numbers)):
        pieces[2 * place + 1] = f"${place + 1}"
    return "".join(pieces), tuple(map(int, numbers))
