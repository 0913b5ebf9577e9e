"""Records run on a server of Everview's: every query on Spark, in the process of the server, and as a view."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from everview.adapter.settings import AUTO, LOCAL, PEEK_ENGINE, SPARK
from tests.adapter.scripts import Step
from tests.sqltext.records import File, difference, is_query
from tests.sqltext.wire import WireClient

VIEW = "a view"
STATEMENT_TIMEOUT = "600s"
_numbers = itertools.count(1)


class Run:
    """One run over a file, in a schema of its own; `wrong` collects what does not agree."""

    def __init__(self, url: str, file: File) -> None:
        self.file, self.wrong = file, list[str]()
        self._url = url
        self._schema = f"records_{next(_numbers)}"
        self._clients: dict[str, WireClient] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Run:
        self._ok(self._client("main"), f"CREATE SCHEMA {self._schema}")
        return self

    def __exit__(self, *_: object) -> None:
        client = WireClient(self._url)
        self._stack.callback(client.close)
        client(f"DROP SCHEMA IF EXISTS {self._schema} CASCADE")
        self._stack.close()

    def here(self) -> None:
        """All records in order, computed where small reads are."""
        for step in self.file.steps:
            self._compare(step, LOCAL, self._answer(step, LOCAL))

    def every_way(self, chosen: Sequence[Step]) -> None:
        """All statements, and the chosen queries in each way that there is."""
        if self.file.is_maintained:
            self._maintained(chosen)
            return
        for step in self.file.steps:
            if step in chosen and self._client(step.session).idle:
                self._every_way_at_once(step)
            else:
                self._compare(step, AUTO, self._answer(step, AUTO))

    def _maintained(self, chosen: Sequence[Step]) -> None:
        """Views are made of tables half filled, and must follow the changes."""
        for step in self.file.filling:
            self._compare(step, AUTO, self._answer(step, AUTO))
        views = {f"v{index}": step for index, step in enumerate(chosen) if "no-view" not in step.marks}
        made = {name: self._make_view(name, step) for name, step in views.items()}
        for step in self.file.changes:
            self._compare(step, AUTO, self._answer(step, AUTO))
        for name, step in views.items():
            self._check_view(name, step, made[name])
        for step in chosen:
            if "no-spark" not in step.marks:
                self._compare(step, SPARK, self._answer(step, SPARK))

    def _every_way_at_once(self, step: Step) -> None:
        """A query in the midst of a script: the view is made of what is there, read and dropped."""
        self._compare(step, LOCAL, self._answer(step, LOCAL))
        if "no-spark" not in step.marks:
            self._compare(step, SPARK, self._answer(step, SPARK))
        if "no-view" not in step.marks:
            name = f"v{step.line}"
            made = self._make_view(name, step)
            self._check_view(name, step, made)
            if made == _MADE:
                self._ok(self._client("main"), f"DROP MATERIALIZED VIEW {self._schema}.{name}")

    def _make_view(self, name: str, step: Step) -> list[str]:
        """Names are given to columns by position, for those of a query need not be unique."""
        width = 0 if step.expected[0].startswith("!") else len(step.expected[0].split("|"))
        names = ", ".join(f"c{index}" for index in range(width))
        columns = f" ({names})" if names else ""
        return self._client(step.session)(
            f"CREATE MATERIALIZED VIEW {self._schema}.{name}{columns} AS {step.statement}"
        )

    def _check_view(self, name: str, step: Step, made: list[str]) -> None:
        """What fails may do so when the view is made, or when it is read."""
        client = self._client(step.session)
        found = client(f"SELECT * FROM {self._schema}.{name}") if made == _MADE else made
        if not found[0].startswith("!"):
            found = [_renamed(found[0], step.expected[0]), *found[1:]]
        self._compare(step, VIEW, found, ordered=False)

    def _answer(self, step: Step, engine: str) -> list[str]:
        client = self._client(step.session)
        if not is_query(step.statement) or not client.idle:
            return client(step.statement)
        self._ok(client, f"SET {PEEK_ENGINE} = {engine}")
        found = client(step.statement)
        self._ok(client, f"RESET {PEEK_ENGINE}")
        return found

    def _compare(self, step: Step, way: str, found: list[str], *, ordered: bool | None = None) -> None:
        if "not-on-spark" in step.marks and way in (SPARK, VIEW):
            step = replace(step, expected=("! 0A000 ",))
        wrong = difference(step, found, ordered=ordered)
        if wrong is not None:
            self.wrong.append(f"{self.file.name}, line {step.line}, {way}: {wrong}")

    def _client(self, name: str) -> WireClient:
        if name not in self._clients:
            client = WireClient(self._url, statement_timeout=STATEMENT_TIMEOUT)
            self._clients[name] = self._stack.enter_context(client)
            self._ok(client, f"SET search_path = {self._schema}")
        return self._clients[name]

    @staticmethod
    def _ok(client: WireClient, statement: str) -> None:
        found = client(statement)
        assert not found or not found[0].startswith("!"), (statement, found)


_MADE = ["CREATE MATERIALIZED VIEW"]


def _renamed(found: str, expected: str) -> str:
    """The types that were found, under the names that a query gives."""
    if expected.startswith("!"):
        return found
    types = [column.rpartition(":")[2] for column in found.split("|")]
    names = [column.rpartition(":")[0] for column in expected.split("|")]
    return "|".join(f"{name}:{each}" for name, each in zip(names, types, strict=True))
