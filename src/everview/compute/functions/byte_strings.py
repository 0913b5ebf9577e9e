"""Functions of bytea: parts, single bytes and bits, bytes as text and back, and the encodings of characters."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from everview.compute.functions.contract import Failure
from everview.compute.functions.signatures import Family
from everview.compute.functions.slices import SLICE, runs, slices
from everview.compute.functions.spark_sql import NotOnSpark, unquoted
from everview.compute.functions.trimming import trimmed

FUNCTIONS = Family()
define = FUNCTIONS.define
_BLANK, _BLANKS = " \\t\\n\\r", b" \t\n\r"
_LINES_BYTES = 57 << 12  # 57 bytes are the 76 characters of a line in base64
# A bounded part of a long text: see `runs`.
_HEX = re.compile(rf"(?:(?:[0-9a-fA-F]{{2}}){{1,1024}}+|[{_BLANK}]{{1,4096}}+){{1,16}}+")
_ESCAPED = re.compile(rb"(?:[^\\]{1,4096}+|\\\\|\\[0-3][0-7][0-7]){1,1024}+")
_ESCAPE_SIGN = re.compile(rb"\\(\\|[0-7]{3})")
_SHOWN = {byte: "\\\\" if byte == 92 else chr(byte) if 0 < byte < 128 else f"\\{byte:03o}" for byte in range(256)}
# By PostgreSQL's names of encodings, without what people put between their letters.
_CODECS = {
    **dict.fromkeys(("utf8", "unicode"), "utf-8"),
    **dict.fromkeys(("latin1", "iso88591"), "latin-1"),
    **dict.fromkeys(("win1252", "windows1252"), "cp1252"),
    "win1251": "cp1251",
}


def _inside(index: int, count: int) -> int:
    if not 0 <= index < count:
        raise Failure("2202E", f"index {index} out of valid range, 0..{count - 1}")
    return index


def _set_byte(data: bytes, index: int, value: int) -> bytes:
    _inside(index, len(data))
    return data[:index] + bytes([value & 255]) + data[index + 1 :]


def _set_bit(data: bytes, index: int, value: int) -> bytes:
    _inside(index, 8 * len(data))
    if value not in (0, 1):
        raise Failure("22023", "new bit must be 0 or 1")
    place, mask = index // 8, 1 << index % 8
    return _set_byte(data, place, data[place] | mask if value else data[place] & ~mask)


def _unrecognized(style: str) -> Failure:
    return Failure("22023", f'unrecognized encoding: "{style}"')


def _encode(data: bytes, style: str) -> str:
    match style.lower():
        case "hex":
            return data.hex()
        case "base64":
            lines = (line for part in slices(data, _LINES_BYTES) for line in _lines(base64.b64encode(part).decode()))
            return "\n".join(lines)
        case "escape":
            return "".join(part.decode("latin-1").translate(_SHOWN) for part in slices(data))
    raise _unrecognized(style)


def _decode(text: str, style: str) -> bytes:
    match style.lower():
        case "hex":
            parts = list(runs(_HEX, text))
            if sum(map(len, parts)) < len(text):
                raise Failure("22023", "invalid hexadecimal data")
            return b"".join(map(bytes.fromhex, parts))
        case "base64":
            return _from_base64(b"".join(part.encode().translate(None, _BLANKS) for part in slices(text)))
        case "escape":
            return _unescaped(text.encode())
    raise _unrecognized(style)


def _lines(encoded: str) -> list[str]:
    return re.findall(".{1,76}", encoded)


def _from_base64(encoded: bytes) -> bytes:
    parts = list(slices(encoded, SLICE))
    try:
        if any(b"=" in part for part in parts[:-1]):
            raise ValueError
        return b"".join(base64.b64decode(part, validate=True) for part in parts)
    except (ValueError, binascii.Error):
        raise Failure("22023", "invalid base64 data") from None


def _unescaped(data: bytes) -> bytes:
    parts = list(runs(_ESCAPED, data))
    if sum(map(len, parts)) < len(data):
        raise Failure("22P02", "invalid input syntax for type bytea")
    meant = lambda sign: b"\\" if sign[1] == b"\\" else bytes([int(sign[1], 8)])
    return b"".join(_ESCAPE_SIGN.sub(meant, part) for part in parts)


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
_ENCODE = (
    f"CASE lower({{1}}) WHEN 'hex' THEN lower(hex({{0}})) WHEN 'base64' THEN {_LINES} WHEN 'escape' THEN {_ESCAPE} END"
)
for _name, _front, _back in (("btrim", True, True), ("ltrim", True, False), ("rtrim", False, True)):
    define(f"{_name}(bytea, bytea) -> bytea", partial(trimmed, front=_front, back=_back))
define("position(bytea, bytea) -> int4", lambda data, part: data.find(part) + 1)
define("bit_length(bytea) -> int4", lambda data: 8 * len(data), "bit_length({0})")
_ones = lambda data: sum(int.from_bytes(part, "little").bit_count() for part in slices(data))
define("bit_count(bytea) -> int8", _ones)
define("get_byte(bytea, int4) -> int4", lambda data, index: data[_inside(index, len(data))], fails=True)
define("set_byte(bytea, int4, int4) -> bytea", _set_byte, fails=True)
# Bits are counted from the lowest of each byte.
_get_bit = lambda data, index: data[_inside(index, 8 * len(data)) // 8] >> index % 8 & 1
define("get_bit(bytea, int8) -> int4", _get_bit, fails=True)
define("set_bit(bytea, int8, int4) -> bytea", _set_bit, fails=True)
define("encode(bytea, text) -> text", _encode, _ENCODE, fails=True)
define("decode(text, text) -> bytea", _decode, _decode_sql, fails=True)
define("convert_from(bytea, text) -> text", _from_encoding, fails=True)
define("convert_to(text, text) -> bytea", _to_encoding, fails=True)
