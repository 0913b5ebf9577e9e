"""Reading URLs without repeating in an error what may be a password."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

from everview.storage.errors import InvalidUsage

ESCAPE_HINT = "in a URL, characters such as %, @, /, ? and # of a password are written %25, %40, %2F, %3F and %23"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")


def scheme_of(url: str | None) -> str | None:
    """The scheme in lower case; None for a path."""
    named = _SCHEME.match(url or "")
    return named[1].lower() if named else None


def split(url: str) -> SplitResult:
    """The parts of a URL."""
    try:
        return urlsplit(url)
    except ValueError:  # which cites the URL
        scheme = scheme_of(url)
        named = "the address" if scheme is None else f"the address that starts with {scheme}:"
        raise InvalidUsage(f"{named} cannot be read", hint=ESCAPE_HINT) from None


def without_secrets(url: str) -> str:
    """The URL without user, password and options: what may be shown and logged."""
    scheme = scheme_of(url)
    if scheme is None:
        return url
    try:
        parts = split(url)
    except InvalidUsage:
        return f"{scheme}://…"
    if "@" in f"{parts.path}{parts.query}{parts.fragment}" and "@" not in parts.netloc:
        return f"{scheme}://…"  # its password may have a character that ends the host
    path = parts.path.partition(";")[0]  # where options of Spark Connect begin
    return f"{scheme}://{parts.netloc.rpartition('@')[2]}{path}"
