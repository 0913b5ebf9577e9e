"""Replacements drawn at random: cycles, definitions that fail, columns that come and go, several at once, kills.

Three views may be made from two tables and from one another. After a history, each view is compared, at many times,
with what the definitions in force at that time say of the tables: recomputed, with views written out.
"""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from everview.storage.faults import Crash, armed
from tests.adapter.conftest import Clock
from tests.adapter.scripts import SessionClient
from tests.adapter.test_replacement_histories import rows
from tests.adapter.test_restart import POINTS, abandon, open_at
from tests.waiting import eventually

VIEWS = ("v0", "v1", "v2")
KEEP = "RETAIN HISTORY FOR '1h'"
# Each gives k and n. {0} is another view.
OVER_TABLES = (
    "SELECT k, sum(v)::bigint AS n FROM a GROUP BY k",
    "SELECT k, count(*) AS n FROM a GROUP BY k",
    "SELECT k, (12 / w)::bigint AS n FROM b",  # which fails while there is a 0
    "SELECT a.k, (a.v + b.w)::bigint AS n FROM a JOIN b ON a.k = b.k",
    "SELECT DISTINCT k, 1::bigint AS n FROM b WHERE w > 1",
)
OVER_VIEWS = (
    "SELECT k, n + 1 AS n FROM {0}",
    "SELECT k, max(n) AS n FROM {0} GROUP BY k",
    "SELECT t.k, o.n FROM {0} AS o JOIN a AS t ON o.k = t.k",
    "SELECT k, n FROM {0} WHERE n > 2 UNION ALL SELECT k, w::bigint AS n FROM b",
)
# Columns that a definition may have more: name, type, expression.
MORE = {
    "x bigint": "k + n",
    "x text": "'x' || n",
    "y text": "CASE WHEN n > 2 THEN 'much' END",
    "z int": "k * 2",
    "z bigint": "k * 3",
}
WIDER = {"z int": "z bigint"}


@dataclass(frozen=True)
class Definition:
    """A query over tables and other views, and the columns that it has more than k and n."""

    query: str
    reads: tuple[str, ...]
    more: tuple[str, ...] = ()

    @property
    def columns(self) -> dict[str, str]:
        """By name and type, the expressions."""
        return {"k int": "k", "n bigint": "n", **{each: MORE[each] for each in self.more}}

    def text(self, relations: dict[str, str]) -> str:
        """With these texts for other views."""
        query = self.query.format(*(relations[each] for each in self.reads))
        chosen = ", ".join(f"({text})::{each.split()[1]} AS {each.split()[0]}" for each, text in self.columns.items())
        return f"SELECT {chosen} FROM ({query}) AS q"


@dataclass
class History:
    """What was tried, and from when on which definition holds."""

    definitions: dict[str, Definition] = field(default_factory=dict)  # by the id of the replacement, or of the view
    eras: dict[str, list[tuple[int, Definition]]] = field(default_factory=dict)
    # By view and column: the columns whose past it has, which are itself, and narrower ones that it came from.
    pasts: dict[str, dict[str, set[str]]] = field(default_factory=dict)

    def begin(self, view: str, at: int, definition: Definition) -> None:
        """From a time on a view has another definition."""
        eras, pasts = self.eras.setdefault(view, []), self.pasts.setdefault(view, {})
        before = list(eras[-1][1].columns) if eras else []
        for index, column in enumerate(definition.columns):
            pasts.setdefault(column, {column})
            if index < len(before) and WIDER.get(before[index]) == column:
                pasts[column] |= pasts[before[index]]
        eras.append((at, definition))

    def now(self, view: str) -> Definition:
        return self.eras[view][-1][1]

    def then(self, view: str, time: int) -> Definition:
        return [each for at, each in self.eras[view] if at <= time][-1]

    def closes_a_cycle(self, changed: dict[str, Definition]) -> bool:
        """Whether a view would depend on itself."""

        def below(view: str, path: tuple[str, ...]) -> bool:
            reads = changed.get(view, self.now(view)).reads
            return any(each in path or below(each, (*path, each)) for each in reads)

        return any(below(view, (view,)) for view in changed)


