"""Versions of a view with more columns than before: who knew fewer goes on with those, and who comes sees all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from everview.adapter.catalog import codec
from everview.adapter.catalog.items import ColumnInfo, MaterializedView, Version, View
from everview.adapter.catalog.state import Catalog
from everview.adapter.replacement_cutover import Pair
from everview.adapter.versions import VERSIONS_KEPT_MAX, history
from everview.compute.ir.types import INT4, INT8
from everview.compute.sql.errors import SqlError
from tests.adapter.conftest import Clock
from tests.adapter.delivery import delivered, in_sqlite, ok, rows
from tests.adapter.scripts import SessionClient
from tests.adapter.test_replacements import failure
from tests.adapter.test_restart import open_at
from tests.adapter.test_subscribe import Subscriber
from tests.waiting import eventually

OLD = "SELECT k, sum(v) AS s FROM t GROUP BY k"
WIDE = "SELECT k, sum(v) AS s, count(*) AS c FROM t GROUP BY k"
WIDER = "SELECT k, sum(v) AS s, count(*) AS c, max(v) AS m FROM t GROUP BY k"


class World:
    """An environment that can be opened again."""

    def __init__(self, path: Path) -> None:
        self._path, self._clock = path, Clock()
        self.open()

    def open(self) -> None:
        self.coordinator = open_at(self._path, self._clock)
        self.sql = SessionClient(self.coordinator)

    def restart(self) -> None:
        self.coordinator.close()
        self.open()

    def ok(self, *statements: str) -> list[str]:
        return ok(self.sql, *statements)

    def rows(self, query: str) -> list[str]:
        return rows(self.sql(query))

    def become(self, definition: str, name: str = "mv") -> None:
        """Let a view have another definition."""
        self.ok(f"CREATE MATERIALIZED VIEW r REPLACING {name} AS {definition}")
        self.ok(f"ALTER MATERIALIZED VIEW {name} APPLY REPLACEMENT r")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A table, and a view of it with two columns."""
    made = World(tmp_path / "data")
    made.ok("CREATE TABLE t (k int, v int)", "INSERT INTO t VALUES (1, 10), (1, 5), (2, 20)")
    made.ok("CREATE TABLE other (k int, c bigint)", "INSERT INTO other VALUES (1, 7), (2, 8)")
    made.ok(f"CREATE MATERIALIZED VIEW mv AS {OLD}")
    yield made
    made.coordinator.close()


# What each means, as long as it knows k and s only. The column c comes later, and would change all of them.
DEPENDENTS = {
    "star": ("SELECT * FROM mv", "SELECT k, s FROM mv"),
    "tabled": ("TABLE mv", "SELECT k, s FROM mv"),
    "naturally": ("SELECT * FROM mv NATURAL JOIN other", "SELECT k, mv.s, other.c FROM mv JOIN other USING (k)"),
    "unclear": ("SELECT s, c FROM mv JOIN other ON mv.k = other.k", "SELECT s, other.c FROM mv JOIN other USING (k)"),
    "renamed": ("SELECT a + b AS x FROM mv AS m (a, b)", "SELECT k + s FROM mv"),
    "counted": ("SELECT count(*) AS n FROM (SELECT DISTINCT * FROM mv) AS q", "SELECT count(*) FROM mv"),
    "nested": ("WITH q AS (SELECT * FROM mv) SELECT * FROM q WHERE s IN (SELECT s FROM mv)", "SELECT k, s FROM mv"),
}


