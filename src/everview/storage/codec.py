"""How shards are written down in consensus: keys, specs and states.

spec/<id>/             the columns of the shard, and what it was created as
state/<id>/            frontiers and capabilities; stays when the shard is gone, so that its id is not used again
inline/<id>/<number>   a batch with its updates
run/<id>/<number>      a batch of parts
clock/<name>           a clock
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
FORMAT_VERSION = 1


def spec_key(id: GlobalId) -> str:
    """Where the spec is."""
    return f"spec/{id}/"


def state_key(id: GlobalId) -> str:
    """Where the state is."""
    return f"state/{id}/"


def clock_key(name: str) -> str:
    """Where a clock is."""
    return f"clock/{name}"


def meta_key(key: str) -> str:
    """Where a value of a layer above is."""
    return f"meta/{key}"


def batch_key(id: GlobalId, batch: Batch) -> str:
    """Where a batch is."""
    return f"{'inline' if batch.inline else 'run'}/{id}/{batch.number:016d}"


def shard_prefixes(id: GlobalId) -> tuple[str, ...]:
    """What to scan for everything about one shard."""
    return spec_key(id), state_key(id), f"inline/{id}/", f"run/{id}/"


def encode_spec(spec: Spec) -> bytes:
    """A spec as a value."""
    head = json.dumps({"key": spec.key, "initial": spec.initial, "created": spec.created}).encode()
    return len(head).to_bytes(4, "little") + head + bytes(spec.schema.serialize())


def decode_spec(value: bytes) -> Spec:
    """The spec that was written."""
    length = int.from_bytes(value[:4], "little")
    head = json.loads(value[4 : 4 + length])
    schema = pa.ipc.read_schema(pa.py_buffer(value[4 + length :]))
    return Spec(schema, tuple(head["key"]), head["initial"], head.get("created", 0))


def encode_state(shard: Shard) -> bytes:
    """Frontiers and capabilities as a value."""
    held = {t: [h.kind, h.frontier, h.clock, h.lag_ms, h.lease_ms, h.deadline_ms] for t, h in shard.held.items()}
    return json.dumps([shard.since_floor, shard.upper_floor, shard.next_batch, held], separators=(",", ":")).encode()


def decode_state(id: GlobalId, spec: Spec, value: bytes, batches: Iterable[Batch]) -> Shard:
    """The shard of which this is the state."""
    since, upper, next_batch, held = json.loads(value)
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
    """Whatever fails inside is damage to the metadata of `what`."""
    try:
        yield
    except (ValueError, TypeError, LookupError, pa.ArrowException) as error:
        raise Corruption(f"the metadata of {what} do not decode", detail=str(error)) from error


def decode_shard(id: GlobalId, entries: Iterable[tuple[str, Entry]]) -> Shard | None:
    """A shard from a scan of `shard_prefixes`; None if its id was never used."""
    spec, state, batches = Spec(pa.schema([]), (), 0), None, []
    with decoding(f"collection {id}"):
        for key, entry in entries:
            kind, _, rest = key.partition("/")
            if kind == "spec":
                spec = decode_spec(entry.value)
            elif kind == "state":
                state = entry.value
            else:
                batches.append(decode_batch(int(rest.rpartition("/")[2]), entry.value, f"collection {id}"))
        return None if state is None else decode_state(id, spec, state, batches)


def writes_between(before: Shard | None, after: Shard) -> dict[str, bytes | None]:
    """What to write so that what is stored becomes `after`."""
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
