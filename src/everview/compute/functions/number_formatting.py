"""to_char of numbers, by the patterns that people use: digits, groups, a point, a sign, FM, and text in front.

On Spark this is called in Python. What PostgreSQL has besides (EEEE, RN, TH, V, PL, L) is refused by name.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import lru_cache
from typing import NamedTuple

from everview.compute.functions.contract import Failure
from everview.compute.functions.numbers import EXACT
from everview.compute.functions.signatures import Family

FUNCTIONS = Family()
_PATTERN = re.compile(
    r'(?P<fill>FM)?(?P<text>(?:\$|"[^"\\]*")*)(?P<before>SG|S|MI)?(?P<whole>[09](?:[09,G]*[09])?)'
    r"(?:[.D](?P<fraction>[09]+))?(?P<after>SG|S|MI|PR)?",
    re.IGNORECASE,
)


class _Form(NamedTuple):
    text: str
    before: str
    whole: str
    fraction: str
    after: str
    fill: bool  # whether blanks and zeros that are only there for the width are left out


@lru_cache(256)
def _form(pattern: str) -> _Form:
    found = _PATTERN.fullmatch(pattern)
    if found is None or (found["before"] and found["after"]):
        shown = pattern if len(pattern) <= 40 else pattern[:40] + "…"
        raise Failure("0A000", f'to_char of a number by the pattern "{shown}" is not supported')
    text = found["text"].replace('"', "")
    before, after = ((found[name] or "").upper() for name in ("before", "after"))
    whole = found["whole"].upper().replace("G", ",")
    return _Form(text, before, whole, found["fraction"] or "", after, bool(found["fill"]))


def to_char(value: Decimal | int, pattern: str) -> str:
    form = _form(pattern)
    with localcontext(EXACT):
        rounded = abs(Decimal(value)).quantize(Decimal(1).scaleb(-len(form.fraction)), ROUND_HALF_UP)
    digits, _, decimals = f"{rounded:f}".partition(".")
    negative = value < 0 and rounded != 0
    places = sum(each in "09" for each in form.whole)
    if digits.strip("0") == "":
        bare = form.fill and rounded == 0 and "0" not in form.fraction  # else only the point would be left
        digits = "0" if bare or not form.fraction else ""
    if len(digits) > places:
        digits, decimals = "#" * places, "#" * len(form.fraction)
    body = _whole(form, digits, places)
    if form.fraction:
        kept = decimals
        if form.fill:
            least = form.fraction.rfind("0") + 1
            kept = decimals[:least] + decimals[least:].rstrip("0")
        body += "." + kept
    return form.text + _signed(form, body, negative)


def _whole(form: _Form, digits: str, places: int) -> str:
    """The part before the point: blanks where nothing is to be seen yet."""
    first_zero = next((at for at, each in enumerate(form.whole) if each == "0"), len(form.whole))
    padded = digits.rjust(places)
    shown: list[str] = []
    place, begun = 0, False
    for at, each in enumerate(form.whole):
        if each == ",":
            shown.append("," if begun else " ")
            continue
        digit = padded[place]
        place += 1
        if digit == " " and at >= first_zero:
            digit = "0"
        begun = begun or digit != " "
        shown.append(digit)
    return "".join(shown)


def _signed(form: _Form, body: str, negative: bool) -> str:
    kept = body.lstrip(" ")
    blanks = "" if form.fill else " " * (len(body) - len(kept))
    sign = "-" if negative else "+"
    quiet = "-" if negative else "" if form.fill else " "
    if form.after == "PR":
        marks = ("<", ">") if negative else ("", "") if form.fill else (" ", " ")
        return f"{blanks}{marks[0]}{kept}{marks[1]}"
    if form.after:
        return blanks + kept + (quiet if form.after == "MI" else sign)
    if form.before == "S":
        return blanks + sign + kept
    if form.before:
        return (quiet if form.before == "MI" else sign) + blanks + kept
    return blanks + quiet + kept


FUNCTIONS.define("to_char(T, text) -> text", to_char, fails=True, T="int4 int8 numeric")