def test_dependents_keep_the_columns_that_they_named(world: World) -> None:
    for name, (query, _) in DEPENDENTS.items():
        world.ok(f"CREATE VIEW {name}_v AS {query}", f"CREATE MATERIALIZED VIEW {name} AS {query}")
    world.become(WIDE)
    assert world.ok("SELECT * FROM mv ORDER BY k") == ["k|s|c", "1|15|2", "2|20|1"]
    for number in range(3):
        for name, (_, meant) in DEPENDENTS.items():
            assert world.rows(f"SELECT * FROM {name}") == world.rows(meant), name
            assert world.rows(f"SELECT * FROM {name}_v") == world.rows(meant), name
            assert "c" not in world.ok(f"SELECT * FROM {name}")[0].split("|")[2:-1]
        world.ok(f"INSERT INTO t VALUES (1, {number}), ({number + 5}, 1)")
        if number == 1:
            world.restart()
    for name in DEPENDENTS:  # what is shown makes the same once more
        (created,) = world.ok(f"SHOW CREATE MATERIALIZED VIEW {name}")[1:]
        world.ok(created.partition("|")[2].replace(f"public.{name} (", f"public.{name}_again ("))
        assert world.ok(f"SELECT * FROM {name}_again LIMIT 0") == world.ok(f"SELECT * FROM {name} LIMIT 0")
        assert world.rows(f"SELECT * FROM {name}_again") == world.rows(f"SELECT * FROM {name}")


def test_who_comes_later_sees_all_columns_of_then(world: World) -> None:
    world.ok("CREATE VIEW before AS SELECT * FROM mv")
    world.become(WIDE)
    world.ok("CREATE MATERIALIZED VIEW middle AS SELECT * FROM mv")
    both = "SELECT b.s AS old, m.s AS new, m.c FROM before AS b JOIN mv AS m ON b.k = m.k"
    world.ok(f"CREATE MATERIALIZED VIEW mixed AS {both}")  # one plan that knows the view by two versions
    world.become(WIDER)
    for _ in range(2):
        assert world.ok("SELECT * FROM mv ORDER BY k") == ["k|s|c|m", "1|15|2|10", "2|20|1|20"]
        assert world.ok("SELECT * FROM middle ORDER BY k") == ["k|s|c", "1|15|2", "2|20|1"]
        assert world.ok("SELECT * FROM before ORDER BY k") == ["k|s", "1|15", "2|20"]
        assert world.rows("SELECT * FROM mixed") == world.rows(both) == ["15|15|2", "20|20|1"]
        world.restart()
    world.ok("INSERT INTO t VALUES (2, 1)")
    assert world.rows("SELECT * FROM mixed") == world.rows(both) == ["15|15|2", "21|21|2"]


def test_versions_are_shown(world: World) -> None:
    world.become("SELECT k, sum(v) + 1 AS s FROM t GROUP BY k")
    world.become(WIDE)
    query = (
        "SELECT version, current, columns, definition FROM mz_internal.mz_materialized_view_versions ORDER BY version"
    )
    table = "everview.public.t AS t"
    assert world.ok(query)[1:] == [
        f"1|f|{{k,s}}|SELECT k, sum(v) AS s FROM {table} GROUP BY k",
        f"2|f|{{k,s}}|SELECT k, sum(v) + 1 AS s FROM {table} GROUP BY k",
        f"3|t|{{k,s,c}}|SELECT k, sum(v) AS s, count(*) AS c FROM {table} GROUP BY k",
    ]
    ids = world.ok("SELECT id, global_id FROM mz_internal.mz_materialized_view_versions ORDER BY version")[1:]
    first, _ = ids[0].split("|")
    assert ids[0] == f"{first}|{first}" and len(set(ids)) == 3 and all(each.startswith(f"{first}|") for each in ids)
    assert world.ok("SHOW COLUMNS FROM mv")[1:] == ["k|t|integer|", "s|t|bigint|", "c|t|bigint|"]


def test_the_difference_is_told_in_all_columns(world: World) -> None:
    world.ok(f"CREATE MATERIALIZED VIEW r REPLACING mv AS {WIDE.replace('FROM t', 'FROM t WHERE k = 1')}")
    shown = ["mz_diff|k|s|c", "1|1|15|2", "-1|1|15|NULL", "-1|2|20|NULL"]
    assert world.ok("SHOW REPLACEMENT DIFF r") == shown
    world.ok("SELECT * FROM r")
    assert world.ok("SELECT rows_added, rows_removed FROM mz_internal.mz_replacements")[1:] == ["1|2"]
    world.ok("INSERT INTO t VALUES (1, 1)")
    assert world.ok("SHOW REPLACEMENT DIFF r")[1:3] == ["1|1|16|3", "-1|1|16|NULL"]
    assert world.ok("SELECT rows_added, rows_removed FROM mz_internal.mz_replacements")[1:] == ["1|2"]


