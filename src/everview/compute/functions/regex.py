"""PostgreSQL's regular expressions and LIKE patterns, translated to Python's and to Java's.

The dot matches a newline, and $ only the very end. Of PostgreSQL's own syntax, bracket classes such as [[:alpha:]] and
the word escapes \\y, \\m and \\M are translated; alternatives are tried from the left, not for the longest.
"""

from __future__ import annotations

import re
from functools import lru_cache

from everview.compute.functions.contract import Failure

_CLASSES = {
    "alpha": ("^\\W\\d_", "\\p{Alpha}"),
    "digit": ("\\d", "0-9"),
    "alnum": ("^\\W_", "\\p{Alnum}"),
    "upper": ("A-Z", "\\p{Upper}"),
    "lower": ("a-z", "\\p{Lower}"),
    "space": ("\\s", "\\s"),
    "punct": ("!-/:-@\\[-`{-~", "\\p{Punct}"),
    "blank": (" \\t", " \\t"),
    "xdigit": ("0-9A-Fa-f", "0-9A-Fa-f"),
}
_ASCII = {"alpha": "a-zA-Z", "alnum": "a-zA-Z0-9"}
_WORDS = {"\\y": "\\b", "\\m": "\\b(?=\\w)", "\\M": "\\b(?<=\\w)"}
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\[:\w+:\]|\\.|[^\]\\])*\]|\$|.", re.DOTALL)
FLAGS = {"i", "g", "c", "n", "s", "m", "x"}


def translated(pattern: str, *, java: bool) -> str:
    """The pattern in Python's or in Java's syntax, without flags."""

    def piece(match: re.Match[str]) -> str:
        token = match[0]
        if token == "$":
            return "\\z" if java else "\\Z"
        if token.startswith("["):
            return re.sub(r"\[:(\w+):\]", lambda name: _class(name[1], java), token)
        return _WORDS.get(token, token)

    return _TOKEN.sub(piece, pattern)


def _class(name: str, java: bool) -> str:
    if name not in _CLASSES:
        raise Failure("2201B", "invalid regular expression: invalid character class")
    return _ASCII.get(name) or _CLASSES[name][java]


@lru_cache(maxsize=1024)
def compiled(pattern: str, flags: str = "") -> re.Pattern[str]:
    """The pattern for Python."""
    unknown = set(flags) - FLAGS
    if unknown:
        raise Failure("22023", f'invalid regular expression option: "{min(unknown)}"')
    mode = re.DOTALL
    if "i" in flags:
        mode |= re.IGNORECASE
    if "x" in flags:
        mode |= re.VERBOSE
    if "n" in flags or "m" in flags:
        mode = (mode & ~re.DOTALL) | re.MULTILINE
    try:
        return re.compile(translated(pattern, java=False), mode)
    except re.error as error:
        raise Failure("2201B", f"invalid regular expression: {error}") from None


def java(pattern: str, flags: str = "") -> str:
    """The pattern for Java, with its flags in front."""
    compiled(pattern, flags)  # refuses what is none
    modes = (
        ("m" if "n" in flags or "m" in flags else "s") + ("iu" if "i" in flags else "") + ("x" if "x" in flags else "")
    )
    return f"(?{modes}){translated(pattern, java=True)}"


def groups(pattern: str, flags: str = "") -> int:
    """How many groups capture."""
    return compiled(pattern, flags).groups


def like(pattern: str, escape: str = "\\") -> str:
    """A LIKE pattern as a regular expression of Python's and Java's both, to be matched in full."""
    parts, literal = [], False
    for character in pattern:
        if literal:
            parts.append(_plain(character))
            literal = False
        elif escape and character == escape:
            literal = True
        else:
            parts.append({"%": ".*", "_": "."}.get(character) or _plain(character))
    if literal:
        raise Failure("22025", "LIKE pattern must not end with escape character")
    return "".join(parts)


_SIMILAR = re.compile(r"\[\^?\]?[^\]]*\]|.", re.DOTALL)
_SIMILAR_WORDS = {"%": ".*", "_": ".", "(": "(?:"}


def similar(pattern: str, escape: str = "\\") -> str:
    """A pattern of SIMILAR TO as a regular expression of PostgreSQL's, to be searched for."""
    if len(escape) > 1:
        raise Failure("22025", "invalid escape string")
    parts: list[str] = []
    place = 0
    while place < len(pattern):
        if escape and pattern[place] == escape:
            parts += map(_plain, pattern[place + 1 : place + 2])  # at the end an escape means nothing
            place += 2
            continue
        token = _SIMILAR.match(pattern, place)
        assert token is not None
        place = token.end()
        known = _SIMILAR_WORDS.get(token[0], token[0])
        parts.append("\\" + known if known in ("^", "$", "\\", ".") and token[0] != "_" else known)
    return f"^(?:{''.join(parts)})$"


def _plain(character: str) -> str:
    return character if character.isalnum() or character in " _" or ord(character) > 127 else "\\" + character


def replacement(text: str, groups: int, *, java: bool) -> str:
    """What \\1, \\& and \\\\ of a replacement are in Python's or Java's; a group that is not there is empty."""

    def piece(match: re.Match[str]) -> str:
        token = match[0]
        if len(token) == 2 and token[1].isdigit():
            if int(token[1]) > groups:
                return ""
            return f"${token[1]}" if java else f"\\g<{token[1]}>"
        if token == "\\&":
            return "$0" if java else "\\g<0>"
        if token in ("\\\\", "\\"):
            return "\\\\"
        if token == "$":
            return "\\$" if java else "$"
        return "\\\\" + token[1:] if token.startswith("\\") else token

    return re.sub(r"\\.|\\|\$", piece, text, flags=re.DOTALL)
