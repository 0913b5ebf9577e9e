"""The session in which functions are tried on Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from everview.compute.functions.spark_sql import SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    own = spark.newSession()
    for name, value in {
        **SETTINGS,
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }.items():
        own.conf.set(name, value)
    yield own