def test_old_times_have_null_in_new_columns(world: World) -> None:
    world.ok("ALTER MATERIALIZED VIEW mv SET (RETAIN HISTORY FOR '1h')", "INSERT INTO t VALUES (3, 1)")
    assert world.rows("SELECT * FROM mv") == ["1|15", "2|20", "3|1"]
    before = world.coordinator.timeline.upper - 1
    world.become(WIDE)
    assert world.rows(f"SELECT * FROM mv AS OF {before}") == ["1|15|NULL", "2|20|NULL", "3|1|NULL"]
    assert world.rows(f"SELECT count(*) FROM mv WHERE c IS NULL AS OF {before}") == ["3"]
    assert world.rows("SELECT count(*) FROM mv WHERE c IS NULL") == ["0"]


def test_subscriptions_keep_their_columns(world: World) -> None:
    """Rows that differ in new columns only are no change; whoever subscribes later is told of these columns."""
    early = [Subscriber(world.coordinator, f"SUBSCRIBE ({query})") for query in ("SELECT * FROM mv", "TABLE mv")]
    grouped = Subscriber(world.coordinator, "SUBSCRIBE (SELECT count(*) AS n FROM mv)")
    for each in early:
        assert sorted(each.data()) == [(1, 1, 15), (1, 2, 20)]
    grouped.take()
    world.become(WIDE)
    world.ok("INSERT INTO t VALUES (2, 0), (3, 1)", "SELECT * FROM mv")
    late = Subscriber(world.coordinator, "SUBSCRIBE (SELECT * FROM mv)")
    for each in early:
        assert each.names == ["mz_timestamp", "mz_diff", "k", "s"]
        assert sorted(each.data()) == [(1, 3, 1)]
    counted: list[tuple[Any, ...]] = []

    def all_counted() -> bool:
        counted.extend(grouped.data())
        return len(counted) == 2

    eventually(all_counted)
    assert sorted(counted) == [(-1, 2), (1, 3)]
    assert sorted(late.data()) == [(1, 1, 15, 2), (1, 2, 20, 2), (1, 3, 1, 1)]


def test_an_index_serves_who_knows_fewer_columns_and_who_knows_all(world: World, lookups: list[int]) -> None:
    world.ok("CREATE INDEX i ON mv (k)", "CREATE DEFAULT INDEX ON mv", "CREATE VIEW v AS SELECT * FROM mv")
    assert world.ok("SELECT * FROM mv WHERE k = 1") == ["k|s", "1|15"]
    for definition, found in ((WIDE, ["k|s|c", "1|15|2"]), (OLD, ["k|s", "1|15"])):
        world.become(definition)
        for _ in range(2):
            count = len(lookups)
            assert world.ok("SELECT * FROM mv WHERE k = 1") == found
            assert world.ok("SELECT * FROM v WHERE k = 1") == ["k|s", "1|15"]
            assert len(lookups) == count + 2
            world.restart()
    assert "(k, s)" in world.ok("SHOW CREATE INDEX mv_primary_idx")[1]


def test_a_sink_keeps_its_columns(world: World, tmp_path: Path) -> None:
    file = tmp_path / "out.db"
    place = f"SQLITE (PATH '{file}', TABLE '{{}}')"
    world.ok(f"CREATE SINK one FROM mv INTO {place.format('one')} KEY (k)")
    world.become(WIDE)
    other = tmp_path / "other.db"
    world.ok(f"CREATE SINK two FROM mv INTO SQLITE (PATH '{other}', TABLE 'two') KEY (k)")
    for number in range(3):
        world.ok(f"INSERT INTO t VALUES ({number}, 1)")
        for name in ("one", "two"):
            delivered(world.coordinator, name)
        assert in_sqlite(file, "one")[1] == world.rows("SELECT k, s FROM mv")
        assert in_sqlite(other, "two")[1] == world.rows("SELECT * FROM mv")
        world.restart()


