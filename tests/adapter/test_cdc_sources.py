"""Change streams in SQL: what one environment writes down, another reads back, and their views are equal."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from everview.adapter.catalog.items import Sink
from everview.adapter.coordinator import Coordinator
from everview.adapter.sinks.streamed import StreamedDelivery
from everview.adapter.sources import change_stream
from everview.adapter.sources.change_stream import StreamFeeder
from everview.cdc.codec.contract import codec_for
from everview.cdc.files import Folder
from everview.cdc.inspect import Stream, mangle_copy
from everview.cdc.schema import StreamSchema
from everview.cdc.times import bound_of
from everview.sources.contract import Feeding, Output
from tests.adapter.conftest import Clock
from tests.adapter.delivery import WAIT_S, delivered, id_of, ok, rows
from tests.adapter.scripts import SessionClient
from tests.adapter.test_restart import abandon, open_at
from tests.cdc.readers import covered_by
from tests.cdc.registry import schema_registry
from tests.waiting import eventually

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = "(id bigint, buyer bigint, auction_id bigint, amount int, bid_time timestamptz)"
CHILD_S = 60.0
SPARK_WAIT_S = 120.0  # the first statement of a Spark that is busy starting takes its time
BEST = "SELECT auction_id, count(*) AS bids, max(amount) AS best FROM {bids} GROUP BY auction_id"


def feeder(coordinator: Coordinator, name: str) -> StreamFeeder:
    found = coordinator._feeders[id_of(coordinator, name)]
    assert isinstance(found, StreamFeeder)
    return found


def read_so_far(coordinator: Coordinator, name: str) -> int:
    """Poll a source until there is no more; gives the stream's time up to which it has read."""
    while feeder(coordinator, name).step():
        pass
    status = feeder(coordinator, name).status()
    assert status.read is not None, status.error
    frontier = bound_of(status.read.frontier)
    assert frontier is not None
    return frontier


def auctions(coordinator: Coordinator, stream: Path, form: str) -> SessionClient:
    """An auction, a view of its bids, and the bids written down."""
    sql = SessionClient(coordinator)
    ok(
        sql,
        "CREATE SOURCE house FROM LOAD GENERATOR AUCTION (TICK INTERVAL '50ms', SEED 7, BIDS PER TICK 3)"
        " WITH (RETAIN HISTORY FOR '1h')",
        f"CREATE MATERIALIZED VIEW best WITH (RETAIN HISTORY FOR '1h') AS {BEST.format(bids='bids')}",
        f"CREATE SINK bids_out FROM bids INTO CDC FILES '{stream}' FORMAT {form} WITH (INTERVAL_MS 0)",
    )
    return sql


