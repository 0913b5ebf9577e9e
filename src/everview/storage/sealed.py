"""A Consensus whose values carry checksums, so that damage is found entry by entry and never believed.

A value is sealed with a checksum of its key, its version and itself. An entry that fails the check is still given, for
others may be needed beside it; whoever looks at its value gets `Corruption`, with its key. Batches have checksums of
their own, and the format is read by versions that know no seals. An environment that began without seals notes since
which epoch it has them: of older entries, those without a seal are taken as they are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import xxhash

from everview.storage.codec import FORMAT, SEALED
from everview.storage.consensus.contract import Conflict, Consensus, Entry, entry_at
from everview.storage.errors import Corruption

_SEAL = b"\xf5Ev\x01"  # no value of older versions begins so: neither JSON nor the length of a spec
_SUM_BYTES = 8
_UNSEALED = ("inline/", "run/")


class DamagedEntry(Entry):
    """An entry whose bytes were changed after they were written."""

    __slots__ = ("_key",)
    _key: str

    def __init__(self, key: str, version: Any) -> None:
        object.__setattr__(self, "version", version if isinstance(version, int) else -1)
        object.__setattr__(self, "_key", key)

    @property
    def value(self) -> bytes:
        """Raises `Corruption`."""
        raise damaged(self._key)


def damaged(key: str) -> Corruption:
    """The error for an entry that differs from what was written."""
    return Corruption(
        f"entry {key} of the metadata is damaged",
        detail="its checksum does not match its bytes",
        hint="restore the metadata from a copy",
    )


class SealedConsensus:
    """Seals what is written to another Consensus, and checks what is read from there."""

    def __init__(self, inner: Consensus) -> None:
        self._inner = inner
        self._since: int | None = None  # the epoch from which on all values are sealed
        entry = entry_at(inner, SEALED)
        if entry is not None:
            self._since = _number(self._opened(SEALED, entry))

    def get(self, keys: Sequence[str]) -> dict[str, Entry]:
        return {key: self._opened(key, entry) for key, entry in self._inner.get(keys).items()}

    def scan(self, *prefixes: str) -> list[tuple[str, Entry]]:
        found = self._inner.scan(*prefixes)
        # Where a key itself is damaged, the store may give what nobody asked for; what is missing is noticed elsewhere.
        return [(key, self._opened(key, entry)) for key, entry in found if key.startswith(prefixes)]

    def commit(self, expected: Mapping[str, int | None], writes: Mapping[str, bytes | None], version: int) -> None:
        sealed = {key: None if value is None else _sealed(key, version, value) for key, value in writes.items()}
        try:
            self._inner.commit(expected, sealed, version)
        except Conflict as conflict:
            raise Conflict({key: self._opened(key, entry) for key, entry in conflict.current.items()}) from conflict
        if writes.get(SEALED) is not None:
            self._since = version >> 32

    def close(self) -> None:
        self._inner.close()

    def _opened(self, key: str, entry: Entry) -> Entry:
        value = entry.value
        if not isinstance(value, bytes) or not isinstance(entry.version, int):
            return DamagedEntry(key, entry.version)
        if key == FORMAT or key.startswith(_UNSEALED):
            return entry
        if not value.startswith(_SEAL):
            unsealed = self._since is None or entry.version >> 32 < self._since
            return entry if unsealed else DamagedEntry(key, entry.version)
        at = len(_SEAL) + _SUM_BYTES
        if _sum(key, entry.version, value[at:]) != value[len(_SEAL) : at]:
            return DamagedEntry(key, entry.version)
        return Entry(entry.version, value[at:])


def _sealed(key: str, version: int, value: bytes) -> bytes:
    if key == FORMAT or key.startswith(_UNSEALED):
        return value
    return _SEAL + _sum(key, version, value) + value


def _sum(key: str, version: int, value: bytes) -> bytes:
    return xxhash.xxh3_64_digest(b"%b\0%d\0%b" % (key.encode(), version, value))


def _number(entry: Entry) -> int | None:
    """The epoch in the note; None if the note itself is damaged. Then entries without a seal are believed."""
    try:
        return int(json.loads(entry.value))
    except (Corruption, ValueError, TypeError):
        return None