def test_a_change_stream_keeps_its_columns(world: World, tmp_path: Path) -> None:
    stream = tmp_path / "stream"
    world.ok(f"CREATE SINK out FROM mv INTO CDC FILES '{stream}' WITH (INTERVAL_MS 0)")
    delivered(world.coordinator, "out")
    world.become(WIDE)
    for number in range(2):
        world.ok(f"INSERT INTO t VALUES (1, 0), ({number}, 3)")
        delivered(world.coordinator, "out")
        world.restart()
    world.ok(f"CREATE SOURCE back (k int, s bigint) FROM CDC FILES '{stream}' WITH (POLL_MS 50)")
    eventually(lambda: world.rows("SELECT * FROM back") == world.rows("SELECT k, s FROM mv"))


def test_going_back_to_fewer_columns(world: World, tmp_path: Path) -> None:
    """Those who came later and need the new columns are in the way, and are told one by one."""
    world.become(WIDE)
    late = Subscriber(world.coordinator, "SUBSCRIBE (SELECT * FROM mv)")
    world.ok(
        "CREATE VIEW uses AS SELECT * FROM mv",
        "CREATE MATERIALIZED VIEW sums AS SELECT sum(c) AS c FROM mv",
        "CREATE INDEX by_c ON mv (c)",
        "CREATE MATERIALIZED VIEW fine AS SELECT k, s FROM mv WHERE s > 15",
        "CREATE INDEX by_k ON mv (k)",
        f"CREATE SINK all_of_it FROM mv INTO SQLITE (PATH '{tmp_path / 'out.db'}', TABLE 'o') KEY (k)",
    )
    found = failure(world.sql, "ALTER MATERIALIZED VIEW mv ROLLBACK REPLACEMENT")
    assert found.sqlstate == "2BP01"
    assert found.message == 'replacement "mv_rollback" lacks columns of "mv" that others use'
    assert sorted((found.detail or "").splitlines()) == [
        'index everview.public.by_c uses column "c"',
        'materialized view everview.public.sums uses column "c"',
        'sink everview.public.all_of_it uses column "c"',
        'view everview.public.uses uses column "c"',
    ]
    world.ok("DROP VIEW uses", "DROP MATERIALIZED VIEW sums", "DROP INDEX by_c", "DROP SINK all_of_it")
    world.ok("ALTER MATERIALIZED VIEW mv ROLLBACK REPLACEMENT")
    world.ok("CREATE VIEW uses AS SELECT c FROM mv")  # meanwhile
    found = failure(world.sql, "ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT mv_rollback")
    assert found.detail == 'view everview.public.uses uses column "c"'
    items = {item.name: item for item in world.coordinator.catalog.state.of(MaterializedView)}
    interrupts = world.sql.session.interrupts  # who waits to apply looks again when it is time
    with pytest.raises(SqlError, match="lacks columns"):
        world.coordinator.replacements.apply([Pair(items["mv"], items["mv_rollback"])], interrupts, "everview")
    world.ok("INSERT INTO t VALUES (8, 1)")
    assert world.rows("SELECT * FROM mv") == world.rows(WIDE)
    world.ok("DELETE FROM t WHERE k = 8")
    world.ok("DROP VIEW uses", "ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT mv_rollback")
    for number in range(3):
        assert world.ok("SELECT * FROM mv WHERE k = 1") == ["k|s", f"1|{15 + number}"]
        assert world.rows("SELECT * FROM mv") == world.rows(OLD)
        assert world.rows("SELECT * FROM fine") == world.rows("SELECT k, s FROM mv WHERE s > 15")
        world.ok("INSERT INTO t VALUES (1, 1)", "SELECT * FROM mv")
        if number == 0:
            changes = sorted(late.data(), key=repr)
            assert (-1, 1, 15, 2) in changes and (1, 1, 16, None) in changes
        else:
            world.restart()


