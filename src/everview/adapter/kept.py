"""Statements that a session has prepared and may send again, as drivers do that prepare everything each time.

What a statement takes and gives depends on the catalog and the settings. Both are values that are replaced when they
change, so a statement is as it was as long as they are the very same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from everview.adapter.catalog.state import Catalog
from everview.adapter.contract import Prepared
from everview.compute.ir.types import SqlType

KEPT_MAX = 50
TEXT_CHARACTERS_MAX = 2_000
_END = "; \t\r\n"  # a text means the same with or without it


class KeptStatements:
    """The statements of one session; the least recently used are forgotten first."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, tuple[SqlType | None, ...]], tuple[Prepared, Catalog, Mapping[str, str]]] = {}

    def get(
        self, text: str, types: Sequence[SqlType | None], catalog: Catalog, settings: Mapping[str, str]
    ) -> Prepared | None:
        """A statement, if it was kept with this very catalog and these very settings."""
        if not self._kept or len(text) > TEXT_CHARACTERS_MAX:
            return None
        key = (text.rstrip(_END), tuple(types))
        found = self._kept.pop(key, None)
        if found is None or found[1] is not catalog or found[2] is not settings:
            return None
        self._kept[key] = found
        return found[0]

    def put(
        self,
        text: str,
        types: Sequence[SqlType | None],
        prepared: Prepared,
        catalog: Catalog,
        settings: Mapping[str, str],
    ) -> None:
        """Keep a statement."""
        if len(text) > TEXT_CHARACTERS_MAX:
            return
        self._kept[text.rstrip(_END), tuple(types)] = prepared, catalog, settings
        while len(self._kept) > KEPT_MAX:
            del self._kept[next(iter(self._kept))]
