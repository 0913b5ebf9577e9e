"""What is checked before anything is written: names, keys, reductions, what the endpoint says, and the data so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from everview.compute.ir.types import Kind, SqlType
from everview.flow.contract import DELETE, EXISTS, Binding, Spec
from everview.flow.drivers.contract import Constraint, Driver, Validated, checked_options
from everview.flow.errors import InvalidMaterialization
from everview.flow.keyrange import WHOLE
from everview.flow.reduction import LAST_WRITE_WINS, check_type
from everview.flow.source import Collections, check_columns
from everview.storage.environment import Environment
from everview.storage.errors import NotReadable
from everview.timely.consolidate import DIFF, HASH, TIME

NAME_MAX = 128

_NEVER_KEYS = {Kind.ARRAY, Kind.INTERVAL}


def check_spec(driver: Driver, spec: Spec) -> Spec:
    """The materialization with the driver's defaults. An error if it is invalid."""
    if not spec.name or len(spec.name) > NAME_MAX or "/" in spec.name:
        raise InvalidMaterialization(f"not a name of a materialization: {spec.name!r}")
    if not spec.bindings:
        raise InvalidMaterialization("a materialization has at least one binding")
    bindings = []
    for given in spec.bindings:
        try:
            resource = given.resource
            if driver.resource_options:
                resource = checked_options(driver.name, driver.resource_options, given.resource)
            delta = given.delta_updates or driver.delta_only
            binding = replace(given, resource=resource, delta_updates=delta)
            _check_fields(binding, driver)
            bindings.append(binding)
        except InvalidMaterialization as error:
            if len(spec.bindings) > 1:  # which of them it is
                error.detail = "; ".join(filter(None, (error.detail, f"of collection {given.collection}")))
            raise
    driver.resources = [each.resource for each in bindings]
    if driver.resource_options:
        places = [tuple(sorted((name, str(value)) for name, value in each.resource.items())) for each in bindings]
        _check_apart(bindings, places)
    return replace(spec, bindings=tuple(bindings))


def _check_apart(bindings: Sequence[Binding], places: Sequence[tuple[object, ...]]) -> None:
    """An error if two bindings go to one place."""
    for at, place in enumerate(places):
        if place in places[:at]:
            raise InvalidMaterialization(
                f"collection {bindings[places.index(place)].collection} and collection {bindings[at].collection}"
                " of a sink go to the same place",
                hint="name another place for one of them",
            )


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


def check_endpoint(driver: Driver, spec: Spec) -> Spec:
    """Ask the endpoint. An error explains every field that it cannot take. Gives the materialization to apply."""
    spec = driver.completed(spec)
    found = driver.validate(spec)
    for binding, validated in zip(spec.bindings, found, strict=True):
        if not driver.foreign:
            _check_constraints(driver, binding, validated)
        if validated.delta_updates and not binding.delta_updates:
            raise InvalidMaterialization(
                f"{driver.name} takes delta updates only", hint="say DELTA UPDATES when you create the sink"
            )
        if binding.delta_updates and not validated.delta_updates:
            raise InvalidMaterialization(
                f"{driver.name} takes no delta updates there",
                detail=f"it would keep one row for each key of collection {binding.collection}",
                hint="leave DELTA UPDATES out, or set what the program needs for it in RESOURCE",
            )
    if driver.foreign and all(each.path for each in found):
        _check_apart(spec.bindings, [each.path for each in found])
    return driver.describe(spec, found)


def _check_constraints(driver: Driver, binding: Binding, validated: Validated) -> None:
    wrong = []
    for field in binding.fields:
        constraint = validated.constraints.get(field.name)
        if constraint is None:
            wrong.append(f'"{field.name}": the endpoint says nothing of it, so it is forbidden')
        elif constraint.kind in (Constraint.FORBIDDEN, Constraint.INCOMPATIBLE):
            wrong.append(f'"{field.name}": {constraint.reason or constraint.kind.value}')
    wrong += [
        f'"{name}": it is required and not a column of the sink. {constraint.reason}'.strip()
        for name, constraint in validated.constraints.items()
        if constraint.kind is Constraint.REQUIRED and name not in binding.names
    ]
    if wrong:
        raise InvalidMaterialization(
            f"{driver.name} cannot take collection {binding.collection}", detail="; ".join(wrong)
        )


def check_data(environment: Environment, bindings: Sequence[Binding]) -> None:
    """Look at the collections' contents: for NULL keys, two rows under one key, and rows that cannot be computed."""
    source = Collections(environment, bindings)
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
            source.check_unique(binding, WHOLE)
        except NotReadable as error:
            raise InvalidMaterialization(
                f"collection {binding.collection} cannot be read", detail=error.message
            ) from error