def test_columns_that_were_there_once(world: World) -> None:
    """The shard keeps them, and what comes later has a place of its own: its history is never that of another."""
    world.ok("ALTER MATERIALIZED VIEW mv SET (RETAIN HISTORY FOR '1h')")
    moments: list[tuple[int, list[str]]] = []

    def note(*seen: str) -> None:
        world.ok("SELECT * FROM mv")
        moments.append((world.coordinator.timeline.upper - 1, list(seen)))

    note("NULL|NULL")
    world.become(WIDE)
    note("NULL|NULL")
    world.ok("CREATE MATERIALIZED VIEW fine AS SELECT k FROM mv WHERE s > 15", "CREATE INDEX i ON mv (k)")
    late = Subscriber(world.coordinator, "SUBSCRIBE (SELECT * FROM mv WHERE k = 1)")
    assert late.data() == [(1, 1, 15, 2)]
    world.become(OLD)
    note("NULL|NULL")
    world.become("SELECT k, sum(v) AS s, -1::bigint AS least, 'x' AS note FROM t GROUP BY k")
    note("-1|x")
    world.ok("CREATE MATERIALIZED VIEW uses AS SELECT note, least, k FROM mv WHERE note = 'x'")
    for _ in range(2):
        assert world.ok("SELECT * FROM mv ORDER BY k") == ["k|s|least|note", "1|15|-1|x", "2|20|-1|x"]
        assert world.ok("SELECT * FROM mv WHERE k = 2") == ["k|s|least|note", "2|20|-1|x"]
        assert world.rows("SELECT * FROM uses") == ["x|-1|1", "x|-1|2"]
        assert world.rows("SELECT * FROM fine") == ["2"]
        for time, seen in moments:
            assert world.rows(f"SELECT least, note FROM mv AS OF {time} LIMIT 1") == seen
            assert world.rows(f"SELECT least, note FROM mv WHERE k = 1 AS OF {time}") == seen
        (created,) = world.ok("SHOW CREATE MATERIALIZED VIEW fine")[1:]
        assert "(SELECT k, s FROM everview.public.mv) AS mv" in created
        if late is not None:
            assert late.data() == [(-1, 1, 15, 2), (1, 1, 15, None)]  # and never what is in another column
            late = None  # type: ignore[assignment]
        world.restart()
    world.ok("INSERT INTO t VALUES (3, 3)")
    assert world.rows("SELECT * FROM mv WHERE k = 3") == ["3|3|-1|x"]
    assert world.rows("SELECT * FROM uses WHERE k = 3") == ["x|-1|3"]
    found = failure(world.sql, f"CREATE MATERIALIZED VIEW r REPLACING mv AS {OLD}")
    assert sorted((found.detail or "").splitlines()) == [
        'materialized view everview.public.uses uses column "least"',
        'materialized view everview.public.uses uses column "note"',
    ]


def test_an_index_serves_columns_with_places(world: World, lookups: list[int]) -> None:
    world.ok("CREATE INDEX i ON mv (k)")
    world.become(WIDE)
    world.become(OLD)
    world.become("SELECT k, sum(v) AS s, 'x' || k AS note FROM t GROUP BY k")
    world.ok("CREATE INDEX by_note ON mv (note)")
    for _ in range(2):
        for condition in ("k = 2", "note = 'x2'"):
            count = len(lookups)
            assert world.ok(f"SELECT * FROM mv WHERE {condition}") == ["k|s|note", "2|20|x2"]
            assert len(lookups) == count + 1, condition
        world.restart()


def test_a_column_that_comes_back_has_its_past(world: World) -> None:
    world.ok("ALTER MATERIALIZED VIEW mv SET (RETAIN HISTORY FOR '1h')")
    world.become(WIDE)
    world.ok("SELECT * FROM mv")
    then = world.coordinator.timeline.upper - 1
    world.become(OLD)
    world.ok("SELECT * FROM mv")
    between = world.coordinator.timeline.upper - 1
    world.become(WIDE.replace("count(*) AS c", "'text' AS c"))  # another, of the same name
    assert world.rows(f"SELECT c FROM mv AS OF {then}") == ["NULL", "NULL"]
    world.become(OLD)
    world.become(WIDE)
    assert world.rows(f"SELECT c FROM mv AS OF {then}") == ["1", "2"]
    assert world.rows(f"SELECT c FROM mv AS OF {between}") == ["NULL", "NULL"]
    assert world.rows("SELECT c FROM mv") == ["1", "2"]
    world.ok("ALTER MATERIALIZED VIEW mv RENAME COLUMN c TO pieces")
    world.become(OLD)
    world.become(WIDE.replace("AS c", "AS c, 5 AS pieces"))
    assert world.rows(f"SELECT k, s, c, pieces FROM mv WHERE k = 1 AS OF {then}") == ["1|15|NULL|NULL"]


