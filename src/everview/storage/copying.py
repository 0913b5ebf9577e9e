"""Copies of environments: between stores while nothing writes, and of a running one, as of one instant.

The metadata of one instant name every object of that instant, and objects never change. So a copy reads the metadata
at once, then the objects. The owner may remove objects meanwhile, since it knows nothing of the copy. Then the metadata
are read again and the copy goes on from there; what was copied before is not copied again. The metadata are written
last, and until they are complete, the target says that it is an unfinished copy.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from everview.storage.batch import Part, decode_batch
from everview.storage.blob.contract import Blob
from everview.storage.codec import BEAT, BLOB_ID, EPOCH, FORMAT, FORMAT_UNFINISHED, PROMOTE
from everview.storage.consensus.contract import Consensus, Entry
from everview.storage.errors import BlobMissing, Determinate, InvalidUsage
from everview.storage.opening import check_format
from everview.storage.parts import check_part
from everview.storage.sealed import SealedConsensus

INSTANTS_MAX = 20
THREADS = 4
_ENTRIES_MAX, _BYTES_MAX = 1_000, 8 << 20  # in one commit
_PIECE_BYTES = 1 << 20
# Signs of the process that has it open, and the mark of its store of data: a copy gets its own.
_LEFT_OUT = (EPOCH, FORMAT, BEAT, PROMOTE, BLOB_ID)


@dataclass(frozen=True, slots=True)
class Copied:
    """What a copy holds."""

    entries: int
    objects: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Progress:
    """Objects and bytes that a copy has gone through, of all."""

    objects: int
    objects_total: int
    bytes: int
    bytes_total: int


def copy_environment(
    source: tuple[Consensus, Blob],
    target: tuple[Consensus, Blob],
    report: Callable[[Progress], None] = lambda progress: None,
) -> Copied:
    """Copy all that the source holds at one instant to the target, which is empty or has an unfinished copy."""
    metadata, blob = SealedConsensus(source[0]), source[1]
    entries = _environment(metadata)
    _begin(*target)
    done: set[str] = set()
    for _ in range(INSTANTS_MAX):
        parts = list(parts_of(entries))
        if _copy_objects(blob, target[1], parts, done, report):
            break
        entries = _environment(metadata)
    else:
        raise Determinate(
            f"objects were removed {INSTANTS_MAX} times while they were copied",
            hint="try again when less is written, or stop the server meanwhile",
        )
    wanted = {part.key for part in parts}
    for info in list(target[1].list("")):
        if info.key not in wanted:
            target[1].delete(info.key)
    count = _copy_entries(entries, target[0])
    return Copied(count, len(parts), sum(part.size_bytes for part in parts))


def _environment(metadata: Consensus) -> dict[str, Entry]:
    check_format(metadata)
    entries = dict(metadata.scan(""))
    if EPOCH not in entries:
        raise InvalidUsage("there is no environment to copy", hint="name its folder with --data, or its stores")
    return entries


def parts_of(entries: Mapping[str, Entry]) -> Iterator[Part]:
    """The parts to which the metadata refer, each once."""
    seen: set[str] = set()
    for key, entry in entries.items():
        if key.startswith("run/"):
            for part in decode_batch(int(key.rpartition("/")[2]), entry.value, f"batch {key}").parts:
                if part.key not in seen:
                    seen.add(part.key)
                    yield part


def _begin(consensus: Consensus, blob: Blob) -> None:
    """Mark the target as unfinished; raises if something else is there."""
    found = dict(consensus.scan(""))
    if FORMAT in found and found[FORMAT].value == b"%d" % FORMAT_UNFINISHED:
        consensus.commit({}, dict.fromkeys(key for key in found if key != FORMAT), 1)
        return
    if found:
        raise InvalidUsage("there is an environment at the target already", hint="name an empty place, or remove it")
    if next(iter(blob.list("")), None) is not None:
        raise InvalidUsage("the target's store of data is not empty", hint="name an empty folder or prefix")
    consensus.commit({FORMAT: None}, {FORMAT: b"%d" % FORMAT_UNFINISHED}, 1)


def _copy_objects(
    source: Blob, target: Blob, parts: Sequence[Part], done: set[str], report: Callable[[Progress], None]
) -> bool:
    """Copy the parts that are not in `done`; False if one of them is gone."""
    total = sum(part.size_bytes for part in parts)

    def copy(part: Part) -> bool:
        if part.key not in done:
            try:
                _copy_object(source, target, part, scratch)
            except BlobMissing:
                return False
            done.add(part.key)
        return True

    whole = True
    with TemporaryDirectory(prefix="everview-copy-") as name, ThreadPoolExecutor(THREADS) as pool:
        scratch = Path(name)
        copied = size = 0
        for part, found in zip(parts, pool.map(copy, parts), strict=True):
            whole = whole and found
            copied, size = copied + 1, size + part.size_bytes
            report(Progress(copied, len(parts), size, total))
    return whole


def _copy_object(source: Blob, target: Blob, part: Part, scratch: Path) -> None:
    """By way of a file, since a part may be larger than memory; what arrives is checked before it is stored."""
    path = scratch / part.key.replace("/", "_")
    try:
        with source.open(part.key) as file, path.open("wb") as copy:
            while piece := file.read(_PIECE_BYTES):
                copy.write(piece)
        with pa.memory_map(str(path)) as written:
            check_part(written, part, "the store of data")
        target.put_file(part.key, path)
    finally:
        path.unlink(missing_ok=True)


def _copy_entries(entries: Mapping[str, Entry], target: Consensus) -> int:
    """Write the metadata, the format last: it is what makes the copy an environment."""
    owner = json.loads(entries[EPOCH].value)
    sealed = SealedConsensus(target)
    version = int(owner["epoch"]) << 32
    kept = {key: entry.value for key, entry in entries.items() if key not in _LEFT_OUT}
    group: dict[str, bytes | None] = {}
    size = 0
    for key, value in kept.items():
        group[key] = value
        size += len(value)
        if len(group) >= _ENTRIES_MAX or size >= _BYTES_MAX:
            version += 1
            sealed.commit(dict.fromkeys(group), group, version)
            group, size = {}, 0
    last: dict[str, bytes | None] = {
        **group,
        EPOCH: json.dumps({**owner, "closed": True}).encode(),
        FORMAT: entries[FORMAT].value,
    }
    sealed.commit({**dict.fromkeys(group), EPOCH: None, FORMAT: 1}, last, version + 1)
    return len(kept) + 2
