"""Sinks that are change streams, in SQL: what they say of themselves, and what they do not write."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from everview.adapter.catalog.items import Sink
from everview.adapter.coordinator import Coordinator
from everview.cdc import compaction
from everview.cdc.files import Folder, base_time
from everview.cdc.inspect import Stream, examine
from everview.cdc.reader import Reader
from everview.cdc.times import bound_of
from tests.adapter.conftest import Clock
from tests.adapter.delivery import WAIT_S, delivered, ok, rows, until_state
from tests.adapter.scripts import SessionClient
from tests.adapter.test_cdc_sources import kill, read_so_far, run_on, start
from tests.adapter.test_restart import open_at
from tests.waiting import eventually


def sound(stream: Path) -> bool:
    return examine(Stream(str(stream)), thoroughly=True).sound


def test_a_view_in_error_shows(sql: SessionClient, coordinator: Coordinator, tmp_path: Path) -> None:
    stream = tmp_path / "stream"
    ok(
        sql,
        "CREATE TABLE t (id int, d int)",
        "INSERT INTO t VALUES (1, 1)",
        "CREATE MATERIALIZED VIEW q AS SELECT id, 10 / d AS r FROM t",
        f"CREATE SINK s FROM q INTO CDC FILES '{stream}' WITH (INTERVAL_MS 0)",
    )
    delivered(coordinator, "s")
    ok(sql, "INSERT INTO t VALUES (3, 0)")
    assert "division by zero" in (until_state(coordinator, "s", "stalled") or "")
    ok(sql, "DELETE FROM t WHERE d = 0", "INSERT INTO t VALUES (2, 5)")
    until_state(coordinator, "s", "running")
    delivered(coordinator, "s")
    assert sound(stream)


def test_a_stream_that_has_ended_shows(sql: SessionClient, coordinator: Coordinator, tmp_path: Path) -> None:
    stream = tmp_path / "stream"
    stream.mkdir()
    end = {"progress": {"lower": [0], "upper": [], "counts": [{"time": 5, "count": 1}]}}
    update = {"updates": [{"data": {"id": 1}, "time": 5, "diff": 1}]}
    (stream / "a.jsonl").write_text(f"{json.dumps(end)}\n{json.dumps(update)}\n")
    ok(sql, f"CREATE SOURCE s (id int) FROM CDC FILES '{stream}' WITH (POLL_MS 20)")
    eventually(lambda: rows(ok(sql, "SELECT status FROM mz_internal.mz_source_statuses")) == ["ended"], WAIT_S)
    assert rows(ok(sql, "SELECT * FROM s")) == ["1"]


def joined(first: SessionClient, second: SessionClient, clock: Clock, joins: str) -> None:
    """Have the second join, as soon as the stream has come to where its own history begins."""
    deadline = time.monotonic() + WAIT_S
    while second(joins)[0].startswith("! 22023"):
        assert time.monotonic() < deadline
        clock.now_ms += 5
        ok(first, "SELECT * FROM t")


def test_environments_that_differ_do_not_ruin_a_joined_stream(tmp_path: Path, clock: Clock) -> None:
    """Two see the same changes, each at its own times, and write one stream: the second stops and says why."""
    stream = tmp_path / "output"
    with open_at(tmp_path / "one", clock) as one, open_at(tmp_path / "two", clock) as two:
        first, second = SessionClient(one), SessionClient(two)
        into = f"INTO CDC FILES '{stream}'"
        ok(first, "CREATE TABLE t (id int)", f"CREATE SINK s FROM t {into} WITH (INTERVAL_MS 0, HEARTBEAT_S 0)")
        ok(second, "CREATE TABLE t (id int) WITH (RETAIN HISTORY FOR '1h')")
        joined(first, second, clock, f"CREATE SINK s FROM t {into} WITH (JOIN, INTERVAL_MS 0)")
        ok(second, "ALTER SINK s PAUSE")
        for number in range(2, 6):
            ok(first, f"INSERT INTO t VALUES ({number})")
            clock.now_ms += 3
            ok(second, f"INSERT INTO t VALUES ({number})")
        delivered(one, "s")
        ok(second, "ALTER SINK s RESUME")
        until_state(two, "s", "stalled")
        (told,) = rows(ok(second, "SELECT error FROM mz_internal.mz_sink_statuses"))
        assert "another writer of the stream says otherwise" in told
        delivered(one, "s")
        assert sound(stream)


TYPES_THERE = (  # all that there are, with a value that is easily read back as another one
    "CREATE TABLE t (i int, v real, f float8, n numeric, d numeric(9,2), b bytea, z timestamptz, y date, j jsonb,"
    " u uuid, c char(5), a int[], iv interval, o boolean) WITH (RETAIN HISTORY FOR '1h')",
    "INSERT INTO t VALUES ({}, .1, '-0', 1e-15, 1.5, '\\x00ff', 'infinity', '0044-03-15', '{{\"b\": 1, \"a\": [1.5]}}',"
    " 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'ab', '{{1,NULL}}', '1 mon -2 days 00:00:00.000001', NULL),"
    " (NULL, 'NaN', 'Infinity', NULL, -1, '', '2020-02-29 12:00:00.123456Z', 'infinity', 'null', NULL, NULL, '{{}}',"
    " '0', true)",
)


@pytest.mark.parametrize("its_own", [1, 2])
def test_who_joins_has_the_rows_that_the_stream_tells_of(tmp_path: Path, clock: Clock, its_own: int) -> None:
    """Two that see the same changes from now on; but of other rows, these changes would not be those of the stream."""
    stream = tmp_path / "output"
    with open_at(tmp_path / "one", clock) as one, open_at(tmp_path / "two", clock) as two:
        first, second = SessionClient(one), SessionClient(two)
        into = f"INTO CDC FILES '{stream}'"
        ok(first, *(each.format(1) for each in TYPES_THERE))
        ok(first, f"CREATE SINK s FROM t {into} WITH (INTERVAL_MS 0, HEARTBEAT_S 0)")
        ok(second, *(each.format(its_own) for each in TYPES_THERE))
        clock.now_ms += 100
        ok(first, "CREATE TABLE other (id int)", "INSERT INTO other VALUES (1)")  # moves the time of all tables
        delivered(one, "s")
        joined(first, second, clock, f"CREATE SINK s FROM t {into} WITH (JOIN, INTERVAL_MS 0)")
        if its_own == 1:
            delivered(two, "s")
            assert rows(ok(second, "SELECT status FROM mz_internal.mz_sink_statuses")) == ["running"]
        else:
            ok(second, "CREATE TABLE other (id int)", "INSERT INTO other VALUES (1)")
            until_state(two, "s", "stalled")
            (told,) = rows(ok(second, "SELECT split_part(error, chr(10), 1) FROM mz_internal.mz_sink_statuses"))
            assert told == "the stream tells of another collection"
            (told,) = rows(ok(second, "SELECT split_part(error, chr(10), 2) FROM mz_internal.mz_sink_statuses"))
            assert told.endswith("the stream has 2 rows, and the collection 2 others")
        ok(first, "DELETE FROM t")
        delivered(one, "s")
        assert sound(stream)


def test_history_is_retained_as_long_as_asked(
    sql: SessionClient, coordinator: Coordinator, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "EVERY_FILES", 20)
    monkeypatch.setattr(compaction, "FORGET_BYTES", 1)
    stream = tmp_path / "stream"
    into = f"INTO CDC FILES '{stream}' WITH (INTERVAL_MS 0, RETAIN HISTORY FOR '10s')"
    ok(sql, "CREATE TABLE t (id int)", f"CREATE SINK s FROM t {into}")
    for number in range(40):
        ok(sql, f"INSERT INTO t VALUES ({number})")
        delivered(coordinator, "s")
        clock.now_ms += 1000
    files = Folder(str(stream)).files()
    assert any(base_time(info.key) is not None for info in files) and sound(stream)
    ok(sql, f"CREATE SOURCE c (id int) FROM CDC FILES '{stream}'")
    read_so_far(coordinator, "c")
    assert rows(ok(sql, "SELECT count(*) FROM c")) == ["40"]
    refused = sql(f"CREATE SINK s2 FROM t INTO CDC FILES '{tmp_path}/n' WITH (RETAIN HISTORY FOR 'soon')")
    assert refused[0].startswith("! 22023 invalid RETAIN HISTORY")


def test_generators_that_start_at_one_time_write_one_stream(tmp_path: Path, clock: Clock) -> None:
    """Made at different moments in two environments, they are the same, and so are the views over them."""
    stream = tmp_path / "output"
    start = clock.now_ms - 5_000
    made = f"CREATE SOURCE c FROM LOAD GENERATOR COUNTER (TICK INTERVAL '100ms', START AT {start}, MAX CARDINALITY 20)"
    view = "CREATE MATERIALIZED VIEW v WITH (RETAIN HISTORY FOR '1h') AS SELECT sum(counter), count(*) FROM c"
    with open_at(tmp_path / "one", clock) as one:
        first = SessionClient(one)
        ok(first, f"{made} WITH (RETAIN HISTORY FOR '1h')", view)
        clock.now_ms += 777
        with open_at(tmp_path / "two", clock) as two:
            second = SessionClient(two)
            ok(second, f"{made} WITH (RETAIN HISTORY FOR '1h')", view)
            ok(first, f"CREATE SINK s FROM v INTO CDC FILES '{stream}' WITH (INTERVAL_MS 0)")
            join = f"CREATE SINK s FROM v INTO CDC FILES '{stream}' WITH (JOIN, INTERVAL_MS 0)"
            for _ in range(200):  # it is refused until the stream has come to where its own view begins
                delivered(one, "s")
                if "would leave a gap" not in (answer := second(join))[0]:
                    break
                clock.now_ms += 130
                ok(first, "SELECT count FROM v")
                time.sleep(0.02)
            assert answer == ["CREATE SINK"], answer
            for _ in range(10):
                clock.now_ms += 130
                for sql, coordinator in ((first, one), (second, two)):
                    assert rows(ok(sql, "SELECT count FROM v")) == ["20"]
                    delivered(coordinator, "s")
            for coordinator in (one, two):
                assert until_state(coordinator, "s", "running") is None
    assert sound(stream)  # by how many of the two depends on who came first: what one has written the other need not


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("'someday'", '! 22023 invalid value for START AT: "someday"'),
        ("'1969-12-31'", '! 22023 invalid value for START AT: "1969-12-31"'),
        ("'infinity'", '! 22023 invalid value for START AT: "infinity"'),
        ("'2000-01-01'", "! 22023 START AT is too long ago"),
        ("'2999-01-01'", "CREATE SOURCE"),
        ("'2023-11-14 23:10:00+01'", "CREATE SOURCE"),
    ],
)
def test_when_a_generator_starts(sql: SessionClient, text: str, answer: str) -> None:
    assert sql(f"CREATE SOURCE c FROM LOAD GENERATOR COUNTER (START AT {text})") == [answer]


EVERY_TYPE = [
    ("b", "boolean", "true"),
    ("i2", "smallint", "-3"),
    ("i4", "integer", "4"),
    ("i8", "bigint", "9223372036854775807"),
    ("r", "real", "0.5"),
    ("d", "double precision", "'NaN'"),
    ("n", "numeric", "1.5"),
    ("n2", "numeric(10,2)", "12.50"),
    ("t", "text", "'ünï \"x\"'"),
    ("v", "character varying(5)", "'abcde'"),
    ("c", "character(3)", "'ab'"),
    ("y", "bytea", "'\\x00ff'"),
    ("da", "date", "'2024-02-29'"),
    ("ti", "time without time zone", "'12:34:56.789'"),
    ("ts", "timestamp without time zone", "'2024-02-29 12:00'"),
    ("tz", "timestamp with time zone", "'infinity'"),
    ("iv", "interval", "'1 mon 2 days 03:00'"),
    ("u", "uuid", "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"),
    ("j", "jsonb", '\'{"b": [1, 2], "a": null}\''),
    ("mz", "mz_timestamp", "17"),
    ("ia", "integer[]", "'{1,NULL,3}'"),
    ("ua", "uuid[]", "'{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}'"),
    ("a column", "text", "NULL"),
]


@pytest.mark.parametrize("form", ["JSON", "AVRO"])
def test_a_source_takes_its_columns_from_the_stream(
    sql: SessionClient, coordinator: Coordinator, tmp_path: Path, form: str
) -> None:
    stream = tmp_path / "stream"
    defined = ", ".join(f'"{name}" {each}' for name, each, _ in EVERY_TYPE)
    ok(
        sql,
        f"CREATE TABLE t (id int NOT NULL, {defined})",
        f"INSERT INTO t VALUES (1, {', '.join(value for _, _, value in EVERY_TYPE)})",
        "INSERT INTO t (id) VALUES (2)",
        f"CREATE SINK s FROM t INTO CDC FILES '{stream}' FORMAT {form}",
    )
    delivered(coordinator, "s")
    ok(sql, f"CREATE SOURCE c FROM CDC FILES '{stream}'")
    read_so_far(coordinator, "c")
    assert rows(ok(sql, "SELECT * FROM c ORDER BY id")) == rows(ok(sql, "SELECT * FROM t ORDER BY id"))
    described = (
        "SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull FROM pg_attribute a"
        " JOIN pg_class k ON k.oid = a.attrelid WHERE k.relname = '{}' AND a.attnum > 0"
    )
    assert rows(ok(sql, described.format("c"))) == rows(ok(sql, described.format("t")))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("uuid", '"abc"'),
        ("jsonb", '"{a:1}"'),
        ("varchar(3)", '"four"'),
        ("time", "86400000001"),
        ("mz_timestamp", "-1"),
        ("uuid[]", '["abc"]'),
        ("numeric(3,1)", '"123.4"'),
    ],
)
def test_a_value_that_is_none_of_its_type_is_a_bad_record(
    sql: SessionClient, coordinator: Coordinator, tmp_path: Path, kind: str, value: str
) -> None:
    stream = tmp_path / "stream"
    stream.mkdir()
    update = f'{{"updates":[{{"data":{{"x":{value}}},"time":5,"diff":1}}]}}'
    (stream / "a.jsonl").write_text(
        f'{update}\n{{"progress":{{"lower":[0],"upper":[9],"counts":[{{"time":5,"count":1}}]}}}}\n'
    )
    ok(sql, f"CREATE SOURCE c (x {kind}) FROM CDC FILES '{stream}'")
    assert read_so_far(coordinator, "c") == 5
    (reason,) = rows(ok(sql, "SELECT reason FROM mz_internal.mz_source_bad_records"))
    assert reason.startswith("column x is ") and rows(ok(sql, "SELECT * FROM c")) == []


def test_a_source_is_reset(sql: SessionClient, coordinator: Coordinator, tmp_path: Path) -> None:
    stream = tmp_path / "stream"
    stream.mkdir()
    update = '{"updates":[{"data":{"id":%d},"time":5,"diff":1}]}'
    progress = '{"progress":{"lower":[0],"upper":[9],"counts":[{"time":5,"count":1}]}}'
    (stream / "a.jsonl").write_text(f"{update % 1}\n{progress}\n")
    ok(sql, f"CREATE SOURCE c (id int) FROM CDC FILES '{stream}'", "CREATE MATERIALIZED VIEW v AS SELECT id + 1 FROM c")
    read_so_far(coordinator, "c")
    (stream / "a.jsonl").write_text(f"{update % 7}\n{progress}\n")
    read_so_far(coordinator, "c")
    assert rows(ok(sql, "SELECT * FROM c")) == ["1"]
    assert sql("ALTER SOURCE c RESET") == ["ALTER SOURCE"]
    assert read_so_far(coordinator, "c") == 9
    assert rows(ok(sql, "SELECT * FROM c")) == ["7"] and rows(ok(sql, "SELECT * FROM v")) == ["8"]
    ok(sql, "CREATE SOURCE g FROM LOAD GENERATOR COUNTER")
    assert sql("ALTER SOURCE g RESET") == ['! 42809 source "g" cannot be reset']
    assert sql("ALTER SOURCE nobody RESET")[0].startswith("! 42")
    assert sql("ALTER SOURCE IF EXISTS nobody RESET")[-1] == "ALTER SOURCE"


def test_options_of_a_stream_are_changed(sql: SessionClient, coordinator: Coordinator, tmp_path: Path) -> None:
    ok(sql, "CREATE TABLE t (id int)", f"CREATE SINK s FROM t INTO CDC FILES '{tmp_path}/out' WITH (INTERVAL_MS 0)")
    delivered(coordinator, "s")
    ok(sql, "ALTER SINK s SET (RETAIN HISTORY FOR '1 day', HEARTBEAT_S 5)", "INSERT INTO t VALUES (1)")
    delivered(coordinator, "s")
    found = next(item for item in coordinator.catalog.state.of(Sink) if item.name == "s")
    assert found.spec.options == {"interval_ms": "0", "retain history": "1 day", "heartbeat_s": "5"}
    assert sql("ALTER SINK s SET (SPLITS 2)")[0].startswith("! 22023 a change stream has no option")


def test_a_stream_that_has_not_begun_cannot_be_joined(sql: SessionClient, tmp_path: Path) -> None:
    """Two that both begin it, each at its own time, contradict each other."""
    ok(sql, "CREATE TABLE t (id int)")
    joins = f"CREATE SINK s FROM t INTO CDC FILES '{tmp_path}/stream' WITH (JOIN)"
    assert sql(joins)[0] == "! 22023 there is no change stream to join yet"
    (tmp_path / "stream").mkdir()
    assert sql(joins)[0] == "! 22023 there is no change stream to join yet"
    assert rows(sql("SHOW SINKS")) == []


@pytest.mark.timeout(1200)
def test_two_environments_of_one_definition_killed_in_turn(tmp_path: Path, long_forms: bool) -> None:
    """Made apart, from the same generator, they write one stream; whoever lives goes on, and the stream is the view."""
    start_ms = int(time.time() * 1000) - 5_000
    generator = f"COUNTER (TICK INTERVAL '40ms', START AT {start_ms}, MAX CARDINALITY 60)"
    definitions = (
        f"CREATE SOURCE c FROM LOAD GENERATOR {generator} WITH (RETAIN HISTORY FOR '1h')",
        "CREATE MATERIALIZED VIEW v WITH (RETAIN HISTORY FOR '1h') AS"
        " SELECT counter % 7 AS k, count(*) AS n, sum(counter) AS s FROM c GROUP BY counter % 7",
    )
    kill_in_turn(tmp_path, definitions, 50 if long_forms else 2)


@pytest.mark.timeout(1200)
def test_two_environments_that_read_one_stream_killed_in_turn(tmp_path: Path, long_forms: bool) -> None:
    """Their source has the stream's time, so their views are the same, and both write them down in one stream."""
    given = f"FROM CDC FILES '{tmp_path}/input' WITH (POLL_MS 20, TIMELINE 'x', RETAIN HISTORY FOR '1h')"
    definitions = (
        f"CREATE SOURCE c (k int, v bigint) {given}",
        "CREATE MATERIALIZED VIEW v WITH (RETAIN HISTORY FOR '1h') AS"
        " SELECT k % 7 AS k, count(*) AS n, sum(v) AS s FROM c WHERE mz_now() <= v + 500 GROUP BY k % 7",
    )
    over = threading.Event()
    writer = threading.Thread(target=write_on, args=(tmp_path / "input", over), daemon=True)
    writer.start()
    try:
        kill_in_turn(tmp_path, definitions, 50 if long_forms else 2)
    finally:
        over.set()
        writer.join()


