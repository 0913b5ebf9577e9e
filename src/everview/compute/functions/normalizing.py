"""Unicode's normal forms of long texts.

Python puts the combining characters behind a letter in order by insertion, which takes quadratic time, and holds the
interpreter's lock meanwhile. So a text goes in pieces that begin where nothing depends on what is before; in a piece
that is long because it is all combining characters, these are put in order first.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal, TypeAlias, get_args

from everview.compute.cancel import check_wanted, paced
from everview.compute.functions.contract import Failure
from everview.compute.functions.sorting import sort

Form: TypeAlias = Literal["NFC", "NFD", "NFKC", "NFKD"]
_FORMS: dict[str, Form] = {form: form for form in get_args(Form)}
_PIECE = 1_024
_CHECK_EVERY = 4_096


def normalized(text: str, form: str = "NFC") -> str:
    """The text in a normal form."""
    known = _FORMS.get(form.upper())
    if known is None:
        raise Failure("22023", f"invalid normalization form: {form}")
    if len(text) <= _PIECE or text.isascii():
        return unicodedata.normalize(known, text)
    pieces, start = [], 0
    while start < len(text):
        check_wanted()
        end = start + _PIECE
        while end < len(text) and not _begins(text[end], _decomposed(known)):
            end += 1
            if end % _CHECK_EVERY == 0:
                check_wanted()
        piece = text[start:end]
        pieces.append(unicodedata.normalize(known, piece if len(piece) <= 2 * _PIECE else _in_order(piece, known)))
        start = end
    return "".join(pieces)


def _decomposed(form: Form) -> Form:
    return "NFKD" if "K" in form else "NFD"


@lru_cache(maxsize=4_096)
def _begins(character: str, form: Form) -> bool:
    """Whether nothing before the character goes together with it, or changes places with it.

    Of letters that is so but for those of Hangul. Signs that are no letters may be the second part of a letter.
    """
    first = unicodedata.normalize(form, character)[0]
    is_letter = unicodedata.combining(first) == 0 and unicodedata.category(first)[0] == "L"
    return first < "\u0300" or (is_letter and not "\u1100" <= first <= "\u11ff")


def _in_order(text: str, form: Form) -> str:
    """An equivalent text, decomposed, with combining characters in canonical order."""
    ordered: list[str] = []
    behind: list[str] = []  # combining characters
    for character in paced(_characters(text, _decomposed(form))):
        if unicodedata.combining(character):
            behind.append(character)
            continue
        sort(behind, unicodedata.combining)
        ordered += behind
        behind.clear()
        ordered.append(character)
    sort(behind, unicodedata.combining)
    return "".join([*ordered, *behind])


def _characters(text: str, form: Form) -> Iterable[str]:
    for character in text:
        yield from unicodedata.normalize(form, character)
