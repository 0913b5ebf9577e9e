"""What Spark dies of, in our words, and what it must be told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from everview.cdc.errors import TransportFailed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSource

_NO_PACKAGE = "No module named 'everview'"


@contextmanager
def spark_failures(doing: str) -> Iterator[None]:
    """While inside, failures of Spark are TransportFailed."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        text = str(error).strip()
        hint = None
        if _NO_PACKAGE in text:
            hint = "spark's python must have everview: set PYSPARK_PYTHON to one that has before spark starts"
        detail = _NO_PACKAGE.lower() if hint else text.split("\n", 1)[0]
        raise TransportFailed(f"spark failed while {doing}", detail=detail, hint=hint) from error


def register(session: SparkSession, source: type[DataSource]) -> None:
    """Make a data source known to a session, which becomes the one of this thread: Spark asks that one."""
    session.dataSource.register(source)
    session.createDataFrame([], "nothing int")  # whoever makes a DataFrame of local rows becomes the active session
