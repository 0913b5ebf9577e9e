"""An environment with every kind of object and option, as data folders of earlier versions: made, and looked at.

`python -m tests.adapter.kinds ARCHIVE` makes such a folder with the version at hand. The archive holds the folder, what
its sinks wrote, and in `answers.json` what the version said of it.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
import tarfile
import tempfile
from contextlib import closing
from pathlib import Path

from everview.adapter.coordinator import Coordinator
from everview.storage import sealed as sealing
from tests.adapter.conftest import Clock
from tests.adapter.delivery import delivered, ok
from tests.adapter.scripts import SessionClient
from tests.waiting import eventually

PLACE = "/srv/everview"  # of the folder, wherever it was made
SEAL_BYTES = 12
NOW_MS = 1_700_000_000_000
KINDS = Path(__file__).with_name("environments") / "kinds"
STATEMENTS, SOURCES, CATALOGS = (part.splitlines()[1:] for part in (KINDS / "statements.sql").read_text().split("\n\n"))
ROWS = {
    "SELECT * FROM customer ORDER BY id": 3,
    "SELECT id, customer, total, placed FROM shop.orders ORDER BY id": 20,
    "SELECT k FROM due ORDER BY k": 2,
    "SELECT * FROM buyers ORDER BY 1, 2": 20,
    "SELECT * FROM spent ORDER BY 1": 3,
    "SELECT * FROM versions ORDER BY 1": 3,
    "SELECT * FROM reads_first": 1,
    "SELECT * FROM staged ORDER BY 1": 3,
    "SELECT id, name, since, tags, credit FROM copy ORDER BY id": 3,
    "SELECT id, name FROM named ORDER BY id": 3,
    "SELECT id FROM timely ORDER BY id": 3,
    "SELECT n FROM over_timely": 1,
    "SELECT count(*) FROM shop.organizations": 1,
    "SELECT name FROM buyers WHERE name = 'Bob'": 7,
}
SINKS = ("stream", "plain_stream", "one", "several", "deltas")


def open_at(folder: Path) -> Coordinator:
    """The environment of a folder, at the time at which it was made."""
    return Coordinator.open(folder / "data", clock=Clock(NOW_MS), ticking=False)


def answers_of(sql: SessionClient) -> dict[str, list[str]]:
    """What an environment says of itself, and the rows that it has."""
    found = {query: sql(query) for query in (*CATALOGS, *ROWS)}
    failing = {query: answer for query, answer in found.items() if answer[0].startswith("!")}
    assert not failing, failing
    return found


def move(folder: Path, before: str, after: str) -> None:
    """Let the environment know its files somewhere else."""
    with closing(sqlite3.connect(folder / "data" / "consensus.db")) as database, database:
        for key, version, value in database.execute("SELECT key, version, value FROM entries").fetchall():
            if before.encode() in value:
                plain = value[SEAL_BYTES:].replace(before.encode(), after.encode())
                sealed = sealing._sealed(key, version, plain)
                database.execute("UPDATE entries SET value = ? WHERE key = ?", [sealed, key])


def make(archive: Path) -> None:
    """Make an archive with the version at hand."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with open_at(folder) as coordinator:
            sql = SessionClient(coordinator)
            ok(sql, *(each.replace("{place}", place) for each in STATEMENTS))
            for name in SINKS:
                delivered(coordinator, name)
            ok(sql, *(each.replace("{place}", place) for each in SOURCES))
            for query, count in ROWS.items():
                eventually(lambda query=query, count=count: len(sql(query)) == count + 1)  # type: ignore[misc]
            answers = {query: [line.replace(place, PLACE) for line in told] for query, told in answers_of(sql).items()}
        move(folder, place, PLACE)
        (folder / "answers.json").write_text(json.dumps(answers, indent=1))
        shutil.rmtree(folder / "data" / "hot", ignore_errors=True)
        with tarfile.open(archive, "w:gz") as tar:
            for each in sorted(folder.iterdir()):
                tar.add(each, each.name, filter=_nobodys)


def _nobodys(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    make(Path(sys.argv[1]))