class World:
    """An environment, and what is known of it from outside."""

    def __init__(self, path: Path, rng: random.Random) -> None:
        self.path, self.rng, self.clock = path, rng, Clock()
        self.history = History()
        self.staged: dict[str, tuple[str, Definition]] = {}  # by view: the name of the replacement, and what it is
        self.tried: dict[str, Definition] = {}  # by the name of a replacement
        self.times: list[int] = []
        self.open()
        self.make()

    def open(self) -> None:
        self.coordinator = open_at(self.path, self.clock)
        self.sql = SessionClient(self.coordinator)

    def make(self) -> None:
        for table, column in (("a", "v"), ("b", "w")):
            self.sql(f"CREATE TABLE {table} (k int, {column} int) WITH ({KEEP})")
            self.sql(f"INSERT INTO {table} VALUES (0, 1), (1, 2), (2, 3)")
        for view in VIEWS:
            definition = Definition(self.rng.choice(OVER_TABLES), ())
            self.sql(f"CREATE MATERIALIZED VIEW {view} WITH ({KEEP}) AS {definition.text({})}")
            self.history.begin(view, 0, definition)
        self.sql(f"CREATE MATERIALIZED VIEW above WITH ({KEEP}) AS SELECT count(*) AS c, sum(n)::bigint AS s FROM v0")
        self.sql(f"CREATE MATERIALIZED VIEW everything WITH ({KEEP}) AS SELECT * FROM v2")
        self.sql("SELECT * FROM above")
        self.sql("SELECT * FROM everything")
        self.first = self.coordinator.timeline.upper - 1
        self.learn()

    # What happens

    def step(self) -> None:
        action = self.rng.random()
        if action < 0.35:
            self.change()
        elif action < 0.65:
            self.stage()
        elif action < 0.7:
            self.go_back()
        elif action < 0.97:
            self.apply()
        elif self.staged:
            view = self.rng.choice(sorted(self.staged))
            assert self.run(f"DROP MATERIALIZED VIEW {self.staged[view][0]}") in (None, ["DROP MATERIALIZED VIEW"])
        self.learn()
        self.times.append(self.coordinator.timeline.upper - 1)

    def change(self) -> None:
        k, v = self.rng.randrange(4), self.rng.randrange(0, 5)
        table, column = self.rng.choice((("a", "v"), ("b", "w")))
        action = self.rng.random()
        if action < 0.5:
            self.run(f"INSERT INTO {table} VALUES ({k}, {v}), ({self.rng.randrange(4)}, {v})")
        elif action < 0.75:
            self.run(f"UPDATE {table} SET {column} = {v} WHERE k = {k}")
        else:
            self.run(f"DELETE FROM {table} WHERE {column} = {self.rng.choice((0, 0, v))}")

    def stage(self) -> None:
        view = self.rng.choice(VIEWS)
        reads: tuple[str, ...] = ()
        if self.rng.random() < 0.35:
            query = self.rng.choice(OVER_TABLES)
        else:
            query, reads = self.rng.choice(OVER_VIEWS), (self.rng.choice(VIEWS),)
        definition = Definition(query, reads, self.columns(view))
        name = f"r{len(self.tried)}"
        self.tried[name] = definition
        answer = self.run(
            f"CREATE MATERIALIZED VIEW {name} REPLACING {view} AS {definition.text({each: each for each in VIEWS})}"
        )
        if answer is None:
            return
        if view in self.staged:
            assert answer[0].startswith("! 42710"), answer
            return
        others = {each: staged for each, (_, staged) in self.staged.items()}
        cyclic = self.history.closes_a_cycle({view: definition})
        cyclic = cyclic and self.history.closes_a_cycle({**others, view: definition})
        if cyclic:
            assert answer == [f'! 42P19 cannot replace "{view}" with "{name}" because it depends on it']
        else:
            assert answer == ["CREATE MATERIALIZED VIEW"], answer

    def columns(self, view: str) -> tuple[str, ...]:
        """The same as now, one more, or those of an earlier definition."""
        now = self.history.now(view).more
        names = {each.split()[0] for each in now}
        new = [each for each in MORE if each.split()[0] not in names]
        action = self.rng.random()
        if action < 0.2 and any(each in WIDER for each in now):
            return tuple(WIDER.get(each, each) for each in now)
        if action < 0.4 and new:
            return (*now, self.rng.choice(new))
        earlier = [each.more for _, each in self.history.eras[view] if each.more == now[: len(each.more)]]
        return self.rng.choice(earlier) if action < 0.7 else now

    def go_back(self) -> None:
        view = self.rng.choice(VIEWS)
        eras = self.history.eras[view]
        version = self.rng.randrange(1, len(eras) + 2)
        answer = self.run(f"ALTER MATERIALIZED VIEW {view} ROLLBACK REPLACEMENT TO VERSION {version}")
        if answer is None:
            self.tried[f"{view}_rollback"] = eras[min(version, len(eras)) - 1][1]
            return
        if view in self.staged:
            assert answer[0].startswith("! 42710"), answer
        elif version >= len(eras):
            assert answer[0].startswith(("! 42704", "! 55000")), answer
        elif answer == ["ALTER MATERIALIZED VIEW"]:
            self.tried[f"{view}_rollback"] = eras[version - 1][1]
        else:  # a cycle, or columns that are of no version that could follow
            assert answer[0].startswith(("! 42P19", "! 42P16")), answer

    def apply(self) -> None:
        chosen = [each for each in VIEWS if each in self.staged and self.rng.random() < 0.8]
        if len(chosen) < self.rng.choice((1, 2, 2)):
            return
        self.rng.shuffle(chosen)
        changed = {each: self.staged[each][1] for each in chosen}
        names = [self.staged[each][0] for each in chosen]
        options = self.rng.choice(("", " WITH (ALLOW ERRORS)", " WITH (MAX ROWS 100000, ALLOW ERRORS, TIMEOUT '60s')"))
        if self.rng.random() < 0.3 and len(chosen) > 1:
            statements = ["BEGIN"]
            statements += [
                f"ALTER MATERIALIZED VIEW {view} APPLY REPLACEMENT {name}{options}"
                for view, name in zip(chosen, names, strict=True)
            ]
            statements.append("COMMIT")
        else:
            statements = [f"ALTER MATERIALIZED VIEW {', '.join(chosen)} APPLY REPLACEMENT {', '.join(names)}{options}"]
        answer: list[str] = []
        for statement in statements:
            found = self.run(statement)
            if found is None:
                return
            answer = found
        if answer[0].startswith("!"):
            self.sql("ROLLBACK")
        if self.history.closes_a_cycle(changed):
            assert answer[0].startswith("! 42P19"), answer
        elif answer[0].startswith("! 55000"):
            assert not options and "division by zero" in answer[0], answer
        else:
            assert not answer[0].startswith("!"), answer

    # A process that may die

    def run(self, statement: str) -> list[str] | None:
        """The answer of a statement; None if the process died meanwhile."""
        if self.rng.random() >= (0.2 if "APPLY" in statement else 0.06):
            return self.sql(statement)
        with armed(self.rng.choice(POINTS), self.rng.randrange(1, 6), for_good=True):
            with suppress(Crash):
                self.sql(statement)
            abandon(self.coordinator)
        self.open()
        return None

    def learn(self) -> None:
        """What the catalog says by now: which replacements there are, and what was applied when."""
        items = self.coordinator.catalog.state.items
        by_id = self.history.definitions
        self.staged = {}
        for item in items.values():
            if item.replaces is not None:
                by_id.setdefault(item.id, self.tried[item.name])
                self.staged[items[item.replaces].name] = item.name, by_id[item.id]
        for event in self.coordinator.catalog.events():
            if "applied_at" in event.details:
                view = event.details["name"].rpartition(".")[2]
                version, at = int(event.details["version"]), int(event.details["applied_at"])
                if version > len(self.history.eras[view]):
                    self.history.begin(view, at, by_id[event.details["replacement_id"]])

    # What there should be

    def check(self) -> None:
        for view in VIEWS:
            self.sql(f"SELECT * FROM {view}")
        upper = self.coordinator.timeline.upper
        around = [at + step for eras in self.history.eras.values() for at, _ in eras[1:] for step in (-1, 0, 1)]
        times = [each for each in {*self.times, *around} if self.first <= each < upper]
        for time in sorted(self.rng.sample(times, min(25, len(times)))):
            for view in VIEWS:
                columns = list(self.history.now(view).columns)
                shown = ", ".join(each.split()[0] for each in columns)
                found = rows(self.sql, f"SELECT {shown} FROM {view} AS OF {time}")
                assert found == self.wanted(view, columns, time), (view, time, self.history.eras)
            found = rows(self.sql, f"SELECT * FROM everything AS OF {time}")
            assert found == self.wanted("v2", ["k int", "n bigint"], time), (time, self.history.eras)
            text = f"SELECT count(*), sum(n)::bigint FROM ({self.written_out('v0', time)}) AS q AS OF {time}"
            wanted = self.failure("v0", time) or rows(self.sql, text)
            assert rows(self.sql, f"SELECT * FROM above AS OF {time}") == wanted, (time, self.history.eras)

    def wanted(self, view: str, columns: list[str], time: int) -> list[str]:
        """The rows of a view at a time, in columns that it may not have had then."""
        had = self.history.then(view, time).columns
        pasts = self.history.pasts[view]
        chosen = [f"{each.split()[0] if pasts[each] & had.keys() else 'NULL'}::{each.split()[1]}" for each in columns]
        text = f"SELECT {', '.join(chosen)} FROM ({self.written_out(view, time)}) AS q AS OF {time}"
        return self.failure(view, time) or rows(self.sql, text)

    def written_out(self, view: str, time: int) -> str:
        """The definition at a time, over tables."""
        definition = self.history.then(view, time)
        return definition.text({each: f"({self.written_out(each, time)})" for each in definition.reads})

    def failure(self, view: str, time: int) -> list[str]:
        """The error of a view at a time, or of one that it is made from."""
        for each in self.history.then(view, time).reads:
            if found := self.failure(each, time):
                return found
        answer = rows(self.sql, f"{self.written_out(view, time)} AS OF {time}")
        return answer if answer and answer[0].startswith("!") else []


