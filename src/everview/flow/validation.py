"""What is checked before anything is written: names, keys, reductions, what the endpoint says, and the data so far."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from everview.compute.ir.types import Kind, SqlType
from everview.flow.checkpoint import START, Checkpoint
from everview.flow.combine import combine
from everview.flow.contract import DELETE, EXISTS, Binding, Spec
from everview.flow.drivers.contract import Constraint, Driver, Keys, Validated, checked_options
from everview.flow.errors import InvalidMaterialization
from everview.flow.keyrange import WHOLE
from everview.flow.reduction import LAST_WRITE_WINS, check_type
from everview.flow.source import Source, check_columns
from everview.storage.environment import Environment
from everview.storage.errors import NotReadable
from everview.timely.consolidate import DIFF, HASH, TIME

NAME_MAX = 128

_NEVER_KEYS = {Kind.ARRAY, Kind.INTERVAL}


def check_spec(driver: Driver, spec: Spec) -> Spec:
    """The materialization with the driver's defaults and its insistence on delta updates; an error if it cannot be."""
    if not spec.name or len(spec.name) > NAME_MAX or "/" in spec.name:
        raise InvalidMaterialization(f"not a name of a materialization: {spec.name!r}")
    if not spec.bindings:
        raise InvalidMaterialization("a materialization has at least one binding")
    bindings = []
    for given in spec.bindings:
        resource = given.resource
        if driver.resource_options:
            resource = checked_options(driver.name, driver.resource_options, given.resource)
        delta = given.delta_updates or driver.delta_only
        binding = Binding(given.collection, given.fields, given.key, resource, delta)
        _check_fields(binding, driver)
        bindings.append(binding)
    places = [tuple(sorted((name, str(value)) for name, value in each.resource.items())) for each in bindings]
    if driver.resource_options and len(set(places)) < len(places):
        raise InvalidMaterialization("two bindings of a materialization go to the same place")
    return Spec(spec.name, spec.driver, tuple(bindings), spec.config)


def _check_fields(binding: Binding, driver: Driver) -> None:
    names = binding.names
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise InvalidMaterialization(f'the sink has more than one column "{doubled[0]}"', hint="rename them in a view")
    if reserved := [name for name in names if name in (EXISTS, DELETE, TIME, DIFF, HASH)]:
        raise InvalidMaterialization(f'"{reserved[0]}" is a name that sinks use themselves', hint="rename it in a view")
    if missing := [name for name in binding.key if name not in names]:
        raise InvalidMaterialization(
            f'column "{missing[0]}" of the key does not exist', hint=f"one of {', '.join(names)}"
        )
    if len(set(binding.key)) < len(binding.key):
        raise InvalidMaterialization("the key names a column twice")
    if not binding.key and not binding.delta_updates:
        raise InvalidMaterialization(
            "a sink needs a KEY", hint="name the columns that identify a row, or use DELTA UPDATES for append-only data"
        )
    for each in binding.fields:
        check_type(each.name, each.type, each.reduction)
        _check_reduction(binding, each.name, each.type)


def _check_reduction(binding: Binding, name: str, sql_type: SqlType) -> None:
    reduction = next(each.reduction for each in binding.fields if each.name == name)
    if name in binding.key:
        if reduction != LAST_WRITE_WINS:
            raise InvalidMaterialization(f'column "{name}" is part of the key and cannot be reduced')
        if sql_type.kind in _NEVER_KEYS:
            raise InvalidMaterialization(f'column "{name}" of type {sql_type} cannot be part of a key')
    if reduction != LAST_WRITE_WINS and not binding.key:
        raise InvalidMaterialization(f'column "{name}" can be reduced only under a KEY')
    if binding.delta_updates and not reduction.associative:
        raise InvalidMaterialization(
            f'column "{name}" is not to be reduced without what was there before',
            hint="leave DELTA UPDATES out, or make the reduction associative",
        )


def check_endpoint(driver: Driver, spec: Spec) -> list[Validated]:
    """Ask the endpoint; an error that explains every field which it cannot take."""
    found = driver.validate(spec)
    for binding, validated in zip(spec.bindings, found, strict=True):
        wrong = []
        for field in binding.fields:
            constraint = validated.constraints.get(field.name)
            if constraint is None:
                wrong.append(f'"{field.name}": the endpoint says nothing of it, so it is forbidden')
            elif constraint.kind in (Constraint.FORBIDDEN, Constraint.INCOMPATIBLE):
                wrong.append(f'"{field.name}": {constraint.reason or constraint.kind.value}')
        chosen = set(binding.names)
        wrong += [
            f'"{name}": it is required and not a column of the sink. {constraint.reason}'.strip()
            for name, constraint in validated.constraints.items()
            if constraint.kind is Constraint.REQUIRED and name not in chosen
        ]
        if wrong:
            raise InvalidMaterialization(
                f"{driver.name} cannot take collection {binding.collection}", detail="; ".join(wrong)
            )
        if validated.delta_updates and not binding.delta_updates:
            raise InvalidMaterialization(
                f"{driver.name} takes delta updates only", hint="say DELTA UPDATES when you create the sink"
            )
    return found


def check_data(environment: Environment, bindings: Sequence[Binding]) -> None:
    """Look at what the collections hold now: NULLs in keys, two rows under one, or rows that cannot be told."""
    source = Source(environment, bindings)
    for binding in bindings:
        check_columns(environment, binding)
        if not binding.key or binding.reduces:
            continue
        frontiers = environment.frontiers(binding.collection)
        if frontiers.since.empty:
            raise InvalidMaterialization(f"collection {binding.collection} can no longer be read")
        if not frontiers.upper.empty and frontiers.upper.only <= frontiers.since.only:
            continue
        try:
            for updates in source.passes(binding, Checkpoint.at(WHOLE, START), Checkpoint.at(WHOLE, source.upper)):
                combine(binding, _keys_only(updates, binding), Keys.ENFORCED, first=True)
        except NotReadable as error:
            raise InvalidMaterialization(
                f"collection {binding.collection} cannot be read", detail=error.message
            ) from error


def _keys_only(updates: pa.Table, binding: Binding) -> pa.Table:
    """Rows with no other values than their keys: two rows under one key are then one row twice."""
    for name in binding.names:
        if name not in binding.key:
            at = updates.schema.get_field_index(name)
            nothing = pa.nulls(updates.num_rows, updates.schema.field(at).type)
            updates = updates.set_column(at, name, nothing)
    return updates.set_column(
        updates.schema.get_field_index(TIME), TIME, pa.array(np.zeros(updates.num_rows, np.int64))
    )
