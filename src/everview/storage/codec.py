"""How shards are written down in consensus: keys, specs and states.

spec/<id>/             the columns of the shard, and what it was created as
state/<id>/            frontiers and capabilities; stays when the shard is gone, so that its id is not used again
inline/<id>/<number>   a batch with its updates
run/<id>/<number>      a batch of parts
clock/<name>           a clock
sealed                 the epoch from which on values carry checksums
beat                   rewritten by the owner of a shared environment as long as it lives
promote                rewritten to make a process that stands by take over
blob_id                what the object `environment` in the store of data says, if the environment is shared
meta/<key>             a value kept for a layer above
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pyarrow as pa

from everview.storage.batch import Batch, decode_batch, encode_batch
from everview.storage.consensus.contract import Entry
from everview.storage.contract import GlobalId
from everview.storage.errors import Corruption
from everview.storage.shard import Held, Shard, Spec

EPOCH = "epoch"
FORMAT = "format"
NEXT_ID = "next_id"
SEALED = "sealed"
BEAT = "beat"
PROMOTE = "promote"
BLOB_ID = "blob_id"
FORMAT_VERSION = 2  # 2: values are sealed, see `sealed`; 1 is still read
FORMAT_UNFINISHED = 1_000_000  # while another environment is being copied to this place


_NO_SPEC = Spec(pa.schema([]), (), 0)


def spec_key(id: GlobalId) -> str:
    return f"spec/{id}/"


def state_key(id: GlobalId) -> str:
    return f"state/{id}/"


def clock_key(name: str) -> str:
    return f"clock/{name}"


def meta_key(key: str) -> str:
    return f"meta/{key}"


def batch_key(id: GlobalId, batch: Batch) -> str:
    return f"{'inline' if batch.inline else 'run'}/{id}/{batch.number:016d}"


def shard_prefixes(id: GlobalId) -> tuple[str, ...]:
    """The prefixes of all keys of one shard."""
    return spec_key(id), state_key(id), f"inline/{id}/", f"run/{id}/"


def encode_spec(spec: Spec) -> bytes:
    head = json.dumps({"key": spec.key, "initial": spec.initial, "created": spec.created}).encode()
    return len(head).to_bytes(4, "little") + head + bytes(spec.schema.serialize())


def decode_spec(value: bytes) -> Spec:
    length = int.from_bytes(value[:4], "little")
    head = json.loads(value[4 : 4 + length])
    schema = pa.ipc.read_schema(pa.py_buffer(value[4 + length :]))
    return Spec(schema, tuple(head["key"]), head["initial"], head.get("created", 0))


def encode_state(shard: Shard) -> bytes:
    held = {t: [h.kind, h.frontier, h.clock, h.lag_ms, h.lease_ms, h.deadline_ms] for t, h in shard.held.items()}
    numbers = [shard.since_floor, shard.upper_floor, shard.next_batch]
    return json.dumps([*numbers, held, *_inventory(shard.batches)], separators=(",", ":")).encode()


def _inventory(batches: Iterable[int]) -> tuple[int, int]:
    """How many batches there are, and the sum of their numbers: a missing batch changes both."""
    numbers = list(batches)
    return len(numbers), sum(numbers)


def decode_state(id: GlobalId, spec: Spec, value: bytes, batches: Iterable[Batch]) -> Shard:
    since, upper, next_batch, held, *_ = json.loads(value)
    return Shard(
        id,
        spec,
        since,
        upper,
        {token: Held(*fields) for token, fields in held.items()},
        {batch.number: batch for batch in sorted(batches, key=lambda batch: batch.number)},
        next_batch,
    )


@contextmanager
def decoding(what: str) -> Iterator[None]:
    """Turn any failure to decode into `Corruption` of the metadata of `what`."""
    try:
        yield
    except Corruption as error:
        if what in error.message:
            raise
        raise Corruption(f"the metadata of {what} are damaged", detail=error.message, hint=error.hint) from error
    except (ValueError, TypeError, LookupError, AttributeError, pa.ArrowException) as error:
        hint = "restore the metadata from a copy"
        raise Corruption(f"the metadata of {what} do not decode", detail=str(error), hint=hint) from error


def decode_shard(id: GlobalId, entries: Iterable[tuple[str, Entry]]) -> Shard | None:
    """A shard from a scan of `shard_prefixes`; None if its id was never used."""
    spec, state, batches, seen = _NO_SPEC, None, [], False
    with decoding(f"collection {id}"):
        for key, entry in entries:
            kind, _, rest = key.partition("/")
            seen = True
            if kind == "spec":
                spec = decode_spec(entry.value)
            elif kind == "state":
                state = entry.value
            else:
                batches.append(decode_batch(int(rest.rpartition("/")[2]), entry.value, f"collection {id}"))
        if state is None:
            if seen:
                raise Corruption(f"the state of collection {id} is missing", hint="restore the metadata from a copy")
            return None
        shard = decode_state(id, spec, state, batches)
        _check_complete(shard, state, has_spec=spec is not _NO_SPEC)
        return shard


def _check_complete(shard: Shard, state: bytes, *, has_spec: bool) -> None:
    """Raise if a batch or the columns are missing. Older versions did not write the inventory of batches."""
    written = json.loads(state)[4:]
    if written and tuple(written) != _inventory(shard.batches):
        raise Corruption(
            f"collection {shard.id} is damaged",
            detail=f"{len(shard.batches)} of its batches are found, and {written[0]} were written, or they are others",
            hint="restore the metadata from a copy",
        )
    if not has_spec and not shard.gone:
        raise Corruption(f"the columns of collection {shard.id} are missing", hint="restore the metadata from a copy")


def writes_between(before: Shard | None, after: Shard) -> dict[str, bytes | None]:
    """The writes that turn the stored shard from `before` into `after`."""
    writes: dict[str, bytes | None] = {state_key(after.id): encode_state(after)}
    old = before.batches if before is not None else {}
    if before is None or before.spec is not after.spec:
        writes[spec_key(after.id)] = encode_spec(after.spec)
    if after.gone:
        writes[spec_key(after.id)] = None
    if old is not after.batches:
        for number in after.batches.keys() - old.keys():
            batch = after.batches[number]
            writes[batch_key(after.id, batch)] = encode_batch(batch)
        for number in old.keys() - after.batches.keys():
            writes[batch_key(after.id, old[number])] = None
    return writes