def test_sinks_of_columns_with_places(world: World, tmp_path: Path) -> None:
    world.become(WIDE)
    world.become(OLD)
    world.become("SELECT k, sum(v) AS s, 'x' || k AS note FROM t GROUP BY k")
    file, stream = tmp_path / "out.db", tmp_path / "stream"
    world.ok(f"CREATE SINK one FROM mv INTO SQLITE (PATH '{file}', TABLE 'one') KEY (k)")
    world.ok(f"CREATE SINK two FROM mv INTO CDC FILES '{stream}' WITH (INTERVAL_MS 0)")
    for number in range(3):
        world.ok(f"INSERT INTO t VALUES ({number}, 1)")
        for name in ("one", "two"):
            delivered(world.coordinator, name)
        assert in_sqlite(file, "one")[1] == world.rows("SELECT * FROM mv")
        world.restart()
    world.ok(f"CREATE SOURCE back (k int, s bigint, note text) FROM CDC FILES '{stream}' WITH (POLL_MS 50)")
    eventually(lambda: world.rows("SELECT * FROM back") == world.rows("SELECT * FROM mv"))


def test_fewer_columns_that_never_were_are_refused(world: World) -> None:
    world.become(WIDER)
    found = failure(world.sql, f"CREATE MATERIALIZED VIEW r REPLACING mv AS {WIDE}")
    assert found.detail == 'column "m" is missing in "r"'


def test_going_back_means_the_inputs_of_then(world: World) -> None:
    """What was SELECT * when its view had two columns is two columns when it comes back."""
    world.ok("CREATE MATERIALIZED VIEW above AS SELECT * FROM mv")
    world.become("SELECT k, s + 1 AS s FROM mv", "above")
    world.become(WIDE)
    world.ok("ALTER MATERIALIZED VIEW above ROLLBACK REPLACEMENT")
    world.restart()
    world.ok("ALTER MATERIALIZED VIEW above APPLY REPLACEMENT above_rollback")
    assert world.ok("SELECT * FROM above ORDER BY k") == ["k|s", "1|15", "2|20"]


def test_names_change_in_all_versions(world: World) -> None:
    world.become(WIDE)
    world.ok("ALTER TABLE t RENAME TO u")
    if not world.sql("ALTER MATERIALIZED VIEW mv RENAME COLUMN s TO total")[0].startswith("!"):
        assert world.ok("SELECT * FROM mv LIMIT 0") == ["k|total|c"]
    names = world.ok("SELECT * FROM mv LIMIT 0")[0].split("|")[:2]
    world.ok("ALTER MATERIALIZED VIEW mv ROLLBACK REPLACEMENT")
    world.ok("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT mv_rollback")
    assert world.ok("SELECT * FROM mv ORDER BY k") == ["|".join(names), "1|15", "2|20"]


def test_it_applies_itself(world: World) -> None:
    world.ok(f"CREATE MATERIALIZED VIEW r REPLACING mv WITH (APPLY WHEN HYDRATED) AS {WIDE}")
    eventually(lambda: world.sql("SELECT * FROM mv ORDER BY k") == ["k|s|c", "1|15|2", "2|20|1"])


# What a stored query may name


