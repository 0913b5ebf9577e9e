"""Avro as a schema registry frames it: numbers stand for schemas, and columns are found by their names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from everview.cdc.codec.registry import Registry, RegistryCodec
from everview.cdc.contract import Message, Progress, Updates
from everview.cdc.errors import TransportFailed, Undecodable
from everview.cdc.schema import StreamSchema
from everview.timely.antichain import Antichain
from tests.cdc.registry import schema_registry

OURS = StreamSchema(pa.schema([("n", pa.int64()), ("text", pa.string())]))
TURNED = StreamSchema(pa.schema([("text", pa.string()), ("n", pa.int64())]))
OTHER = StreamSchema(pa.schema([("n", pa.int64())]))
MESSAGES: list[Message[Any]] = [
    Updates([((1, "a"), 3, 1), ((None, None), 4, -2)]),
    Progress(Antichain(0), Antichain(5), ((3, 1), (4, 1))),
]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with schema_registry() as found:
        yield found


def test_messages_come_back_whoever_wrote_them(address: str) -> None:
    reading = RegistryCodec(Registry(address), "t", OURS)
    for message in MESSAGES:
        data = RegistryCodec(Registry(address), "t", OURS).encode(message)
        assert data[0] == 0 and int.from_bytes(data[1:5], "big") > 0
        assert reading.decode(data) == message
    turned = Updates([(row[::-1], time, diff) for row, time, diff in MESSAGES[0].updates])  # type: ignore[union-attr]
    assert reading.decode(RegistryCodec(Registry(address), "t", TURNED).encode(turned)) == MESSAGES[0]
    found = Registry(address).latest("t")
    assert found == TURNED and Registry(address).latest("nobody") is None


def test_what_is_not_framed_or_of_other_columns_is_undecodable(address: str) -> None:
    reading = RegistryCodec(Registry(address), "t", OURS)
    other = RegistryCodec(Registry(address), "t", OTHER).encode(Updates([((1,), 1, 1)]))
    good = reading.encode(MESSAGES[0])
    for data, why in [
        (b"", "not framed"),
        (b"{}", "not framed"),
        (b"\x01" + good[1:], "not framed"),
        (good[:-1], ""),
        (other, "has other columns"),
    ]:
        with pytest.raises(Undecodable) as raised:
            reading.decode(data)
        assert why in (raised.value.detail or "")


def test_a_registry_that_does_not_answer(address: str) -> None:
    with pytest.raises(TransportFailed, match="does not answer"):
        RegistryCodec(Registry("http://127.0.0.1:1"), "t", OURS).encode(MESSAGES[0])
    with pytest.raises(TransportFailed, match="refused"):
        RegistryCodec(Registry(address), "t", OURS).decode(b"\x00\x00\x00\x99\x00..")


def test_basic_authentication() -> None:
    """The name and password of the address, percent-encoded there, and nobody without them or with others."""
    with schema_registry("jo@work:p:ss/wörd") as found:
        host = found.removeprefix("http://")
        right = f"http://jo%40work:p%3Ass%2Fw%C3%B6rd@{host}"
        data = RegistryCodec(Registry(right), "t", OURS).encode(MESSAGES[0])
        assert RegistryCodec(Registry(right + "/"), "t", OURS).decode(data) == MESSAGES[0]
        assert Registry(right).latest("t") == OURS and Registry(right).latest("nobody") is None
        for wrong in (found, f"http://jo%40work@{host}", f"http://jo%40work:topsecret@{host}"):
            with pytest.raises(TransportFailed, match="refused") as raised:
                RegistryCodec(Registry(wrong), "t", OURS).decode(data)
            assert "cannot access" in (raised.value.detail or "") and "topsecret" not in str(raised.value)
    with pytest.raises(TransportFailed, match="does not answer") as raised:
        Registry(right).latest("t")
    assert "p%3Ass" not in str(raised.value) and "p:ss" not in str(raised.value)
