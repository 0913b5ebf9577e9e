"""Messages that are read many at a time are what they are one by one, and what is broken is told."""

from __future__ import annotations

import io
import json

import numpy as np
import pyarrow as pa
import pytest

from everview.compute.ir import types as t
from everview.flow.connector import protobuf
from everview.flow.connector.codec import Codec, codec_of
from everview.flow.connector.rows import Layout
from everview.flow.contract import DELETE, EXISTS, Binding, Field
from everview.flow.errors import DriverFailed

BOUND = Binding("u1", (Field("id", t.INT8), Field("note", t.TEXT), Field("x", t.FLOAT8), Field("d", t.JSONB)), ("id",))
CODECS = pytest.mark.parametrize("codec", ["json", "proto"])


def rows(count: int) -> pa.Table:
    notes = [None if at % 5 == 0 else f'"q"\n,}}{{ ü {at}' for at in range(count)]
    return pa.table(
        {
            "id": np.arange(count) - 2,
            "note": pa.array(notes, pa.string()),
            "x": np.arange(count) / 7,
            "d": pa.array([json.dumps({"a": [at, None]}) for at in range(count)], pa.string()),
            EXISTS: np.arange(count) % 2 == 0,
            DELETE: np.arange(count) % 3 == 0,
        }
    )


def conversation(codec: Codec, *, document: bool) -> bytes:
    """Loads and stores of two bindings, among other requests."""
    layout = Layout(BOUND, ("id",), ("d", "note", "x"), document, document)
    keys = rows(7).select(["id"])
    return b"".join(
        [
            codec.frame("Request", "acknowledge", {"statePatches": [{"a": 1}]}),
            codec.loads(0, layout.loads(keys)),
            codec.loads(1, layout.loads(keys)),
            codec.frame("Request", "flush", {}),
            codec.stores(1, layout.stores(rows(9), "t", 0)),
            codec.stores(0, layout.stores(rows(4), "t", 9)),
            codec.frame("Request", "startCommit", {"runtimeCheckpoint": {"sources": {}}}),
        ]
    )


@CODECS
@pytest.mark.parametrize("document", [False, True])
def test_many_at_a_time_are_what_they_are_one_by_one(codec: str, document: bool) -> None:
    used = codec_of(codec)
    content = conversation(used, document=document)
    stream, alone = io.BytesIO(content), []
    while (message := used.read("Request", stream)) is not None:
        alone.append(message)
    for most in (1, 3, 1000):
        together = [(name, said) for name, held in used.requests(io.BytesIO(content), most) for said in held]
        assert [name for name, _ in together] == [name for name, _ in alone]
        for (_, one), (name, other) in zip(alone, together, strict=True):
            for field in ("binding", "exists", "delete"):
                assert bool(one.get(field)) == bool(other.get(field)), name
            for field in ("key", "values", "statePatches"):
                assert one.get(field) == other.get(field), name
            if "values" not in other and "doc" in one:
                assert one["doc"] == other["doc"]
        assert max(len(held) for _, held in used.requests(io.BytesIO(content), most)) <= most


def test_a_line_that_is_broken_is_told() -> None:
    codec = codec_of("json")
    good = b'{"store":{"key":[1],"values":[]}}\n'
    for bad in (b'{"store":{"key":[1]\n', b'{"store":{}},{"store":{}}\n', b'{"store":{},"load":{}}\n', b'{"store":\n'):
        with pytest.raises(DriverFailed) as raised:
            list(codec.requests(io.BytesIO(good + bad + good), 1000))
        assert repr(bad) in (raised.value.detail or "")


def test_a_message_that_is_cut_off_is_told() -> None:
    codec = codec_of("proto")
    content = conversation(codec, document=True)
    for at in range(1, len(content), 7):
        whole = content[:at]
        try:
            list(codec.requests(io.BytesIO(whole), 1000))
        except DriverFailed:
            continue
        size, ends = 0, {0}
        while size < len(content):
            size += 4 + int.from_bytes(content[size : size + 4], "little")
            ends.add(size)
        assert at in ends, "only whole messages are taken for whole"
    for bad in (b"\x3a\x05\x12\x09[1]", b"\x3a\x02\x11\x00", b"\x3a\x01\x12", b"\x3a\x00\x00"):
        with pytest.raises(DriverFailed):
            protobuf.store_or_load(bad)
