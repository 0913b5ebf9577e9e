"""Long values of parameters are read within the limits of their statement: its timeout, its memory, a cancel."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from everview.adapter.coordinator import Coordinator
from everview.compute.cancel import check_wanted
from everview.compute.sql.errors import SqlError
from everview.server.metrics import Metrics
from everview.server.pgwire.conversation import Conversation
from everview.server.pgwire.limits import Limits
from tests.server import raw
from tests.server.raw import SYNC, ListWire, NeverCanceled, bind, execute, parse, query

COUNT = 100_000
INT4_OID, INT4_ARRAY_OID = 23, 1007
AS_TEXT = b"{" + b"1," * (COUNT - 1) + b"1}"
AS_BINARY = struct.pack("!iiIii", 1, 0, INT4_OID, COUNT, 1) + struct.pack("!ii", 4, 1) * COUNT


@pytest.fixture(scope="module")
def coordinator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Coordinator]:
    folder: Path = tmp_path_factory.mktemp("parameters")
    with Coordinator.open(folder / "data") as opened:
        yield opened


class Talk:
    """A conversation with the real adapter."""

    def __init__(self, coordinator: Coordinator) -> None:
        self.wire = ListWire()
        session = coordinator.connect("everview", "everview", {})
        self.conversation = Conversation(session, self.wire, NeverCanceled(), limits=Limits(), metrics=Metrics())

    def run(self, *data: bytes) -> bytes:
        self.wire.coming.extend(raw.frames(b"".join(data)))
        while self.wire.coming and self.conversation.handle(self.wire.receive()):
            pass
        answer, self.wire.sent = self.wire.sent, b""
        return answer


@pytest.mark.parametrize("form", ["text", "binary"])
@pytest.mark.parametrize(
    ("limit", "sqlstate"), [("statement_timeout = '1ms'", b"57014"), ("everview_local_memory = '16MB'", b"53200")]
)
def test_limits_hold_while_values_are_read(coordinator: Coordinator, form: str, limit: str, sqlstate: bytes) -> None:
    talk = Talk(coordinator)
    talk.run(parse("SELECT cardinality($1)", "count", [INT4_ARRAY_OID]), SYNC)
    value, formats = (AS_TEXT, (0,)) if form == "text" else (AS_BINARY, (1,))
    cycle = (bind(value, statement="count", formats=formats), execute(), SYNC)
    assert str(COUNT).encode() in talk.run(*cycle)
    talk.run(query(f"SET {limit}"))
    answer = talk.run(*cycle)
    assert b"C" + sqlstate in answer and str(COUNT).encode() not in answer
    talk.run(query("SET statement_timeout = 0"))
    assert b"C" not in talk.run(parse("SELECT 1", "one"), SYNC)[:1]


def test_reading_values_can_be_canceled(coordinator: Coordinator) -> None:
    session = coordinator.connect("everview", "everview", {})
    prepared = session.prepare("SELECT cardinality($1::int[])")
    with pytest.raises(SqlError) as raised, session.reading(prepared):
        session.cancel()
        check_wanted()
    assert (raised.value.sqlstate, raised.value.message) == ("57014", "canceling statement due to user request")
    with session.reading(prepared):
        check_wanted()
