"""Bytes as text and back: encode, decode, and the encodings of characters.

On Spark what cannot be said there, such as reading escapes, is called in Python.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from typing import Any

from everview.compute.functions.contract import Failure
from everview.compute.functions.family import Family
from everview.compute.functions.spark_sql import NotOnSpark, not_on_spark, unquoted
from everview.compute.ir.types import BYTEA, TEXT

FUNCTIONS = Family()
_add = FUNCTIONS.add
_BLANK = " \\t\\n\\r"
_HEX = re.compile(rf"(?:[{_BLANK}]*[0-9a-fA-F]{{2}})*[{_BLANK}]*")
_ESCAPED = re.compile(rb"[^\\]|\\\\|\\[0-3][0-7][0-7]", re.DOTALL)
# By PostgreSQL's names of encodings, without what people put between their letters.
_CODECS = {
    **dict.fromkeys(("utf8", "unicode"), "utf-8"),
    **dict.fromkeys(("latin1", "iso88591"), "latin-1"),
    **dict.fromkeys(("win1252", "windows1252"), "cp1252"),
    "win1251": "cp1251",
}


def _unrecognized(style: str) -> Failure:
    return Failure("22023", f'unrecognized encoding: "{style}"')


def _encode(data: bytes, style: str) -> str:
    match style.lower():
        case "hex":
            return data.hex()
        case "base64":
            return "\n".join(re.findall(".{1,76}", base64.b64encode(data).decode()))
        case "escape":
            return "".join("\\\\" if byte == 92 else chr(byte) if 0 < byte < 128 else f"\\{byte:03o}" for byte in data)
    raise _unrecognized(style)


def _decode(text: str, style: str) -> bytes:
    match style.lower():
        case "hex":
            if not _HEX.fullmatch(text):
                raise Failure("22023", "invalid hexadecimal data")
            return bytes.fromhex(text)
        case "base64":
            try:
                return base64.b64decode(re.sub(f"[{_BLANK}]", "", text), validate=True)
            except (ValueError, binascii.Error):
                raise Failure("22023", "invalid base64 data") from None
        case "escape":
            return _unescaped(text.encode())
    raise _unrecognized(style)


def _unescaped(data: bytes) -> bytes:
    pieces, place = [], 0
    while place < len(data):
        piece = _ESCAPED.match(data, place)
        if piece is None:
            raise Failure("22P02", "invalid input syntax for type bytea")
        place = piece.end()
        pieces.append(bytes([int(piece[0][1:], 8)]) if len(piece[0]) == 4 else piece[0][:1])
    return b"".join(pieces)


def _decode_sql(args: Sequence[str], _types: Any, _result: Any) -> str:
    blank = f"[{_BLANK}]".replace("\\", "\\\\")
    bare = f"regexp_replace({args[0]}, '{blank}', '')"
    match (unquoted(args[1]) or "").lower():
        case "hex":
            pairs = f"'^({blank}*[0-9a-fA-F]{{2}})*{blank}*$'"
            return f"CASE WHEN {args[0]} RLIKE {pairs} THEN unhex({bare}) END"
        case "base64":
            return f"try_to_binary({bare}, 'base64')"
    raise NotOnSpark("decode of escapes, or by a style from a column")


def _codec(name: str, role: str) -> str:
    found = _CODECS.get(re.sub("[^a-z0-9]", "", name.lower()))
    if found is None:
        raise Failure("22023", f'invalid {role} encoding name "{name}"')
    return found


def _from_encoding(data: bytes, name: str) -> str:
    codec = _codec(name, "source")
    try:
        text = data.decode(codec)
    except UnicodeDecodeError as error:
        shown = " ".join(f"0x{byte:02x}" for byte in data[error.start : error.end])
        raise Failure("22021", f'invalid byte sequence for encoding "{name.upper()}": {shown}') from None
    if "\0" in text:
        raise Failure("22021", f'invalid byte sequence for encoding "{name.upper()}": 0x00')
    return text


def _to_encoding(text: str, name: str) -> bytes:
    codec = _codec(name, "destination")
    try:
        return text.encode(codec)
    except UnicodeEncodeError as error:
        shown = text[error.start]
        raise Failure("22P05", f'character "{shown}" has no equivalent in encoding "{name.upper()}"') from None


_LINES = "regexp_replace(regexp_replace(base64({0}), '[\\\\r\\\\n]', ''), '(.{{76}})(?=.)', '$1\\n')"
_ESCAPE = (
    "array_join(transform(regexp_extract_all(hex({0}), '(..)', 1), h -> CASE WHEN h = '5C' THEN '\\\\\\\\'"
    " WHEN h BETWEEN '01' AND '7F' THEN decode(unhex(h), 'UTF-8')"
    " ELSE concat('\\\\', lpad(conv(h, 16, 8), 3, '0')) END), '')"
)
_add(
    "encode",
    (BYTEA, TEXT),
    TEXT,
    _encode,
    f"CASE lower({{1}}) WHEN 'hex' THEN lower(hex({{0}})) WHEN 'base64' THEN {_LINES} WHEN 'escape' THEN {_ESCAPE} END",
    fails=True,
)
_add("decode", (TEXT, TEXT), BYTEA, _decode, _decode_sql, fails=True)
_add("convert_from", (BYTEA, TEXT), TEXT, _from_encoding, not_on_spark("convert_from"), fails=True)
_add("convert_to", (TEXT, TEXT), BYTEA, _to_encoding, not_on_spark("convert_to"), fails=True)