def write_on(folder: Path, over: threading.Event) -> None:
    """A stream that goes on: a row at most times, some of which go again; in every file more than is new."""
    folder.mkdir()
    rng, lower, steps = random.Random(7), 0, 0
    before: list[str] = []
    present: list[tuple[int, int]] = []
    while not over.wait(0.02 if steps < 1000 else 0.2):  # or there are too many files, where kills take long
        upper, updates = lower + rng.randrange(1, 60), []
        for at in sorted(rng.sample(range(lower, upper), rng.randrange(0, min(6, upper - lower) + 1))):
            goes = bool(present) and rng.random() < 0.4
            row = present.pop(rng.randrange(len(present))) if goes else (rng.randrange(50), at)
            present += [] if goes else [row]
            updates.append({"data": {"k": row[0], "v": row[1]}, "time": at, "diff": -1 if goes else 1})
        counts = [{"time": each["time"], "count": 1} for each in updates]
        progress = {"progress": {"lower": [lower], "upper": [upper], "counts": counts}}
        lines = [json.dumps(each) for each in (progress, *([{"updates": updates}] if updates else []))]
        steps, lower = steps + 1, upper
        again, before = before, lines
        made = folder / f"_{steps:06}"  # whose name is not one of the stream's
        made.write_text("".join(f"{line}\n" for line in (*again, *lines)))
        made.rename(folder / f"{steps:06}.jsonl")