@pytest.mark.parametrize("name", ["values", "order", "join", "table", "select", "drop", "Quoted", "qualify"])
def test_stored_queries_survive_names_that_need_quotes(world: World, name: str) -> None:
    world.ok(f'CREATE TABLE "{name}" (k int)', f'INSERT INTO "{name}" VALUES (4)')
    world.ok(f'CREATE MATERIALIZED VIEW m AS SELECT * FROM "{name}"', f'CREATE MATERIALIZED VIEW n AS TABLE "{name}"')
    world.ok(f'CREATE VIEW v AS SELECT "{name}".k FROM "{name}" UNION ALL (TABLE "{name}")')
    world.restart()
    assert world.rows("SELECT * FROM m") == world.rows("SELECT * FROM n") == ["4"]
    assert world.rows("SELECT * FROM v") == ["4", "4"]


# The catalog's entries


def view(id: str, columns: tuple[ColumnInfo, ...], query: str, **more: Any) -> MaterializedView:
    return MaterializedView(id=id, name="mv", schema="n1", owner="me", columns=columns, query=query, **more)


def test_versions_are_written_down() -> None:
    columns = (ColumnInfo("k", INT4), ColumnInfo("s", INT8))
    before = Version("u5", 1, columns[:1], "SELECT 1", ("u1",), {"u1": "u3"})
    item = view("u5", columns, "SELECT 2", depends=("u1",), version=2)
    item = replace(item, current="u9", history=(before,), pins={"u1": "u4"})
    assert codec.decode_item(codec.encode(item)) == item
    assert [each.id for each in item.versions] == ["u5", "u9"]
    assert item.at_version("u5").columns == columns[:1] and item.at_version("u9") is item


def test_places_are_written_down() -> None:
    columns = (ColumnInfo("k", INT4), ColumnInfo("s", INT8, place=2, earlier=(1,)))
    item = view("u5", columns, "SELECT 2", layout=(INT4, INT4, INT8))
    assert codec.decode_item(codec.encode(item)) == item
    assert item.places == (0, 2) and item.stored_types == (INT4, INT4, INT8)
    plain = view("u5", columns[:1], "SELECT 2")
    version, fields = json.loads(codec.encode(plain))
    del fields["layout"], fields["guards"]  # as it was written before
    assert version == 2 and codec.decode_item(json.dumps([version, fields]).encode()) == plain


def test_entries_of_before_there_were_versions() -> None:
    item = view("u5", (ColumnInfo("k", INT4),), "SELECT 2", version=3)
    _, fields = json.loads(codec.encode(item))
    for name in ("history", "pins", "current", "layout", "guards"):
        del fields[name]
    found = codec.decode_item(json.dumps([1, {**fields, "before": "SELECT 1"}]).encode())
    assert isinstance(found, MaterializedView) and found.history == (Version("u5", 2, item.columns, "SELECT 1"),)
    assert replace(found, history=()) == item


def test_only_so_many_versions_are_remembered() -> None:
    """But for one that someone knows the view by, and the widest, which tells what is in the shard."""
    column = ColumnInfo("k", INT4)
    item = view("u0", (column,), "SELECT 0")
    other = View(id="u1", name="v", schema="n1", owner="me", query="", depends=("u0",), pins={"u0": "u1003"})
    for number in range(1, 2 * VERSIONS_KEPT_MAX):
        catalog = Catalog(items={"u0": item, "u1": other})
        columns = (column, column) if number == 5 else (column,)
        kept = history(catalog, item)
        item = replace(item, version=number + 1, current=f"u{1000 + number}", history=kept, columns=columns)
    numbers = [each.number for each in item.history]
    assert numbers[:2] == [4, 6] and len(numbers) == VERSIONS_KEPT_MAX + 2
    assert numbers[-1] == item.version - 1


def test_the_size_of_a_replaced_view_has_its_state(world: World) -> None:
    world.become(WIDER)
    coordinator = world.coordinator
    item = next(each for each in coordinator.catalog.state.items.values() if each.name == "mv")
    kept = sum(size for owner, _, _, size in coordinator.arrangements() if owner == item.id)
    own = sum(batch.size_bytes for batch in coordinator.environment.shard(item.id).batches.values())
    assert kept > 0 and coordinator.stored_bytes(item.id) == own + kept
