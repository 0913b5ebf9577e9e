"""Every Consensus through the conformance suite, then what is particular to each: processes, crashes, lost servers."""

from __future__ import annotations

import itertools
import os
import random
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from everview.storage.consensus.contract import Consensus, Entry
from everview.storage.consensus.memory import MemoryConsensus
from everview.storage.consensus.postgres import PostgresConsensus
from everview.storage.consensus.sqlite import SqliteConsensus
from everview.storage.errors import (
    Corruption,
    Determinate,
    Indeterminate,
    InvalidUsage,
    StorageFull,
    StorageReadOnly,
)
from everview.storage.faults import Crash, armed
from everview.storage.retrying import Patience, RetryingConsensus
from everview.storage.stores import open_consensus as open_consensus_at
from tests.storage.faulty import Fault, FaultyConsensus, random_faults
from tests.waiting import eventually

from .conformance_consensus import ConsensusSuite
from .conftest import Child

RATES = {Fault.BEFORE: 0.1, Fault.AFTER: 0.1, Fault.LOST: 0.1, Fault.DELAY: 0.02}
PATIENCE = Patience(tries_max=40, sleep=lambda _: None)
_schemas = itertools.count()


@pytest.fixture
def schema_url(postgres_url: str) -> Iterator[str]:
    """A schema of the test's own."""
    schema = f"test {os.getpid()} {next(_schemas)}"
    yield f"{postgres_url}&everview_schema={schema}"
    with psycopg.connect(postgres_url, autocommit=True) as db:
        db.execute(psycopg.sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(psycopg.sql.Identifier(schema)))


@pytest.fixture
def places(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[[str], Callable[[], Consensus]]]:
    """From a kind of Consensus to a function that opens a place of that kind, new for each test."""
    opened: list[Consensus] = []

    def place(kind: str) -> Callable[[], Consensus]:
        if kind == "memory":
            memory = MemoryConsensus()
            return lambda: memory
        url = str(tmp_path / "meta") if kind == "sqlite" else request.getfixturevalue("schema_url")

        def open_it() -> Consensus:
            opened.append(open_consensus_at(url))
            return opened[-1]

        return open_it

    yield place
    for consensus in opened:
        consensus.close()


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
class TestConformance(ConsensusSuite):
    """Each Consensus as it is."""

    @pytest.fixture
    def open_consensus(self, kind: str, places: Callable[[str], Callable[[], Consensus]]) -> Callable[[], Consensus]:
        return places(kind)


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
class TestConformanceThroughFaults(ConsensusSuite):
    """Each Consensus failing at random, behind one that tries again."""

    doubtful = True

    @pytest.fixture
    def open_consensus(
        self, kind: str, places: Callable[[str], Callable[[], Consensus]], rng: random.Random
    ) -> Callable[[], Consensus]:
        plan = random_faults(rng.random().hex(), RATES)
        opened = places(kind)
        return lambda: RetryingConsensus(FaultyConsensus(opened(), plan), PATIENCE)


INCREMENT = """
    import sys
    from everview.storage.consensus.contract import Conflict
    from everview.storage.stores import open_consensus
    consensus = open_consensus(sys.argv[1])
    who, times = int(sys.argv[2]), int(sys.argv[3])
    print("open", flush=True)
    done = 0
    while done < times:
        seen = consensus.get(["n"]).get("n")
        try:
            consensus.commit(
                {"n": seen and seen.version}, {"n": b"%d" % (int(seen.value if seen else 0) + 1)}, who * 10_000 + done
            )
            done += 1
        except Conflict:
            pass
    consensus.close()
"""


