"""Values cut short, as a connector asks for whose destination takes no long ones: its policy of serialization.

Texts are cut after so many bytes, at the end of a character; arrays and objects inside of a column after so many items
and members. A limit of 0 is none. Keys are never cut: two of them could become one. What was cut in a row is told by
the field `_meta/flow_truncated`, where the connector takes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from json.encoder import encode_basestring as quoted
from typing import Any

from everview.compute.functions.json_value import dump
from everview.compute.ir.types import Kind
from everview.flow.documents import loads
from everview.flow.tuples import pack_bytes, pack_text

_TEXTS = (Kind.TEXT, Kind.VARCHAR, Kind.CHAR, Kind.UNKNOWN)
_NESTED = (Kind.JSONB, Kind.ARRAY)
_CHARACTER_BYTES_MAX = 4
_BASE64_LETTERS = 4  # that stand for bytes together


@dataclass(frozen=True)
class Truncation:
    """The most that a connector takes; None is no limit."""

    text_bytes: int | None
    items: int | None
    members: int | None

    @classmethod
    def of(cls, policy: Mapping[str, Any] | None) -> Truncation | None:
        """The policy of a binding as it was validated; None if nothing is to be cut."""
        names = ("strTruncateAfter", "arrayTruncateAfter", "nestedObjTruncateAfter")
        limits = [int((policy or {}).get(name) or 0) or None for name in names]
        return cls(*limits) if any(limits) else None

    def column(
        self, kind: Kind, texts: list[str], packed: list[bytes], cut: list[bool]
    ) -> tuple[list[str], list[bytes]]:
        """A column, as JSON and packed, with its long values cut; notes the rows of which something was cut."""
        if kind in _TEXTS or kind is Kind.BYTEA:
            least = self.text_bytes
        else:
            limits = [each for each in (self.text_bytes, self.items, self.members) if each is not None]
            least = min(limits) if kind in _NESTED else None
        if least is None or not any(len(text) * _CHARACTER_BYTES_MAX > least for text in texts):
            return texts, packed
        texts, packed = list(texts), list(packed)
        for at, text in enumerate(texts):
            if text == "null" or len(text) * _CHARACTER_BYTES_MAX <= least:
                continue
            whole = loads(text) if kind in _NESTED else json.loads(text)
            short = self._text(whole, whole_groups=True) if kind is Kind.BYTEA else self._shortened(whole)
            if short != whole:
                cut[at] = True
                texts[at] = dump(short) if kind in _NESTED else quoted(short)
                packed[at] = pack_bytes(texts[at].encode()) if kind in _NESTED else pack_text(short)
        return texts, packed

    def _shortened(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list):
            return [self._shortened(each) for each in value[: self.items]]
        if isinstance(value, dict):
            return {name: self._shortened(value[name]) for name in list(value)[: self.members]}
        return value

    def _text(self, text: str, *, whole_groups: bool = False) -> str:
        """The first bytes of a text; of base64 as many letters as stand for whole bytes."""
        limit = self.text_bytes
        if limit is None or len(text) * _CHARACTER_BYTES_MAX <= limit:
            return text
        content = text.encode()
        if len(content) <= limit:
            return text
        limit -= limit % _BASE64_LETTERS if whole_groups else 0
        return content[:limit].decode(errors="ignore")
