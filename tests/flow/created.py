"""Materializations that are checked, prepared and remembered, as CREATE SINK does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from everview.flow.contract import Binding
from everview.flow.materialization import Materialization, Options
from everview.flow.spark import SparkWhenThere
from everview.storage.contract import Command
from everview.storage.environment import Environment


def created(
    environment: Environment,
    name: str,
    driver: str,
    config: Mapping[str, Any],
    bindings: Sequence[Binding],
    *,
    options: Options | None = None,
    also: Sequence[Command] = (),
    spark: SparkWhenThere = lambda: None,
) -> Materialization:
    """Check, make what the endpoint needs, and remember the materialization; `start` sets it going."""
    opened, spec = Materialization.validate(environment, name, driver, config, bindings)
    state = Materialization.prepare(opened, spec)
    options = options or Options()
    return Materialization.found(environment, opened, spec, options=options, state=state, also=also, spark=spark)