@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # threads die as well
def test_every_time_is_what_its_definitions_say(tmp_path: Path, long_forms: bool, rng: random.Random) -> None:
    for number in range(40 if long_forms else 3):
        world = World(tmp_path / str(number), rng)
        for _ in range(rng.randrange(30, 60)):
            world.step()
        world.check()
        world.coordinator.close()


def test_one_that_applies_itself_in_a_random_world(tmp_path: Path, rng: random.Random) -> None:
    """Whatever is in the way, one that is applied WHEN HYDRATED is applied once it no longer is."""
    world = World(tmp_path / "data", rng)
    world.sql("INSERT INTO b VALUES (3, 0)")
    create = "CREATE MATERIALIZED VIEW auto REPLACING v0 WITH (APPLY WHEN HYDRATED) AS"
    assert world.sql(f"{create} SELECT k, (12 / w)::bigint AS n FROM b") == ["CREATE MATERIALIZED VIEW"]
    status = "SELECT status FROM mz_internal.mz_replacements"
    eventually(lambda: world.sql(status)[1:] == ["failing"])
    world.sql("DELETE FROM b WHERE w = 0")
    eventually(lambda: world.sql(status)[1:] == [])
    assert rows(world.sql, "SELECT * FROM v0") == rows(world.sql, "SELECT k, (12 / w)::bigint AS n FROM b")
    world.coordinator.close()