@pytest.mark.parametrize("form", ["JSON", "AVRO"])
def test_views_are_equal_at_the_same_times(tmp_path: Path, rng: random.Random, form: str) -> None:
    """A mangled stream, file by file: whatever the reader has closed so far is what the writer had at that time."""
    written, mangled, arriving = tmp_path / "stream", tmp_path / "mangled", tmp_path / "arriving"
    writing, reading = Clock(), Clock()
    with open_at(tmp_path / "writer", writing) as writer:
        sql = auctions(writer, written, form)
        for _ in range(15):
            writing.now_ms += rng.randrange(20, 200)
            for each in set(writer._feeders.values()):
                each.ask()
            time.sleep(0.01)
        end = writer.environment.frontiers(id_of(writer, "bids")).upper.only
        eventually(lambda: (writer.sinks.status(id_of(writer, "bids_out")).frontier or 0) >= end)  # type: ignore[union-attr]
        suffix = ".jsonl" if form == "JSON" else ".avro"
        mangle_copy(Stream(str(written)), mangled, rng.randrange(10**6), suffix)
        arriving.mkdir()
        reader = open_at(tmp_path / "reader", reading)
        other = SessionClient(reader)
        ok(
            other,
            f"CREATE SOURCE bids {COLUMNS} FROM CDC FILES '{arriving}' FORMAT {form} WITH (POLL_MS 60000)",
            f"CREATE MATERIALIZED VIEW best AS {BEST.format(bids='bids')}",
        )
        files = sorted(mangled.glob(f"*{suffix}"))
        rng.shuffle(files)
        steps = 0
        for number, file in enumerate(files):
            shutil.copy(file, arriving / file.name)
            if number % max(1, len(files) // 25) and number < len(files) - 1:
                continue
            frontier = read_so_far(reader, "bids")
            if frontier:
                expected = rows(ok(sql, f"SELECT * FROM best AS OF {max(frontier, 1) - 1}"))
                assert rows(ok(other, "SELECT * FROM best")) == expected, f"at {frontier}"
                steps += 1
            if rng.random() < 0.2:  # a restart changes nothing
                abandon(reader) if rng.random() < 0.5 else reader.close()
                reader = open_at(tmp_path / "reader", reading)
                other = SessionClient(reader)
        assert read_so_far(reader, "bids") >= end and steps
        assert rows(ok(other, "SELECT count(*) FROM best")) != ["0"]
        assert rows(ok(other, "SELECT * FROM mz_internal.mz_source_stalls")) == []
        reader.close()


def test_two_writers_of_which_one_is_killed(tmp_path: Path) -> None:
    """Two processes maintain the same and write one stream; one is killed, then the other; there is one history."""
    stream = tmp_path / "stream"
    with Coordinator.open(tmp_path / "left") as first:
        auctions(first, stream, "JSON")
    shutil.copytree(tmp_path / "left", tmp_path / "right")
    children = {side: start(tmp_path / side) for side in ("left", "right")}
    try:
        with Coordinator.open(tmp_path / "reader") as reader:
            sql = SessionClient(reader)
            ok(sql, f"CREATE SOURCE bids {COLUMNS} FROM CDC FILES '{stream}' WITH (POLL_MS 50)")
            ok(sql, f"CREATE MATERIALIZED VIEW best AS {BEST.format(bids='bids')}")
            told = run_on(children["left"], 10)
            kill(children["left"])
            wait_until(reader, told)
            told = run_on(children["right"], 15)
            kill(children["right"])
            frontier = bound_of(covered_by(Folder(str(stream)), Stream(str(stream)).schema))  # as nobody writes it now
            assert frontier is not None and frontier >= told
            assert wait_until(reader, frontier) == frontier
            assert rows(ok(sql, "SELECT * FROM mz_internal.mz_source_stalls")) == []
            assert rows(ok(sql, "SELECT status FROM mz_internal.mz_source_statuses")) == ["running"]
            found = rows(ok(sql, "SELECT * FROM best"))
            with Coordinator.open(tmp_path / "right") as right:  # which goes on to write, too
                expected = rows(ok(SessionClient(right), f"SELECT * FROM best AS OF {frontier - 1}"))
            assert expected and found == expected
    finally:
        for child in children.values():
            child.kill()
            child.wait()


def start(folder: Path) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-m", "tests.adapter.stream_child", str(folder)]
    return subprocess.Popen(arguments, env=dict(os.environ), stdout=subprocess.PIPE, text=True)


def run_on(child: subprocess.Popen[str], times: int) -> int:
    """Let a child go on until it has told of so many frontiers; the last of them."""
    assert child.stdout is not None
    frontier, line = 0, ""
    watchdog = threading.Timer(CHILD_S, child.kill)  # one that tells nothing new is not waited for
    watchdog.start()
    try:
        while times:
            before, line = line, child.stdout.readline()
            assert line, f"the process ended; it was at {before!r}"
            assert line.split()[0].isdigit(), line
            told = int(line.split()[0])
            times -= told > frontier
            frontier = max(frontier, told)
    finally:
        watchdog.cancel()
    return frontier


def kill(child: subprocess.Popen[str]) -> None:
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL


def wait_until(reader: Coordinator, frontier: int) -> int:
    """Until a source has read the stream that far; how far that is."""

    def now() -> int:
        read = feeder(reader, "bids").status().read
        return 0 if read is None else bound_of(read.frontier) or 0

    eventually(lambda: now() >= frontier, WAIT_S, shown=lambda: f"at {now()}, and should be at {frontier}")
    return now()


@pytest.fixture(scope="module")
def brokers() -> Iterator[str]:
    """A broker that lives as long as the client that brought it."""
    kafka = pytest.importorskip("confluent_kafka")
    owner = kafka.Producer({"bootstrap.servers": "ignored", "test.mock.num.brokers": 1})
    yield ",".join(f"{each.host}:{each.port}" for each in owner.list_topics(timeout=10).brokers.values())
    owner.flush(1)


@pytest.mark.parametrize("form", ["JSON", "AVRO"])
def test_through_a_topic(tmp_path: Path, clock: Clock, brokers: str, form: str) -> None:
    topic, reading = f"t-{uuid.uuid4()}", Clock()
    place = f"CDC KAFKA (BROKERS '{brokers}', TOPIC '{topic}', CREATE_TOPICS false) FORMAT {form}"
    with open_at(tmp_path / "writer", clock) as writer:
        sql = SessionClient(writer)
        ok(sql, "CREATE TABLE t (id int, name text)", "INSERT INTO t VALUES (1, 'a'), (2, NULL)")
        ok(sql, f"CREATE SINK s FROM t INTO {place}")
        delivered(writer, "s")
        for round in range(2):
            with open_at(tmp_path / "reader", reading) as reader:
                other = SessionClient(reader)
                ok(other, f"CREATE SOURCE IF NOT EXISTS t (id int, name text) FROM {place}")
                ok(other, f"CREATE SOURCE IF NOT EXISTS x (id int, name text) FROM {place} WITH (TIMELINE 'x')")
                ok(sql, f"INSERT INTO t VALUES ({round + 3}, 'c')", f"DELETE FROM t WHERE id = {round + 1}")
                frontier, deadline = delivered(writer, "s"), time.monotonic() + WAIT_S
                while min(read_so_far(reader, name) for name in ("t", "x")) < frontier:
                    assert time.monotonic() < deadline
                assert rows(ok(other, "SELECT * FROM t")) == rows(ok(sql, "SELECT * FROM t"))
                at = frontier - 1  # of the stream, and so of the writer
                assert rows(ok(other, f"SELECT * FROM x AS OF {at}")) == rows(ok(sql, f"SELECT * FROM t AS OF {at}"))
        assert sql(f"CREATE SINK s2 FROM t INTO {place}") == ["! 22023 there is a change stream already"]


def test_through_a_topic_with_a_schema_registry(tmp_path: Path, clock: Clock, brokers: str) -> None:
    with schema_registry("jo:topsecret") as address, open_at(tmp_path / "data", clock) as coordinator:
        sql, registry = SessionClient(coordinator), address.replace("://", "://jo:topsecret@")
        place = f"CDC KAFKA (BROKERS '{brokers}', TOPIC 'r-{uuid.uuid4()}', REGISTRY '{registry}', CREATE_TOPICS false)"
        refused = sql(f"CREATE SOURCE c (id int) FROM {place} FORMAT JSON")
        assert refused == ["! 22023 a schema registry is for FORMAT AVRO"]
        ok(
            sql,
            "CREATE TABLE t (id int, u uuid)",
            "INSERT INTO t VALUES (1, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'), (2, NULL)",
        )
        denied = sql(f"CREATE SINK s FROM t INTO {place.replace('topsecret', 'wrong')} FORMAT AVRO")
        assert denied == ["! 08006 the schema registry refused"], "who has no access hears of it at once"
        ok(sql, f"CREATE SINK s FROM t INTO {place} FORMAT AVRO")
        assert "topsecret" not in "\n".join(ok(sql, "SHOW CREATE SINK s"))
        ok(sql, f"CREATE SOURCE c FROM {place} FORMAT AVRO")  # the schema is in the registry already
        ok(sql, "INSERT INTO t VALUES (3, NULL)")
        frontier, deadline = delivered(coordinator, "s"), time.monotonic() + WAIT_S
        while read_so_far(coordinator, "c") < frontier:
            assert time.monotonic() < deadline
        assert rows(ok(sql, "SELECT * FROM c")) == rows(ok(sql, "SELECT * FROM t"))


@pytest.mark.parametrize("form", ["JSON", "AVRO"])
def test_much_at_once_goes_through_executors(tmp_path: Path, clock: Clock, spark: SparkSession, form: str) -> None:
    """The columns of a collection have other names in storage than in the stream; Spark must know both."""
    stream = tmp_path / "stream"
    with open_at(tmp_path / "writer", clock) as writer, open_at(tmp_path / "reader", Clock()) as reader:
        sql, other = SessionClient(writer), SessionClient(reader)
        columns = '(id int, "a name" text, at timestamptz, n numeric(10,2))'
        ok(sql, f"CREATE TABLE t {columns}", f"CREATE SINK s FROM t INTO CDC FILES '{stream}' FORMAT {form}")
        ok(sql, "ALTER SINK s PAUSE")
        values = [f"({n}, nullif('name {n % 7}', 'name 0'), '2024-01-01', {n}.25)" for n in range(400)]
        ok(sql, f"INSERT INTO t VALUES {', '.join(values)}", "DELETE FROM t WHERE id < 100")
        item, table = (writer.catalog.state.items[id_of(writer, name)] for name in ("s", "t"))
        assert isinstance(item, Sink)
        delivery = StreamedDelivery(
            writer.environment, item, table, writer.sinks.readable, spark=lambda: spark, bulk_bytes=0
        )
        writer.sinks.add(item, delivery)
        delivery.start()
        frontier = delivered(writer, "s", SPARK_WAIT_S)
        for name, options in (("t", "POLL_MS 60000"), ("x", "POLL_MS 60000, TIMELINE 'x'")):
            ok(other, f"CREATE SOURCE {name} {columns} FROM CDC FILES '{stream}' WITH ({options})")
            copy: Any = reader.catalog.state.items[id_of(reader, name)]
            reader.stop_feeding(copy)
            own = None if name == "x" else lambda: reader.timeline.now_ms
            outputs = {"": Output(copy.id, copy.writer, copy.columns)}
            given = Feeding(reader.environment, copy.id, name, copy.spec, outputs, own, lambda: spark)
            feeding = StreamFeeder(given, bulk_bytes=1)
            while feeding.step():
                pass
            status = feeding.status()
            assert status.error is None and status.read is not None and bound_of(status.read.frontier) == frontier
            reader._feeders[copy.id] = feeding
            feeding.start()
            assert rows(ok(other, f"SELECT * FROM {name}")) == rows(ok(sql, "SELECT * FROM t"))
        assert rows(ok(other, "SELECT DISTINCT mz_now() FROM x")) == [str(frontier - 1)]


def test_a_stream_that_contradicts_itself_is_told(sql: SessionClient, coordinator: Coordinator, tmp_path: Path) -> None:
    stream = tmp_path / "stream"
    ok(sql, f"CREATE SOURCE s (id int) FROM CDC FILES '{stream}' WITH (POLL_MS 60000)")
    assert ok(sql, "SELECT * FROM s") == ["id"], "a folder that is not there yet is empty"
    stream.mkdir()
    progress = '{"progress":{"lower":[0],"upper":[10],"counts":[{"time":5,"count":1},{"time":7,"count":2}]}}'
    updates = '{"updates":[{"data":{"id":1},"time":5,"diff":1},{"data":{"id":2},"time":7,"diff":1}]}'
    (stream / "a.jsonl").write_text(f"{progress}\n{updates}\nnonsense\n")
    assert read_so_far(coordinator, "s") == 7
    assert rows(ok(sql, "SELECT * FROM s")) == ["1"], "time 7 is not whole yet"
    stalls = "SELECT time, reason, expected, arrived, curable FROM mz_internal.mz_source_stalls"
    assert rows(ok(sql, stalls)) == ["7|missing updates|2|1|t"]
    assert rows(ok(sql, "SELECT piece, raw FROM mz_internal.mz_source_bad_records")) == ["a.jsonl|nonsense"]
    shown = "SELECT status, error, stalls FROM mz_internal.mz_source_statuses"
    assert rows(ok(sql, shown)) == ["stalled|1 records cannot be decoded|1"]
    (stream / "a.jsonl").write_text(f"{progress}\n{updates}\n")
    (stream / "b.jsonl").write_text('{"updates":[{"data":{"id":2},"time":7,"diff":2}]}\n')
    read_so_far(coordinator, "s")
    assert "diffs conflict" in "\n".join(ok(sql, stalls))
    assert "time 7 cannot close" in "\n".join(ok(sql, shown))
    assert rows(ok(sql, "SELECT * FROM s")) == ["1"]
    # Repairs take effect without a restart.
    (stream / "b.jsonl").write_text('{"updates":[{"data":{"id":3},"time":7,"diff":1}]}\n')
    assert read_so_far(coordinator, "s") == 10
    assert rows(ok(sql, "SELECT * FROM s")) == ["1", "2", "3"]
    assert rows(ok(sql, shown)) == ["running|NULL|0"]
    # What is taken away and was never there is told, and never becomes visible.
    more = '{"progress":{"lower":[10],"upper":[20],"counts":[{"time":15,"count":1}]}}'
    wrong = '{"updates":[{"data":{"id":9},"time":15,"diff":-1}]}'
    (stream / "c.jsonl").write_text(f"{more}\n{wrong}\n")
    read_so_far(coordinator, "s")
    assert read_so_far(coordinator, "s") == 15
    assert rows(ok(sql, "SELECT * FROM s")) == ["1", "2", "3"] and rows(ok(sql, "SELECT count(*) FROM s")) == ["3"]
    error = "time 15 cannot close: negative multiplicity (row (9,) would occur -1 times)"
    assert rows(ok(sql, shown)) == [f"stalled|{error}|1"]
    (stream / "c.jsonl").write_text(f"{more}\n{wrong.replace('9', '1')}\n")
    read_so_far(coordinator, "s")
    assert read_so_far(coordinator, "s") == 20
    assert rows(ok(sql, "SELECT * FROM s")) == ["2", "3"] and rows(ok(sql, shown)) == ["running|NULL|0"]


REFUSED = [
    ("FROM CDC FILES '{new}'", "! 42P16 the columns of the source are not known"),
    ("FROM CDC KAFKA (BROKERS 'b:1', TOPIC 't')", "! 42P16 the columns of the source are not known"),
    ("(id int) FROM CDC FILES '{full}'", "! 42804 the stream has other columns"),
    ("(id text, name text) FROM CDC FILES '{full}'", "! 42804 the stream has column id of type integer; wanted text"),
    ("(id int, id int) FROM CDC FILES '{full}'", '! 42701 column "id" specified more than once'),
    ("(id int DEFAULT 1) FROM CDC FILES '{new}'", "! 42P16 columns of a source have no defaults"),
    (
        "(at timestamp(3)) FROM CDC FILES '{new}'",
        '! 42P16 column "at" of a source cannot be timestamp(3) without time zone',
    ),
    ("(id int) FROM CDC FILES '{new}' WITH (SIZE 1)", "! 22023 unknown option SIZE"),
    ("(id int) FROM CDC FILES '{new}' WITH (POLL_MS 0)", '! 22023 invalid value for POLL_MS: "0"'),
    ("(id int) FROM CDC KAFKA (TOPIC 't')", "! 22023 CDC KAFKA needs BROKERS"),
    ("(id int) FROM CDC KAFKA (TOPIC 't', SIZE 1)", '! 22023 CDC KAFKA has no option "size"'),
    ("(id int) FROM CDC PIGEONS 'x'", '! 42601 syntax error at or near "PIGEONS"'),
    ("(id int) FROM CDC FILES '{new}' FORMAT XML", '! 42601 syntax error at or near "XML"'),
]


def test_the_columns_of_a_stream_that_begins_meanwhile(
    sql: SessionClient, coordinator: Coordinator, tmp_path: Path
) -> None:
    """A sink and a source of its stream, pasted one after the other: the source waits for the first file."""
    stream = tmp_path / "stream"
    stream.mkdir()
    header = codec_for(".jsonl", StreamSchema(pa.schema([("id", pa.int32())]))).encode_file([])
    writer = threading.Timer(0.4, lambda: (stream / "a.jsonl").write_bytes(header))
    writer.start()
    assert ok(sql, f"CREATE SOURCE s FROM CDC FILES '{stream}'", "SELECT * FROM s") == ["id"]
    writer.join()
    ok(sql, "CREATE TABLE t (id int)", f"CREATE SINK k FROM t INTO CDC FILES '{tmp_path / 'other'}'")
    assert ok(sql, f"CREATE SOURCE o FROM CDC FILES '{tmp_path / 'other'}'", "SELECT * FROM o") == ["id"]


@pytest.mark.parametrize(("text", "answer"), REFUSED)
def test_sources_that_cannot_be(
    coordinator: Coordinator, tmp_path: Path, text: str, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_stream, "SCHEMA_WAIT_S", 0.3)
    sql = SessionClient(coordinator)
    full, new = tmp_path / "full", tmp_path / "new"
    ok(sql, "CREATE TABLE t (id int, name text)", f"CREATE SINK s FROM t INTO CDC FILES '{full}'")
    delivered(coordinator, "s")
    ids = coordinator.environment.ids()
    assert sql(f"CREATE SOURCE x {text.format(full=full, new=new)}") == [answer]
    assert coordinator.environment.ids() == ids and not coordinator.environment.scan("cdc/source/")
    assert not new.exists()


def test_a_stream_is_joined_only_on_purpose(sql: SessionClient, coordinator: Coordinator, tmp_path: Path) -> None:
    stream = tmp_path / "stream"
    into = f"INTO CDC FILES '{stream}'"
    ok(sql, "CREATE TABLE t (id int) WITH (RETAIN HISTORY FOR '1h')", "INSERT INTO t VALUES (1)")
    ok(sql, f"CREATE SINK s FROM t {into}")
    delivered(coordinator, "s")
    assert sql(f"CREATE SINK s2 FROM t {into}") == ["! 22023 there is a change stream already"]
    assert sql(f"CREATE SINK s2 FROM t {into} KEY (id)")[0].startswith("! 22023")
    ok(sql, "DROP SINK s", "INSERT INTO t VALUES (2)", f"CREATE SINK s2 FROM t {into} WITH (JOIN, INTERVAL_MS 0)")
    delivered(coordinator, "s2")
    ok(sql, f"CREATE SOURCE copy (id int) FROM CDC FILES '{stream}'")
    read_so_far(coordinator, "copy")
    assert rows(ok(sql, "SELECT * FROM copy")) == ["1", "2"]
    ok(sql, "CREATE TABLE u (id text)")
    assert sql(f"CREATE SINK s3 FROM u {into} WITH (JOIN)")[0].startswith("! 42804")


def test_a_sink_that_has_written_nothing_yet_is_not_joined_by_another(
    sql: SessionClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StreamedDelivery, "start", lambda self: None)
    into = f"INTO CDC FILES '{tmp_path / 'stream'}'"
    ok(sql, "CREATE TABLE t (id int)", f"CREATE SINK s FROM t {into}")
    for options in ("", " WITH (JOIN)"):
        refused = ['! 55006 sink "s" writes to the same place already']
        assert sql(f"CREATE SINK s2 FROM t {into}{options}") == refused
    ok(sql, "DROP SINK s", f"CREATE SINK s2 FROM t {into}")


def test_dropping_forgets_the_stream(tmp_path: Path, clock: Clock) -> None:
    stream = tmp_path / "stream"
    with open_at(tmp_path / "data", clock) as coordinator:
        sql = SessionClient(coordinator)
        ok(
            sql,
            "CREATE TABLE t (id int)",
            "INSERT INTO t VALUES (1)",
            f"CREATE SINK s FROM t INTO CDC FILES '{stream}'",
        )
        delivered(coordinator, "s")
        ok(sql, f"CREATE SOURCE c (id int) FROM CDC FILES '{stream}'", "CREATE MATERIALIZED VIEW m AS SELECT * FROM c")
        read_so_far(coordinator, "c")
        environment, table = coordinator.environment, id_of(coordinator, "t")
        assert environment.scan("cdc/source/") and environment.scan("cdc/spent/") and environment.scan("cdc/sink/")
        assert sql("DROP SOURCE c")[0].startswith("! 2BP01")
        ok(sql, "DROP SOURCE c CASCADE", "ALTER SINK s PAUSE", "ALTER SINK s RESUME", "DROP SINK s")
        assert not environment.scan("cdc/")
        assert len([token for token in environment.shard(table).held if token.startswith("r")]) == 1


def test_diffs_that_do_not_sum_stop_the_source_and_spoil_nothing(coordinator: Coordinator, tmp_path: Path) -> None:
    folder = tmp_path / "huge"
    folder.mkdir()

    def write(name: str, time: int, diff: int) -> None:
        update = f'{{"updates":[{{"data":{{"id":1}},"time":{time},"diff":{diff}}}]}}'
        bounds = f'"lower":[{time}],"upper":[{time + 1}],"counts":[{{"time":{time},"count":1}}]'
        (folder / name).write_text(f'{update}\n{{"progress":{{{bounds}}}}}\n')

    write("a.jsonl", 0, 2**62)
    sql = SessionClient(coordinator)
    ok(sql, f"CREATE SOURCE huge (id int) FROM CDC FILES '{folder}'")
    assert read_so_far(coordinator, "huge") == 1
    assert sql("SELECT count(*) FROM huge WHERE mz_now() > 0") == ["count", str(2**62)]
    write("b.jsonl", 1, 2**62)
    feeder(coordinator, "huge").step()
    status = coordinator.source_status(id_of(coordinator, "huge"))
    assert status is not None and status.error is not None and "multiplicity too large" in status.error
    assert sql("SELECT count(*) FROM huge WHERE mz_now() > 0") == ["count", str(2**62)]
