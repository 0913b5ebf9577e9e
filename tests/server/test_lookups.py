"""Look-ups that the event loop answers by itself: the same bytes as when a thread does, or none."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from everview.adapter.coordinator import Coordinator
from everview.server.metrics import Metrics
from everview.server.pgwire.conversation import Conversation
from everview.server.pgwire.limits import Limits
from everview.server.pgwire.lookups import Lookups
from everview.server.run import start
from tests.server import raw
from tests.server.conftest import LOCAL
from tests.server.raw import FLUSH, SYNC, ListWire, NeverCanceled, bind, describe, execute, parse, query

LOOK_UP = "SELECT id, name, price FROM items WHERE id = $1"
INT4_OID = 23


@pytest.fixture(scope="module")
def coordinator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Coordinator]:
    folder: Path = tmp_path_factory.mktemp("lookups")
    with Coordinator.open(folder / "data") as opened:
        session = opened.connect("everview", "everview", {})
        for text in (
            "CREATE TABLE items (id int, name text, price numeric(10,2))",
            "INSERT INTO items SELECT g, 'item ' || g, g FROM generate_series(1, 50) AS g",
            "INSERT INTO items VALUES (7, NULL, 7)",
            "INSERT INTO items VALUES (70, repeat('x', 70000), 7)",
            "INSERT INTO items SELECT 71, repeat('x', 1000), g FROM generate_series(1, 99) AS g",
            "INSERT INTO items SELECT 72, repeat('x', 1000), g FROM generate_series(1, 50) AS g",
            "CREATE INDEX ON items (id)",
        ):
            session.run(session.prepare(text))
            session.sync()
        yield opened


class Talk:
    """A conversation with the real adapter, which can be told to do without look-ups from memory."""

    def __init__(self, coordinator: Coordinator) -> None:
        self.wire = ListWire()
        session = coordinator.connect("everview", "everview", {})
        self.metrics = Metrics()
        self.conversation = Conversation(session, self.wire, NeverCanceled(), limits=Limits(), metrics=self.metrics)
        self.run(parse(LOOK_UP, "look", [INT4_OID]), parse("SELECT 1", "one"), SYNC)
        self.run(bind(b"1", statement="look"), execute(), SYNC)
        self.run(query("SELECT name FROM items WHERE id = 1"))
        self.run(query("SELECT name FROM items WHERE id = CAST('3' AS int)"))

    def run(self, *data: bytes) -> bytes:
        """What a thread answers."""
        self.wire.coming.extend(raw.frames(b"".join(data)))
        while self.wire.coming and self.conversation.handle(self.wire.receive()):
            pass
        answer, self.wire.sent = self.wire.sent, b""
        return answer

    def look_up(self, *data: bytes) -> bytes | None:
        """What the loop answers."""
        return self.conversation.look_up(b"".join(data))


@pytest.fixture
def talk(coordinator: Coordinator) -> Talk:
    return Talk(coordinator)


@pytest.mark.parametrize(
    "cycle",
    [
        (bind(b"3", statement="look"), describe("P"), execute(), SYNC),
        (bind(b"3", statement="look"), execute(), SYNC),
        (bind(b"7", statement="look"), execute(), SYNC),
        (bind(b"99", statement="look"), describe("P"), execute(), SYNC),
        (bind(None, statement="look"), execute(), SYNC),
        (bind(struct.pack("!i", 3), statement="look", formats=[1], results=[1]), describe("P"), execute(), SYNC),
        (bind(b"3", statement="look", formats=[0], results=[1, 0, 1]), describe("P"), execute(), SYNC),
        (parse(LOOK_UP, "", [INT4_OID]), bind(b"3"), describe("P"), execute(), SYNC),
        (parse(f"{LOOK_UP};", "", [INT4_OID]), bind(b"7", results=[1]), execute(), SYNC),
        (query("SELECT name FROM items WHERE id = 3"),),
        (query("SELECT name FROM items WHERE id = 7;"),),
        (query("SELECT name FROM items WHERE id = CAST('3' AS int)"),),
        (query("SELECT name FROM items WHERE id = 99"),),
    ],
)
def test_the_same_bytes(talk: Talk, cycle: tuple[bytes, ...]) -> None:
    answer = talk.look_up(*cycle)
    assert answer is not None
    assert answer == talk.run(*cycle)
    assert talk.look_up(*cycle) == answer


@pytest.mark.parametrize(
    "cycle",
    [
        (b"",),
        (SYNC,),
        (bind(b"3", statement="look"),),
        (bind(b"3", statement="look"), execute()),
        (bind(b"3", statement="look"), execute(), FLUSH),
        (bind(b"3", statement="look"), execute(1), SYNC),
        (bind(b"3", statement="look"), execute(), SYNC, SYNC),
        (bind(b"3", statement="look"), execute(), SYNC, bind(b"3", statement="look"), execute(), SYNC),
        (bind(b"3", statement="look", portal="p"), execute(0, "p"), SYNC),
        (bind(b"3", statement="unknown"), execute(), SYNC),
        (bind(statement="one"), execute(), SYNC),
        (bind(b"no number", statement="look"), execute(), SYNC),
        (bind(b"\xff", statement="look"), execute(), SYNC),
        (bind(b"3", b"4", statement="look"), execute(), SYNC),
        (bind(statement="look"), execute(), SYNC),
        (bind(b"3", statement="look", formats=[2]), execute(), SYNC),
        (bind(b"3", statement="look", formats=[0, 0]), execute(), SYNC),
        (bind(b"3", statement="look", results=[0, 0]), execute(), SYNC),
        (bind(b"3", statement="look", formats=[1]), execute(), SYNC),
        (parse(LOOK_UP, "", [INT4_OID]), SYNC),
        (parse(LOOK_UP, "other", [INT4_OID]), bind(b"3", statement="other"), execute(), SYNC),
        (parse(LOOK_UP, "", [INT4_OID]), bind(b"3", statement="look"), execute(), SYNC),
        (parse(LOOK_UP, "", [20]), bind(b"3"), execute(), SYNC),
        (parse(LOOK_UP, "", [INT4_OID, INT4_OID]), bind(b"3"), execute(), SYNC),
        (parse(LOOK_UP, "", [999_999]), bind(b"3"), execute(), SYNC),
        (parse("SELECT 1"), bind(), execute(), SYNC),
        (parse("SELECT no_such_column FROM items"), bind(), execute(), SYNC),
        (query("SELECT name FROM items WHERE id = 3; SELECT 1"),),
        (query("SELECT name FROM items WHERE id = 3"), query("SELECT 1")),
        (query("SELECT name FROM items WHERE id = 3\0"),),
        (query("SELECT name FROM items WHERE name = 'item 3'"),),
        (query(""),),
    ],
)
def test_anything_else_is_for_a_thread(talk: Talk, cycle: tuple[bytes, ...]) -> None:
    assert talk.look_up(*cycle) is None


@pytest.mark.parametrize(
    ("key", "here"), [(b"70", False), (b"71", False), (b"72", True), (b" " * 70_000 + b"3", False)]
)
def test_what_is_long_is_for_a_thread(talk: Talk, key: bytes, here: bool) -> None:
    """The loop serves nobody else meanwhile."""
    cycle = (bind(key, statement="look"), execute(), SYNC)
    answer = talk.look_up(*cycle)
    assert (answer is not None) is here
    assert talk.run(*cycle) == (answer or talk.run(*cycle))
    text = f"SELECT name FROM items WHERE id = {key.decode().strip()}"
    assert (talk.look_up(query(text)) is not None) is (here or key.endswith(b"3"))


def test_not_within_a_block_nor_while_skipping(talk: Talk) -> None:
    cycle = (bind(b"3", statement="look"), execute(), SYNC)
    assert talk.look_up(*cycle) is not None
    talk.run(query("BEGIN"))
    assert talk.look_up(*cycle) is None
    talk.run(query("SELECT no_such_column"))
    assert talk.look_up(*cycle) is None
    talk.run(query("ROLLBACK"))
    assert talk.look_up(*cycle) is not None
    talk.run(parse("SELECT no_such_column"))  # an error; all until the next Sync is skipped
    assert talk.look_up(*cycle) is None
    talk.run(SYNC)
    talk.run(bind(b"3", statement="look", portal="open"))
    assert talk.look_up(*cycle) is None
    talk.run(SYNC)
    assert talk.look_up(*cycle) is not None


def test_a_simple_query_forgets_the_statement_without_a_name(talk: Talk) -> None:
    talk.run(parse(LOOK_UP, "", [INT4_OID]), bind(b"3"), execute(), SYNC)
    assert talk.look_up(bind(b"4"), execute(), SYNC) is not None
    assert talk.look_up(query("SELECT name FROM items WHERE id = 3")) is not None
    assert raw.kinds(raw.messages(talk.run(bind(b"4"), execute(), SYNC))) == "EZ"


def test_a_statement_that_is_parsed_and_looked_up_is_there(talk: Talk) -> None:
    talk.run(parse("SELECT 1"), SYNC)
    cycle = (parse(LOOK_UP, "", [INT4_OID]), bind(b"3"), execute(), SYNC)
    assert talk.look_up(*cycle) is not None
    again = talk.run(bind(b"4"), execute(), SYNC)
    assert b"item 4" in again


def test_look_ups_are_counted(talk: Talk) -> None:
    def counted() -> float:
        found = talk.metrics.registry.get_sample_value("everview_statements_total", {"sqlstate": "00000"})
        seconds = talk.metrics.registry.get_sample_value("everview_statement_seconds_count", {"command": "SELECT"})
        assert found == seconds
        return found or 0

    before = counted()
    assert talk.look_up(bind(b"3", statement="look"), execute(), SYNC) is not None
    assert counted() == before + 1
    assert talk.look_up(SYNC) is None
    assert counted() == before + 1


def test_broken_bytes(talk: Talk, rng: random.Random) -> None:
    """Whatever comes, nothing is raised; and what is answered is what a thread would say."""
    whole = [
        b"".join((bind(b"12", statement="look", formats=[0], results=[0]), describe("P"), execute(), SYNC)),
        b"".join((parse(LOOK_UP, "", [INT4_OID]), bind(b"12", formats=[0], results=[0]), execute(), SYNC)),
        query("SELECT name FROM items WHERE id = 12"),
    ]
    answered = 0
    for _ in range(3_000):
        data = bytearray(rng.choice(whole))
        for _ in range(rng.randrange(1, 4)):
            match rng.randrange(3):
                case 0:
                    data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0xFF, rng.randrange(256)))
                case 1:
                    del data[rng.randrange(len(data)) :]
                case _:
                    data.insert(rng.randrange(len(data) + 1), rng.randrange(256))
            if not data:
                break
        answer = talk.look_up(bytes(data))
        if answer is not None:
            answered += 1
            assert answer == talk.run(bytes(data))
    assert answered


def test_over_sockets(coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Real clients, with statements that are prepared and with those that are not; and the loop does answer."""
    answered: list[bool] = []
    original = Lookups.answer

    def answer(self: Lookups, data: bytes) -> bytes | None:
        found = original(self, data)
        answered.append(found is not None)
        return found

    monkeypatch.setattr(Lookups, "answer", answer)
    with start(coordinator, LOCAL) as server:
        host, port = server.pg.host, server.pg.port
        with psycopg.connect(host=host, port=port, user="everview", dbname="everview", autocommit=True) as connection:
            for number in range(1, 20):
                expected = [(number, f"item {number}", number)]
                look_up = connection.execute(LOOK_UP.replace("$1", "%s"), (number,), prepare=True)
                assert expected[0] in look_up.fetchall()
                name = connection.execute(f"SELECT name FROM items WHERE id = {number}", prepare=False)
                assert (f"item {number}",) in name.fetchall()
            assert sum(answered) > 9  # a look-up that comes while the index is being read is run
            connection.execute("INSERT INTO items VALUES (1000, 'new', 1)")
            assert connection.execute("SELECT name FROM items WHERE id = 1000").fetchall() == [("new",)]
            with connection.pipeline():
                cursors = [connection.execute(LOOK_UP.replace("$1", "%s"), (each,), prepare=True) for each in (3, 4)]
            assert [cursor.fetchall()[0][0] for cursor in cursors] == [3, 4]