class TestSqlite:
    """One file, several processes, and disks that fail."""

    def test_two_processes(self, tmp_path: Path, child: Child) -> None:
        path = tmp_path / "new" / "folder" / "meta"
        workers = [threading.Thread(target=lambda n=n: results.append(child(INCREMENT, path, n, 100))) for n in (1, 2)]
        results: list[object] = []
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert [result.returncode for result in results] == [0, 0], results  # type: ignore[attr-defined]
        consensus = SqliteConsensus(path)
        assert consensus.get(["n"])["n"].value == b"200"
        consensus.close()

    def test_it_is_durable_and_tidy(self, tmp_path: Path) -> None:
        consensus = SqliteConsensus(tmp_path / "meta")
        consensus.commit({}, {"a": b"1"}, 1)
        with sqlite3.connect(tmp_path / "meta") as db:
            assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        db.close()
        assert consensus._writer is not None
        assert consensus._writer.execute("PRAGMA synchronous").fetchone() == (2,)
        consensus.close()
        assert [path.name for path in tmp_path.iterdir()] == ["meta"]
        assert SqliteConsensus(tmp_path / "meta").get(["a"]) == {"a": Entry(1, b"1")}

    def test_reads_do_not_wait_for_a_commit(self, tmp_path: Path) -> None:
        consensus = SqliteConsensus(tmp_path / "meta")
        consensus.commit({}, {"a": b"1"}, 1)
        seen: list[object] = []
        with armed("consensus.commit.applied", act=lambda _: seen.append(consensus.get(["a"]))):
            consensus.commit({"a": 1}, {"a": b"2"}, 2)
        assert seen == [{"a": Entry(1, b"1")}]
        assert consensus.get(["a"]) == {"a": Entry(2, b"2")}

    @pytest.mark.parametrize("point", ["consensus.commit.applied", "consensus.commit.done"])
    def test_killed(self, tmp_path: Path, child: Child, point: str) -> None:
        result = child(INCREMENT, tmp_path / "meta", 1, 5, environment={"EVERVIEW_FAILPOINT": f"{point}:3"})
        assert result.returncode == -9, result.stderr
        consensus = SqliteConsensus(tmp_path / "meta")
        happened = 3 if point.endswith("done") else 2
        assert consensus.get(["n"])["n"].value == b"%d" % happened
        consensus.commit({}, {"n": b"next"}, 9)

    def test_crash_in_process(self, tmp_path: Path) -> None:
        consensus = SqliteConsensus(tmp_path / "meta")
        with armed("consensus.commit.applied", hit=2):
            consensus.commit({"a": None}, {"a": b"1"}, 1)
            with pytest.raises(Crash):
                consensus.commit({"a": 1}, {"a": b"2"}, 2)
        consensus.commit({"a": 1}, {"a": b"3"}, 3)
        assert consensus.get(["a"]) == {"a": Entry(3, b"3")}

    def test_looking_at_a_running_environment(self, tmp_path: Path) -> None:
        consensus = SqliteConsensus(tmp_path / "meta")
        consensus.commit({}, {"a": b"1"}, 1)
        looking = open_consensus_at(str(tmp_path / "meta"), read_only=True)
        assert looking.get(["a"]) == {"a": Entry(1, b"1")}
        consensus.commit({}, {"a": b"2"}, 2)
        assert looking.scan("") == [("a", Entry(2, b"2"))]
        with pytest.raises(StorageReadOnly):
            looking.commit({"a": 2}, {"a": b"3"}, 3)
        looking.close()
        consensus.commit({"a": 2}, {"a": b"4"}, 4)
        consensus.close()

    def test_looking_at_nothing(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidUsage, match="no environment"):
            SqliteConsensus(tmp_path / "meta", read_only=True)
        assert list(tmp_path.iterdir()) == []
        sqlite3.connect(tmp_path / "other").execute("CREATE TABLE t (x)").connection.close()
        with pytest.raises(Determinate, match="no such table"):
            SqliteConsensus(tmp_path / "other", read_only=True)

    @pytest.mark.parametrize("running", [False, True])
    def test_a_folder_that_refuses_writes(self, open_folder: Path, unprivileged: Child, running: bool) -> None:
        folder = open_folder / "data"
        consensus = SqliteConsensus(folder / "meta")
        consensus.commit({}, {"a": b"1"}, 1)
        if not running:
            consensus.close()
        for path in folder.iterdir():
            path.chmod(0o444)
        folder.chmod(0o555)
        code = """
            import sys
            from pathlib import Path
            from everview.storage.consensus.sqlite import SqliteConsensus
            from everview.storage.errors import StorageReadOnly
            path = Path(sys.argv[1])
            for attempt in (lambda: SqliteConsensus(path).commit({}, {"a": b""}, 2),
                            lambda: SqliteConsensus(path.parent / "other"),
                            lambda: SqliteConsensus(path.parent / "deeper" / "other")):
                try:
                    attempt()
                    sys.exit("it was permitted")
                except StorageReadOnly as failure:
                    print(failure)
            consensus = SqliteConsensus(path, read_only=True)
            for _ in range(2):
                assert consensus.get(["a"])["a"].value == b"1"
                assert len(consensus.scan("")) == 1
            print("fine")
        """
        result = unprivileged(code, folder / "meta")
        folder.chmod(0o755)
        assert result.returncode == 0, result.stderr
        assert result.stdout.endswith("fine\n")
        consensus.close()
        (folder / "meta").chmod(0o644)
        SqliteConsensus(folder / "meta").commit({"a": 1}, {"a": b"2"}, 2)

    def test_a_full_disk(self, on_small_disk: Child) -> None:
        code = """
            import sys
            from pathlib import Path
            from everview.storage.consensus.sqlite import SqliteConsensus
            from everview.storage.errors import StorageFull
            path = Path(sys.argv[1]) / "meta"
            consensus = SqliteConsensus(path)
            version = 0
            try:
                while version < 100:
                    consensus.commit({}, {f"k{version}": b"x" * 50_000, "last": b"%d" % version}, version)
                    version += 1
                sys.exit("it fitted")
            except StorageFull as failure:
                print(failure)
            assert version > 3
            for opened in (consensus, SqliteConsensus(path), SqliteConsensus(path, read_only=True)):
                entries = dict(opened.scan(""))
                assert len(entries) == version + 1, (len(entries), version)
                assert entries["last"].value == b"%d" % (version - 1)
                opened.close()
            print("fine")
        """
        result = on_small_disk(code)
        assert result.returncode == 0, result.stderr
        assert result.stdout.endswith("fine\n")
        assert "no space left for metadata" in result.stdout

    def test_not_a_database(self, tmp_path: Path) -> None:
        path = tmp_path / "meta"
        path.write_bytes(b"not at all" * 1000)
        for read_only in (False, True):
            with pytest.raises(Corruption, match=str(path)):
                SqliteConsensus(path, read_only)

    def test_damage(self, tmp_path: Path) -> None:
        path = tmp_path / "meta"
        consensus = SqliteConsensus(path)
        for n in range(50):
            consensus.commit({}, {f"k{n:02d}": os.urandom(500)}, n)
        consensus.close()
        with path.open("r+b") as file:
            file.seek(4096 + 8)  # after the header of the table's first page
            file.write(b"\xff" * 4096)
        again = SqliteConsensus(path)
        with pytest.raises(Corruption, match=str(path)):
            again.scan("")
        with pytest.raises(Corruption, match=str(path)):
            again.commit({"k01": 1}, {"k01": b""}, 99)
        again.close()

    def test_another_process_that_holds_the_lock(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("everview.storage.consensus.sqlite._BUSY_TIMEOUT_S", 0.05)
        consensus = SqliteConsensus(tmp_path / "meta")
        consensus.commit({}, {"a": b"1"}, 1)
        other = sqlite3.connect(tmp_path / "meta", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Determinate, match="locked"):
            consensus.commit({"a": 1}, {"a": b"2"}, 2)
        assert consensus.get(["a"]) == {"a": Entry(1, b"1")}
        other.execute("ROLLBACK")
        other.close()
        consensus.commit({"a": 1}, {"a": b"2"}, 2)

    @pytest.mark.parametrize(
        ("code", "at", "kind"),
        [
            (sqlite3.SQLITE_IOERR_FSYNC, "COMMIT", Indeterminate),
            (sqlite3.SQLITE_FULL, "COMMIT", StorageFull),
            (sqlite3.SQLITE_IOERR_WRITE, "BEGIN IMMEDIATE", Determinate),
            (sqlite3.SQLITE_READONLY_DBMOVED, "BEGIN IMMEDIATE", StorageReadOnly),
        ],
    )
    def test_errors_of_a_commit(self, tmp_path: Path, code: int, at: str, kind: type[Exception]) -> None:
        consensus = SqliteConsensus(tmp_path / "meta")
        consensus.commit({}, {"a": b"1"}, 1)
        opened = consensus._writer
        assert opened is not None
        real: sqlite3.Connection = opened

        class Failing:
            in_transaction = property(lambda _: real.in_transaction)

            def __getattr__(self, name: str) -> object:
                return getattr(real, name)

            def execute(self, statement: str, *more: Any) -> object:
                if statement == at:
                    failure = sqlite3.OperationalError("injected")
                    failure.sqlite_errorcode = code
                    raise failure
                return real.execute(statement, *more)

        consensus._writer = Failing()  # type: ignore[assignment]
        with pytest.raises(kind) as failed:
            consensus.commit({"a": 1}, {"a": b"2"}, 2)
        assert type(failed.value) is kind
        consensus._writer = real
        consensus.commit({"a": 1}, {"a": b"3"}, 3)
        assert consensus.get(["a"]) == {"a": Entry(3, b"3")}


class TestPostgres:
    """A server that restarts, and connections that are lost in the middle."""

    def test_lost_connections_are_replaced(self, schema_url: str, postgres_url: str) -> None:
        consensus = open_consensus_at(schema_url)
        consensus.commit({}, {"a": b"1"}, 1)
        for n in (2, 3):
            with psycopg.connect(postgres_url, autocommit=True) as db:
                db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'everview'")
            if n == 2:
                assert consensus.get(["a"]) == {"a": Entry(1, b"1")}
            consensus.commit({"a": 1 if n == 2 else 2}, {"a": b"x"}, n)
        consensus.close()

    @pytest.mark.parametrize("reached", [False, True])
    def test_lost_during_commit(self, schema_url: str, lossy: Callable[[str], Lossy], reached: bool) -> None:
        direct = open_consensus_at(schema_url)
        proxy = lossy(schema_url)
        consensus = open_consensus_at(proxy.url)
        consensus.commit({}, {"a": b"1", "d": b""}, 1)

        proxy.cut_at_commit(reached)
        with pytest.raises(Indeterminate):
            consensus.commit({"a": 1}, {"a": b"2"}, 2)
        eventually(lambda: not reached or direct.get(["a"])["a"].version == 2)  # the server finishes what it was sent
        assert direct.get(["a"])["a"].version == (2 if reached else 1)

        proxy.cut_at_commit(reached)
        held = 2 if reached else 1
        RetryingConsensus(consensus).commit({"a": held, "n": None}, {"a": b"3", "n": b"", "d": None}, 3)
        assert direct.scan("") == [("a", Entry(3, b"3")), ("n", Entry(3, b""))]
        direct.close()
        consensus.close()

    def test_lost_before_commit(self, schema_url: str, lossy: Callable[[str], Lossy]) -> None:
        proxy = lossy(schema_url)
        consensus = open_consensus_at(proxy.url)
        consensus.commit({}, {"a": b"1"}, 1)
        proxy.cut_at(b"FOR UPDATE")
        consensus.commit({"a": 1}, {"a": b"2"}, 2)  # it had no effect, so it is tried again
        assert consensus.get(["a"]) == {"a": Entry(2, b"2")}
        consensus.close()

    def test_opposite_orders_do_not_deadlock(self, schema_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        consensus = open_consensus_at(schema_url)
        monkeypatch.setattr("everview.storage.consensus.postgres._TRIES_MAX", 1)  # else it would be tried again
        names = list("abcdefgh")
        barrier = threading.Barrier(4)

        def work(thread: int) -> None:
            order = names[2 * thread :] + names[: 2 * thread]
            for version in range(50):
                with suppress(threading.BrokenBarrierError):
                    barrier.wait(0.5)
                consensus.commit({}, dict.fromkeys(order, b""), version)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
        consensus.close()

    def test_no_server(self) -> None:
        with pytest.raises(Determinate, match="cannot be used"):
            open_consensus_at("postgresql://nobody@127.0.0.1:9/none")

    def test_reading_only(self, schema_url: str) -> None:
        with pytest.raises(InvalidUsage, match="no environment"):
            open_consensus_at(schema_url, read_only=True)
        consensus = open_consensus_at(schema_url)
        consensus.commit({}, {"a": b"1"}, 1)
        looking = open_consensus_at(schema_url, read_only=True)
        assert looking.scan("") == [("a", Entry(1, b"1"))]
        with pytest.raises(StorageReadOnly):
            looking.commit({}, {"a": b"2"}, 2)
        looking.close()
        consensus.close()

    def test_a_role_that_may_not_write(self, schema_url: str, postgres_url: str) -> None:
        consensus = open_consensus_at(schema_url)
        consensus.commit({}, {"a": b"1"}, 1)
        assert isinstance(consensus, PostgresConsensus)
        reader = f"reader_{os.getpid()}"
        with psycopg.connect(postgres_url, autocommit=True) as db:
            names = {"role": psycopg.sql.Identifier(reader), "schema": psycopg.sql.Identifier(consensus._schema)}
            for statement in (
                "CREATE ROLE {role} LOGIN",
                "GRANT USAGE ON SCHEMA {schema} TO {role}",
                "GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}",
            ):
                db.execute(psycopg.sql.SQL(statement).format(**names))
            url = schema_url.replace("postgres:@", f"{reader}@")
            assert open_consensus_at(url, read_only=True).get(["a"]) == {"a": Entry(1, b"1")}
            with pytest.raises(StorageReadOnly):
                open_consensus_at(url)
            db.execute(psycopg.sql.SQL("DROP OWNED BY {role}; DROP ROLE {role}").format(**names))
        consensus.close()

    def test_a_key_that_no_text_can_hold(self, schema_url: str) -> None:
        consensus = open_consensus_at(schema_url)
        with pytest.raises(InvalidUsage):
            consensus.commit({}, {"a\0": b""}, 1)
        consensus.close()

    def test_several_open_a_new_schema_at_once(self, schema_url: str) -> None:
        opened: list[Consensus] = []
        threads = [threading.Thread(target=lambda: opened.append(open_consensus_at(schema_url))) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(opened) == 6
        for consensus in opened:
            consensus.close()

    @pytest.fixture
    def lossy(self, tmp_path: Path) -> Iterator[Callable[[str], Lossy]]:
        proxies: list[Lossy] = []

        def start(url: str) -> Lossy:
            proxies.append(Lossy(url))
            return proxies[-1]

        yield start
        for proxy in proxies:
            proxy.close()


class Lossy:
    """A door to a PostgreSQL server that cuts a connection when a certain text passes."""

    def __init__(self, url: str) -> None:
        base, _, query = url.partition("?host=")
        folder, _, self._rest = query.partition("&")
        self._target = f"{folder}/.s.PGSQL.5432"
        self._door = socket.create_server(("127.0.0.1", 0))
        port = self._door.getsockname()[1]
        self.url = f"{base}?host=127.0.0.1&port={port}&sslmode=disable&gssencmode=disable&{self._rest}"
        self._text: bytes | None = None
        self._deliver = False
        threading.Thread(target=self._serve, daemon=True).start()

    def cut_at(self, text: bytes, deliver: bool = False) -> None:
        """The next time that `text` is sent to the server, lose the connection: before or after it is delivered."""
        self._text, self._deliver = text, deliver

    def cut_at_commit(self, deliver: bool) -> None:
        self.cut_at(b"COMMIT", deliver)

    def close(self) -> None:
        self._door.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._door.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._target)
                for source, target, watch in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self._pump, args=(source, target, watch), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, watch: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if watch and self._text is not None and self._text in data:
                    self._text = None
                    # The client's side first, so that no answer can reach it.
                    source.shutdown(socket.SHUT_RDWR)
                    if self._deliver:
                        target.sendall(data)
                    break
                target.sendall(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR if end is source else socket.SHUT_WR)


class TestOpening:
    """From a URL to a Consensus."""

    def test_kinds(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert isinstance(open_consensus_at("memory:"), MemoryConsensus)
        monkeypatch.chdir(tmp_path)
        urls = [
            "m",
            "sqlite:m",
            f"{tmp_path}/m",
            f"sqlite:{tmp_path}/m",
            f"sqlite://{tmp_path}/m",
            f"file://{tmp_path}/m",
        ]
        for version, url in enumerate(urls, start=1):
            consensus = open_consensus_at(url)
            consensus.commit({"a": version - 1 or None}, {"a": b""}, version)
            consensus.close()
        assert [path.name for path in tmp_path.iterdir()] == ["m"]

    @pytest.mark.parametrize("url", ["", "mysql://x/y", "c:dir", "sqlite:", "sqlite://host/x"])
    def test_what_it_is_not(self, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        with pytest.raises(InvalidUsage):
            open_consensus_at(url)
        assert list(tmp_path.iterdir()) == []
