"""Text out of bytes, and the backslash escapes of `E'…'` strings, as PostgreSQL reads them.

Text is what has a form in UTF-8, without NUL: PostgreSQL holds nothing else, and neither do the databases that views
are delivered to.
"""

from __future__ import annotations

import re

from everview.compute.sql.errors import SYNTAX_ERROR, SqlError

_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPE = re.compile(
    r"""\\(?: x(?P<hex>[0-9a-fA-F]{1,2}) | (?P<octal>[0-7]{1,3})
        | u(?P<short>[0-9a-fA-F]{4}) | U(?P<long>[0-9a-fA-F]{8}) | (?P<other>.) )""",
    re.VERBOSE | re.DOTALL,
)
_HIGH, _LOW = range(0xD800, 0xDC00), range(0xDC00, 0xE000)
_CODE_MAX = 0x10FFFF


def utf8(data: bytes, position: int | None = None) -> str:
    """Text from bytes of UTF-8; raises 22021 for anything else, and for NUL."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        bad = " ".join(f"0x{byte:02x}" for byte in data[error.start : max(error.end, error.start + 1)])
        message = f'invalid byte sequence for encoding "UTF8": {bad}'
        raise SqlError("22021", message, position=position) from None
    if "\0" in text:
        raise SqlError("22021", 'invalid byte sequence for encoding "UTF8": 0x00', position=position)
    return text


def unescaped(body: str, position: int | None = None) -> str:
    """The text that the inside of an `E'…'` string means. `\\x` and octal escapes are bytes of UTF-8."""
    if "\\" not in body:
        return body
    text, place, high = bytearray(), 0, None
    for match in _ESCAPE.finditer(body):
        text += body[place : match.start()].encode()
        if high is not None and place != match.start():
            raise _bad_pair(position)
        place = match.end()
        named = match["short"] or match["long"]
        if high is not None and (named is None or int(named, 16) not in _LOW):
            raise _bad_pair(position)
        if named is not None:
            high = _append_code(text, int(named, 16), high, position)
        elif match["hex"] or match["octal"]:
            text.append((int(match["hex"], 16) if match["hex"] else int(match["octal"], 8)) & 0xFF)
        elif match["other"] in "uU":
            hint = "Unicode escapes must be \\uXXXX or \\UXXXXXXXX"
            raise SqlError("22025", "invalid Unicode escape", hint=hint, position=position)
        else:
            text += _LETTERS.get(match["other"], match["other"]).encode()
    if high is not None:
        raise _bad_pair(position)
    text += body[place:].encode()
    return utf8(bytes(text), position)


def _append_code(text: bytearray, code: int, high: int | None, position: int | None) -> int | None:
    """Append a character by its code. The first half of a surrogate pair is given back: it waits for the second."""
    if high is not None:
        code = 0x10000 + ((high - 0xD800) << 10) + (code - 0xDC00)
    elif code in _HIGH:
        return code
    elif code in _LOW:
        raise _bad_pair(position)
    if not 0 < code <= _CODE_MAX:
        raise SqlError(SYNTAX_ERROR, "invalid Unicode escape value", position=position)
    text += chr(code).encode()
    return None


def _bad_pair(position: int | None) -> SqlError:
    return SqlError(SYNTAX_ERROR, "invalid Unicode surrogate pair", position=position)