def kill_in_turn(tmp_path: Path, definitions: tuple[str, ...], times: int) -> None:
    """Two environments with these definitions write the view `v` to one stream; in the end it is the view of both."""
    stream = tmp_path / "stream"
    into = f"CREATE SINK s FROM v INTO CDC FILES '{stream}'"
    with Coordinator.open(tmp_path / "left") as left:
        ok(SessionClient(left), *definitions, f"{into} WITH (INTERVAL_MS 20)")
    children = {"left": start(tmp_path / "left")}
    try:
        with Coordinator.open(tmp_path / "right") as right:
            sql = SessionClient(right)
            ok(sql, *definitions)
            deadline = time.monotonic() + WAIT_S
            while sql(f"{into} WITH (JOIN, INTERVAL_MS 20)") != ["CREATE SINK"]:  # until the left is past its beginning
                assert time.monotonic() < deadline
                run_on(children["left"], 2)
        children["right"] = start(tmp_path / "right")
        for number in range(times):
            one, other = ("left", "right")[:: 1 if number % 2 else -1]
            run_on(children[one], 3)
            kill(children[one])
            run_on(children[other], 5)
            children[one] = start(tmp_path / one)
        for child in children.values():
            run_on(child, 5)
            kill(child)
    finally:
        for child in children.values():
            child.kill()
            child.wait()
    stats = examine(Stream(str(stream)), thoroughly=True)
    assert not stats.stalls and not stats.flaws and not stats.partial  # who is killed may leave updates uncounted
    frontier = bound_of(stats.frontier)
    assert frontier is not None
    totals: Counter[Any] = Counter()
    for closed in Stream(str(stream)).closed(Reader(Stream(str(stream)).start)):
        for row, _, diff in closed.updates:
            totals[row] += diff
    told = sorted("|".join(map(str, row)) for row in totals.elements())
    assert told
    for side in ("left", "right"):
        with Coordinator.open(tmp_path / side) as coordinator:
            assert rows(ok(SessionClient(coordinator), f"SELECT * FROM v AS OF {frontier - 1}")) == told
