"""Opening an environment: finding its stores, checking their format, taking the epoch that fences older processes."""

from __future__ import annotations

import json
import secrets
from collections.abc import Container, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from everview.storage import codec
from everview.storage.blob.contract import Blob
from everview.storage.consensus.contract import Conflict, Consensus, Entry, entry_at
from everview.storage.contract import GlobalId
from everview.storage.disk import close_contents, close_to_others, make_private, write_failure
from everview.storage.errors import BlobMissing, Determinate, InvalidUsage, NewerFormat, Overtaken
from everview.storage.lease import new_owner
from everview.storage.retrying import RetryingBlob, RetryingConsensus
from everview.storage.sealed import damaged
from everview.storage.shard import FOREVER
from everview.storage.stores import open_blob, open_consensus
from everview.storage.urls import without_secrets

EPOCH_TRIES_MAX = 100
BLOB_MARK = "environment"  # the object that says to which environment a store of data belongs
_FILES_BESIDE = ("lock", "spark.log")  # of layers above, in the same folder


def open_stores(
    data: Path, consensus: str | None, blob: str | None, *, read_only: bool = False, as_target: bool = False
) -> tuple[Consensus, Blob]:
    """The stores of the environment in folder `data`, or at the URLs; `as_target` if one is to be copied there."""
    try:
        if not read_only:
            _make_private(data)
    except OSError as error:
        raise write_failure(error, "making the data folder", data) from error
    database = data / "consensus.db"
    if read_only and consensus is None and not database.exists():
        raise InvalidUsage(f"there is no environment in {data}", hint="name its folder with --data")
    if not read_only and consensus is not None and database.exists() and str(database) not in consensus:
        raise InvalidUsage(
            f"the folder {data} holds an environment of its own, which is not the one at {without_secrets(consensus)}",
            hint="name another folder for local files with --data, or move the environment with: everview env copy",
        )
    opened = open_consensus(consensus or str(database), read_only=read_only)
    try:
        if not as_target:
            check_format(opened)
        return RetryingConsensus(opened), RetryingBlob(open_blob(blob or str(data / "blob"), read_only, private=True))
    except BaseException:
        opened.close()
        raise


def _make_private(data: Path) -> None:
    """Make the data folder, and close files to others that earlier versions left readable; the stores do the same.

    Other files stay as they are: someone may have chosen a folder that holds more.
    """
    make_private(data)
    close_contents(data / "hot")
    for name in _FILES_BESIDE:
        with suppress(FileNotFoundError):
            close_to_others(data / name)


def check_format(consensus: Consensus) -> None:
    """Raise unless this version can read what is stored."""
    entry = entry_at(consensus, codec.FORMAT)
    with codec.decoding("the environment"):
        found = codec.FORMAT_VERSION if entry is None else int(json.loads(entry.value))
    if found == codec.FORMAT_UNFINISHED:
        raise InvalidUsage(
            "a copy of an environment to this place has not finished",
            hint="run the same command again: it goes on where it was",
        )
    if found > codec.FORMAT_VERSION:
        known = f"this version of everview knows formats up to {codec.FORMAT_VERSION}"
        hint = "open it with the version that wrote it, or a newer one"
        raise NewerFormat(f"the environment has format {found}, and {known}", hint=hint)


@dataclass(frozen=True, slots=True)
class Taken:
    """A new epoch, the version of its entry, its owner, and the owner of the epoch before."""

    epoch: int
    version: int
    owner: Mapping[str, Any]
    former: Mapping[str, Any] | None


def take_epoch(consensus: Consensus, *, beats: bool = False, taken_from: int | None = None) -> Taken:
    """Become the owner of the environment.

    `beats` notes that this owner shows signs of life. With `taken_from`, the version of the owner's entry or 0 for
    none, it is taken from that owner alone, else `Overtaken`.
    """
    for _ in range(EPOCH_TRIES_MAX):
        check_format(consensus)
        found = consensus.get([codec.EPOCH, codec.FORMAT, codec.SEALED])
        entry = found.get(codec.EPOCH)
        if taken_from is not None and taken_from != (0 if entry is None else entry.version):
            raise Overtaken("another process has opened the environment first")
        if entry is None and codec.FORMAT in found:
            raise damaged(codec.EPOCH)
        with codec.decoding("the environment"):
            former = None if entry is None else json.loads(entry.value)
            epoch = 1 + (0 if former is None else int(former["epoch"]))
        owner = {**new_owner(epoch), "beats": beats}
        writes: dict[str, bytes | None] = {
            codec.EPOCH: json.dumps(owner).encode(),
            codec.FORMAT: str(codec.FORMAT_VERSION).encode(),
        }
        if codec.SEALED not in found:
            writes[codec.SEALED] = b"%d" % epoch
        expected = {codec.EPOCH: None if entry is None else entry.version}
        try:
            consensus.commit(expected, writes, epoch << 32)
        except Conflict:
            continue  # another process opened it at the same moment; the later one wins
        return Taken(epoch, epoch << 32, owner, former)
    raise Determinate("other processes keep opening this environment", hint="let only one of them run")


def match_blob(consensus: Consensus, blob: Blob, taken: Taken) -> None:
    """Raise unless this store of data belongs to these metadata; the first process that shares them marks both.

    Otherwise a process with another store, such as the folder of another machine, would miss what others wrote.
    """
    entry = entry_at(consensus, codec.BLOB_ID)
    mark: dict[str, Any] = {"id": secrets.token_hex(16), "marked": False} if entry is None else json.loads(entry.value)
    found = _mark_of(blob)
    if not mark["marked"] and found in (None, mark["id"]):
        # Noted first, so that a process that dies in between leaves nothing that looks like another environment's.
        for step, marked in enumerate((False, True), 1):
            version, expected = taken.version + step, None if entry is None else entry.version
            value = json.dumps({**mark, "marked": marked}).encode()
            consensus.commit({codec.EPOCH: taken.version, codec.BLOB_ID: expected}, {codec.BLOB_ID: value}, version)
            entry = Entry(version, value)
            blob.put(BLOB_MARK, mark["id"].encode())
    elif found != mark["id"]:
        raise _other_blob(found)


def check_blob(consensus: Consensus, blob: Blob) -> None:
    """Raise if it is known that this store of data belongs to other metadata. Changes nothing."""
    entry, found = entry_at(consensus, codec.BLOB_ID), _mark_of(blob)
    if entry is None:
        return
    mark = json.loads(entry.value)
    if found != mark["id"] and (mark["marked"] or found is not None):
        raise _other_blob(found)


def _other_blob(found: str | None) -> InvalidUsage:
    return InvalidUsage(
        "the store of data is not the one that belongs to these metadata",
        detail="its mark is missing" if found is None else "it has the mark of another environment",
        hint="give every process of the environment the same --blob, in a place that all of them reach",
    )


def _mark_of(blob: Blob) -> str | None:
    try:
        with blob.open(BLOB_MARK) as file:
            return bytes(file.read()).decode(errors="replace")
    except BlobMissing:
        return None


def ids(consensus: Consensus, damaged: Container[GlobalId] = ()) -> list[GlobalId]:
    """Ids of the collections that can be read or written; damaged ones can not."""
    result = []
    for key, entry in consensus.scan(codec.state_key("").rstrip("/") + "/"):
        id = key.split("/")[1]
        if id in damaged:
            continue
        since, upper, _, held, *_ = json.loads(entry.value)
        if since != FOREVER or upper != FOREVER or held:
            result.append(id)
    return sorted(result, key=lambda id: (id.rstrip("0123456789"), len(id), id))
