"""The little SQL that the fake adapter understands: which statement it is, and its parts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from everview.adapter.contract import CopyFormat
from everview.compute.ir import types as t
from everview.compute.ir.types import Kind, SqlType
from everview.compute.sql.errors import SqlError

_NAMES = {
    "bool": t.BOOLEAN,
    "boolean": t.BOOLEAN,
    "int2": t.INT2,
    "smallint": t.INT2,
    "int4": t.INT4,
    "int": t.INT4,
    "integer": t.INT4,
    "int8": t.INT8,
    "bigint": t.INT8,
    "float4": t.FLOAT4,
    "real": t.FLOAT4,
    "float8": t.FLOAT8,
    "text": t.TEXT,
    "bytea": t.BYTEA,
    "date": t.DATE,
    "time": t.TIME,
    "timestamp": t.TIMESTAMP,
    "timestamptz": t.TIMESTAMPTZ,
    "interval": t.INTERVAL,
    "uuid": t.UUID,
    "json": t.JSONB,
    "jsonb": t.JSONB,
    "mz_timestamp": t.MZ_TIMESTAMP,
}
_TYPE = re.compile(r"([a-z_]\w*)(?:\((\d+)(?:,\s*(\d+))?\))?(\[\])?", re.IGNORECASE)
_ITEM = re.compile(
    r"\s*(?:\$(?P<parameter>\d+)|'(?P<text>(?:[^']|'')*)'|(?P<zero>1/0)|(?P<number>-?\d+)|(?P<null>null))"
    r"(?:::(?P<type>[a-z_]\w*(?:\([\d, ]*\))?(?:\[\])?))?(?:\s+as\s+(?P<name>\w+))?\s*",
    re.IGNORECASE,
)


def type_named(text: str) -> SqlType:
    match = _TYPE.fullmatch(text.strip())
    if match is None:
        raise SqlError("42704", f'type "{text}" does not exist')
    name, first, second, array = match.groups()
    name = name.lower()
    if name == "numeric":
        found = t.numeric(int(first), int(second or 0)) if first else t.numeric()
    elif name in ("varchar", "char"):
        kind = Kind.VARCHAR if name == "varchar" else Kind.CHAR
        found = SqlType(kind, length=int(first) if first else (1 if kind is Kind.CHAR else None))
    elif name in _NAMES:
        found = _NAMES[name]
    else:
        raise SqlError("42704", f'type "{text}" does not exist')
    return t.array_of(found) if array else found


def split(text: str) -> list[str]:
    """Statements at semicolons outside of quotes, each with blanks for what is in front of it."""
    statements, start, quoted = [], 0, False
    for at, character in enumerate(text + ";"):
        if character == "'":
            quoted = not quoted
        elif character == ";" and (not quoted or at == len(text)):
            if text[start:at].strip():
                statements.append(" " * start + text[start:at])
            start = at + 1
    return statements


@dataclass(frozen=True)
class Item:
    """An expression of a SELECT or VALUES list: a parameter or a literal, with its type if it says one."""

    parameter: int | None
    text: str | None
    type: SqlType | None
    name: str
    fails: bool = False


def items(text: str, offset: int = 0) -> list[Item]:
    """A list of expressions; `offset` is where it starts, for positions."""
    found, at = [], 0
    while True:
        match = _ITEM.match(text, at)
        if match is None:
            raise SqlError("42601", "syntax error", position=offset + at + len(text[at:]) - len(text[at:].lstrip()) + 1)
        stated = type_named(match["type"]) if match["type"] else None
        parameter = int(match["parameter"]) if match["parameter"] else None
        if match["number"] is not None:
            text_of, stated = match["number"], stated or t.INT4
        elif match["zero"]:
            text_of, stated = "0", t.INT4
        else:
            text_of = None if match["text"] is None else match["text"].replace("''", "'")
        if stated is None and parameter is None:
            stated = t.TEXT
        found.append(Item(parameter, text_of, stated, match["name"] or "?column?", bool(match["zero"])))
        at = match.end()
        if at == len(text):
            return found
        if text[at] != ",":
            raise SqlError("42601", f'syntax error at or near "{text[at]}"', position=offset + at + 1)
        at += 1


_OPTION = re.compile(r"\s*(\w+)(?:\s+(\w+|'(?:[^']|'')*'|\([^)]*\)))?\s*")
_DEFAULTS = {"text": CopyFormat(), "csv": CopyFormat("csv", ",", "")}


@dataclass
class CopyOptions:
    """The options of COPY, as they are written."""

    given: dict[str, str] = field(default_factory=dict)

    def format(self, columns: list[str]) -> CopyFormat:
        given = self.given
        base = _DEFAULTS[given.get("format", "text")]
        quote = given.get("quote", base.quote)
        forced = given.get("force_quote", "")
        names = columns if forced == "*" else [each.strip() for each in forced.strip("()").split(",") if each.strip()]
        return CopyFormat(
            kind=base.kind,
            delimiter=given.get("delimiter", base.delimiter),
            null=given.get("null", base.null),
            header=given.get("header", "false") in ("true", ""),
            quote=quote,
            escape=given.get("escape", quote),
            force_quote=tuple(map(columns.index, names)),
        )


def copy_options(text: str | None) -> CopyOptions:
    options = CopyOptions()
    for part in re.findall(r"(?:[^,'(]|'(?:[^']|'')*'|\([^)]*\))+", text or ""):
        match = _OPTION.fullmatch(part)
        if match is None:
            raise SqlError("42601", f"syntax error in COPY options: {part}")
        value = match[2] or ""
        options.given[match[1].lower()] = value[1:-1].replace("''", "'") if value.startswith("'") else value
    return options
