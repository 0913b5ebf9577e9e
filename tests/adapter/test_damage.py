"""Damage to every kind of stored thing: the rest opens, what is damaged says so, and no row is ever wrong."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from everview.adapter.coordinator import Coordinator
from everview.errors import EverviewError
from everview.storage.errors import Corruption, NewerFormat
from tests.adapter.conftest import Clock
from tests.adapter.scripts import SessionClient

NOW = 1_700_000_000_000
SETUP = """
CREATE TABLE small (k int, v text)
INSERT INTO small VALUES (1, 'one'), (2, 'two')
INSERT INTO small VALUES (3, 'three')
CREATE TABLE other (k int, n int)
INSERT INTO other SELECT g % 3 + 1, g FROM generate_series(1, 20) AS g
CREATE TABLE large (k int, v text)
INSERT INTO large SELECT g, repeat('x', 50) || g FROM generate_series(1, 8000) AS g
CREATE TABLE kept (k int, at timestamptz) WITH (TTL '30 days' ON at)
INSERT INTO kept VALUES (1, now())
CREATE VIEW plain AS SELECT k, v FROM small WHERE k > 1
CREATE MATERIALIZED VIEW joined AS SELECT v, sum(n) AS n, max(n) AS most FROM small JOIN other USING (k) GROUP BY v
CREATE MATERIALIZED VIEW above AS SELECT count(*) AS n FROM joined
CREATE INDEX ON small (k)
CREATE INDEX by_plain ON plain (k)
CREATE SCHEMA more
CREATE TABLE more.there (a int)
INSERT INTO more.there VALUES (7)
COMMENT ON TABLE small IS 'few'
CREATE ROLE reader LOGIN
CREATE SOURCE ticks FROM LOAD GENERATOR COUNTER (TICK INTERVAL '1h')
CREATE SINK written FROM joined INTO SQLITE (PATH '{folder}/out.db', TABLE 'joined') KEY (v)
CREATE SINK streamed FROM other INTO CDC FILES '{folder}/stream'
CREATE SUBSCRIPTION told FOR other
"""
QUERIES = {
    "SELECT k, v FROM small ORDER BY k": "small",
    "SELECT v FROM small WHERE k = 2": "small",
    "SELECT k, n FROM other ORDER BY n": "other",
    "SELECT count(*), min(v), max(v) FROM large": "large",
    "SELECT k FROM kept": "kept",
    "SELECT k, v FROM plain ORDER BY k": "plain",
    "SELECT v FROM plain WHERE k = 3": "plain",
    "SELECT v, n, most FROM joined ORDER BY v": "joined",
    "SELECT n FROM above": "above",
    "SELECT a FROM more.there": "there",
    "SELECT count(*) FROM ticks": "ticks",
}
REFUSALS = ("! XX001", "! 58030")


def open_at(folder: Path) -> Coordinator:
    return Coordinator.open(folder / "data", clock=Clock(NOW), ticking=False)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[str]]]:
    """A folder with an environment that has something of every kind, and what its relations hold."""
    folder = tmp_path_factory.mktemp("sound")
    with open_at(folder) as coordinator:
        sql = SessionClient(coordinator)
        for statement in SETUP.strip().format(folder=folder).splitlines():
            answer = sql(statement)
            assert not answer[0].startswith("!"), (statement, answer)
        answers = {query: sql(query) for query in QUERIES}
    assert not any(answer[0].startswith("!") for answer in answers.values())
    return folder, answers


@pytest.fixture
def folder(sound: tuple[Path, dict[str, list[str]]], tmp_path: Path) -> Path:
    shutil.copytree(sound[0], tmp_path / "copy")
    return tmp_path / "copy"


def entries(folder: Path) -> dict[str, bytes]:
    with closing(sqlite3.connect(folder / "data" / "consensus.db")) as db:
        return dict(db.execute("SELECT key, value FROM entries"))


def damage(folder: Path, key: str, how: str, rng: random.Random) -> None:
    """Damage one value."""
    with closing(sqlite3.connect(folder / "data" / "consensus.db")) as db, db:
        ((value,),) = db.execute("SELECT value FROM entries WHERE key = ?", [key])
        if how == "remove":
            db.execute("DELETE FROM entries WHERE key = ?", [key])
            return
        changed = bytearray(value)
        if how == "truncate":
            changed = changed[: rng.randrange(len(changed))]
        else:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        db.execute("UPDATE entries SET value = ? WHERE key = ?", [bytes(changed), key])


def check_answers(sql: SessionClient, answers: dict[str, list[str]], what: str) -> set[str]:
    """Every relation has the right rows, or refuses; gives those that refuse."""
    sql("SET statement_timeout = '20s'")
    refused = set()
    for query, answer in answers.items():
        found = sql(query)
        if found[0].startswith(REFUSALS):
            refused.add(QUERIES[query])
        elif QUERIES[query] != "ticks":
            assert found == answer, (what, query)
        else:
            assert not found[0].startswith("!"), (what, found)
    return refused


def kind_of(key: str) -> str:
    """Keys of one kind are damaged alike."""
    words = key.split("/")
    if words[0] == "meta":
        return "/".join(words[1:3]) if words[1] == "catalog" else words[1]
    return words[0]


def test_every_kind_of_entry(
    sound: tuple[Path, dict[str, list[str]]], tmp_path: Path, rng: random.Random, long_forms: bool
) -> None:
    original, answers = sound
    by_kind: dict[str, list[str]] = {}
    for key in sorted(entries(original)):
        by_kind.setdefault(kind_of(key), []).append(key)
    assert len(by_kind) >= 15, sorted(by_kind)
    cases = [(key, how) for keys in by_kind.values() for key in keys for how in ("flip", "truncate", "remove")]
    if not long_forms:
        cases = [(rng.choice(keys), rng.choice(["flip", "truncate", "remove"])) for keys in by_kind.values()]
    for number, (key, how) in enumerate(cases):
        copy = tmp_path / str(number)
        shutil.copytree(original, copy)
        damage(copy, key, how, rng)
        what = f"{how} {key}"
        try:
            coordinator = open_at(copy)
        except EverviewError as error:  # of the environment itself: one line says what to do
            if key == "format" and isinstance(error, NewerFormat):
                continue
            assert isinstance(error, Corruption), (what, error)
            assert error.hint is not None and "restore" in error.hint, what
            assert key.split("/")[0] in ("clock", "epoch", "format", "next_id", "sealed"), what
            continue
        with coordinator:
            sql = SessionClient(coordinator)
            refused = check_answers(sql, answers, what)
            if refused:
                assert coordinator.warnings(), what
            for id in list(coordinator.catalog.state.damaged):
                item = coordinator.catalog.state.items.get(id)
                if item is not None:  # else it went with another
                    name = coordinator.catalog.state.shown(item)
                    done = sql(f"DROP {item.kind.upper()} {name} CASCADE")
                    assert done[0].startswith("DROP"), (what, done)
            assert check_answers(sql, {q: a for q, a in answers.items() if QUERIES[q] not in refused}, what) == set()
        shutil.rmtree(copy)


@pytest.fixture
def opened(folder: Path) -> Iterator[list[Coordinator]]:
    coordinators: list[Coordinator] = []
    yield coordinators
    for each in coordinators:
        each.close()


def test_a_damaged_table_is_out_of_reach_and_the_rest_goes_on(
    folder: Path, sound: tuple[Path, dict[str, list[str]]], rng: random.Random, opened: list[Coordinator]
) -> None:
    with open_at(folder) as before:
        id = before.catalog.state.find(["small"], "everview", ["public"]).id  # type: ignore[union-attr]
    key = min(key for key in entries(folder) if key.startswith(f"inline/{id}/"))
    damage(folder, key, "flip", rng)
    coordinator = open_at(folder)
    opened.append(coordinator)
    sql = SessionClient(coordinator)
    assert check_answers(sql, sound[1], key) == {"small", "plain", "joined", "above"}
    for statement in (
        "INSERT INTO small VALUES (9, 'nine')",
        "UPDATE small SET v = 'x'",
        "DELETE FROM small",
        "TRUNCATE small",
        "CREATE VIEW over AS SELECT * FROM small",
        "CREATE MATERIALIZED VIEW over AS SELECT * FROM plain",
        "CREATE INDEX ON joined (v)",
        "SUBSCRIBE TO joined",
        "COPY small TO STDOUT",
        "ALTER TABLE small RENAME TO smaller",
        "COMMENT ON TABLE small IS 'none'",
        f"CREATE SINK again FROM small INTO SQLITE (PATH '{folder}/again.db', TABLE 't') KEY (k)",
    ):
        answer = sql(statement)
        assert answer[0].startswith("! XX001"), (statement, answer)
    assert sql("SELECT v FROM small")[0] == '! XX001 table "small" is damaged'
    assert sql("SELECT n FROM above")[0].startswith("! XX001 materialized view ")
    assert [row for row in sql("SELECT name FROM mz_tables") if row == "small"] == ["small"]  # it is still listed
    ((status,),) = [sql("SELECT status FROM mz_internal.mz_sink_statuses WHERE name = 'written'")[1:]]
    assert status == "stalled"
    assert any('table "small" is damaged' in each for each in coordinator.warnings())
    assert sql("INSERT INTO other VALUES (1, 100)") == ["INSERT 0 1"]
    assert sql("DROP TABLE small")[0].startswith("! 2BP01")
    assert sql("DROP TABLE small CASCADE") == ["DROP TABLE"]
    assert coordinator.warnings() == []
    assert sql("CREATE TABLE small (k int)") == ["CREATE TABLE"]
    assert sql("INSERT INTO small VALUES (1)") == ["INSERT 0 1"]
    coordinator.close()
    again = open_at(folder)
    opened.append(again)
    assert again.warnings() == []
    assert SessionClient(again)("SELECT k FROM small") == ["k", "1"]


def test_a_copy_that_is_restored_is_whole(
    folder: Path, sound: tuple[Path, dict[str, list[str]]], rng: random.Random
) -> None:
    """While something is damaged, nothing is taken for lost and removed."""
    for key in sorted(entries(folder)):
        if kind_of(key) in ("catalog/item", "run", "dataflow", "inline"):
            damage(folder, key, rng.choice(["flip", "truncate", "remove"]), rng)
    with open_at(folder) as coordinator:
        coordinator.environment.maintenance.run()
        assert coordinator.catalog.state.damaged
    with (
        closing(sqlite3.connect(folder / "data" / "consensus.db")) as db,
        closing(sqlite3.connect(sound[0] / "data" / "consensus.db")) as whole,
        db,
    ):
        for key, version, value in whole.execute("SELECT key, version, value FROM entries"):
            if kind_of(key) in ("catalog/item", "run", "dataflow", "inline"):
                db.execute("INSERT OR REPLACE INTO entries VALUES (?, ?, ?)", [key, version, value])
    with open_at(folder) as coordinator:
        assert check_answers(SessionClient(coordinator), sound[1], "restored") == set()


def test_a_damaged_role_can_be_made_anew(folder: Path, rng: random.Random) -> None:
    roles = [key for key in entries(folder) if kind_of(key) == "catalog/role"]
    assert len(roles) == 2
    for key in roles:
        damage(folder, key, "flip", rng)
    with open_at(folder) as coordinator:
        assert len(coordinator.warnings()) == 2
        sql = SessionClient(coordinator)  # as the owner of the environment, who is still superuser
        with pytest.raises(EverviewError, match="is not permitted to log in"):
            coordinator.connect("reader", "everview", {})
        assert sql("DROP ROLE reader") == ["DROP ROLE"]
        assert sql("CREATE ROLE reader LOGIN") == ["CREATE ROLE"]
        coordinator.connect("reader", "everview", {}).close()
        assert sql("ALTER ROLE everview PASSWORD 'x'") == ["ALTER ROLE"]
    with open_at(folder) as coordinator:
        assert coordinator.warnings() == []


@pytest.mark.parametrize("how", ["flip", "truncate", "remove"])
def test_parts_and_hot_copies(
    folder: Path, sound: tuple[Path, dict[str, list[str]]], how: str, rng: random.Random
) -> None:
    with open_at(folder) as coordinator:
        SessionClient(coordinator)("SELECT v FROM large WHERE k = 77")
    files = [path for path in (folder / "data").rglob("*") if path.is_file() and path.parent.name != "data"]
    parts = [path for path in files if "blob" in path.parts]
    assert parts
    for path in files:
        content = bytearray(path.read_bytes())
        if how == "remove":
            path.unlink()
        elif how == "truncate":
            path.write_bytes(content[: rng.randrange(len(content))])
        else:
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
            path.write_bytes(content)
    with open_at(folder) as coordinator:
        sql = SessionClient(coordinator)
        assert check_answers(sql, sound[1], how) <= {"large"}
        found = sql("SELECT v FROM large WHERE k = 77")
        assert found == ["v", "x" * 50 + "77"] or found[0].startswith(REFUSALS)
        assert sql("DROP TABLE large") == ["DROP TABLE"]


def test_the_file_of_the_metadata(
    sound: tuple[Path, dict[str, list[str]]], tmp_path: Path, rng: random.Random, long_forms: bool
) -> None:
    """Any byte of the file itself: it opens with right rows, or says in one line that it is damaged."""
    original, answers = sound
    for number in range(200 if long_forms else 12):
        copy = tmp_path / str(number)
        shutil.copytree(original, copy)
        path = copy / "data" / "consensus.db"
        content = bytearray(path.read_bytes())
        for _ in range(rng.choice([1, 1, 20])):
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(content[: rng.randrange(len(content))] if rng.random() < 0.2 else content)
        try:
            with open_at(copy) as coordinator:
                sql = SessionClient(coordinator)
                # What a page held that is gone is not known any more, nor that it was: but something is said.
                for query, answer in answers.items() if coordinator.warnings() else ():
                    found = sql(query)
                    assert found == answer or found[0].startswith((*REFUSALS, "! 42P01")), (number, query, found)
                if not coordinator.warnings():
                    check_answers(sql, answers, str(number))
        except EverviewError as error:
            assert "\n" not in error.message
        shutil.rmtree(copy)
