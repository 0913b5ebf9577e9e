"""Opening an environment: finding its stores, checking their format, taking the epoch that fences older processes."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from everview.storage.blob.contract import Blob
from everview.storage.codec import EPOCH, FORMAT, FORMAT_VERSION, SEALED, decoding, state_key
from everview.storage.consensus.contract import Conflict, Consensus
from everview.storage.contract import GlobalId
from everview.storage.disk import close_contents, close_to_others, make_private, write_failure
from everview.storage.errors import Determinate, InvalidUsage, NewerFormat
from everview.storage.lease import new_owner
from everview.storage.retrying import RetryingBlob, RetryingConsensus
from everview.storage.sealed import damaged
from everview.storage.shard import FOREVER
from everview.storage.stores import open_blob, open_consensus

EPOCH_TRIES_MAX = 100
_FILES_BESIDE = ("lock", "spark.log")  # of layers above, in the same folder


def open_stores(
    data: Path, consensus: str | None, blob: str | None, *, read_only: bool = False
) -> tuple[Consensus, Blob]:
    """The stores of the environment in folder `data`, or at the URLs."""
    try:
        if not read_only:
            _make_private(data)
    except OSError as error:
        raise write_failure(error, "making the data folder", data) from error
    database = data / "consensus.db"
    if read_only and consensus is None and not database.exists():
        raise InvalidUsage(f"there is no environment in {data}", hint="name its folder with --data")
    opened = open_consensus(consensus or str(database), read_only=read_only)
    try:
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
    entry = consensus.get([FORMAT]).get(FORMAT)
    with decoding("the environment"):
        found = FORMAT_VERSION if entry is None else int(json.loads(entry.value))
    if found > FORMAT_VERSION:
        raise NewerFormat(
            f"the environment has format {found}, and this version of everview knows formats up to {FORMAT_VERSION}",
            hint="open it with the version that wrote it, or a newer one",
        )


@dataclass(frozen=True, slots=True)
class Taken:
    """A new epoch, the version of its entry, its owner, and the owner of the epoch before."""

    epoch: int
    version: int
    owner: Mapping[str, Any]
    former: Mapping[str, Any] | None


def take_epoch(consensus: Consensus) -> Taken:
    """Become the owner of the environment."""
    for _ in range(EPOCH_TRIES_MAX):
        check_format(consensus)
        found = consensus.get([EPOCH, FORMAT, SEALED])
        entry = found.get(EPOCH)
        if entry is None and FORMAT in found:
            raise damaged(EPOCH)
        with decoding("the environment"):
            former = None if entry is None else json.loads(entry.value)
            epoch = 1 + (0 if former is None else int(former["epoch"]))
        owner = new_owner(epoch)
        writes: dict[str, bytes | None] = {EPOCH: json.dumps(owner).encode(), FORMAT: str(FORMAT_VERSION).encode()}
        if SEALED not in found:
            writes[SEALED] = b"%d" % epoch
        expected = {EPOCH: None if entry is None else entry.version}
        try:
            consensus.commit(expected, writes, epoch << 32)
        except Conflict:
            continue  # another process opened it at the same moment; the later one wins
        return Taken(epoch, epoch << 32, owner, former)
    raise Determinate("other processes keep opening this environment", hint="let only one of them run")


def ids(consensus: Consensus, damaged: Container[GlobalId] = ()) -> list[GlobalId]:
    """Ids of the collections that can be read or written; damaged ones can not."""
    result = []
    for key, entry in consensus.scan(state_key("").rstrip("/") + "/"):
        id = key.split("/")[1]
        if id in damaged:
            continue
        since, upper, _, held, *_ = json.loads(entry.value)
        if since != FOREVER or upper != FOREVER or held:
            result.append(id)
    return sorted(result, key=lambda id: (id.rstrip("0123456789"), len(id), id))
