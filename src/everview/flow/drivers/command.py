"""Any program that speaks the protocol on its standard streams, such as the public connectors of Estuary Flow.

It is started once for each question and once for each conversation. What it guarantees is its own affair: where it
gives a checkpoint back when it is opened, it is authoritative; else the runtime keeps its checkpoints. It says itself
what settings it takes, which of them are secret, and which fields of a collection it wants.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from json import dumps, loads
from pathlib import Path
from typing import Any

from everview.flow.channel import Channel
from everview.flow.connector import schemas
from everview.flow.connector.codec import codec_of
from everview.flow.connector.description import choose, chosen_before, described, proposed_json
from everview.flow.connector.program import Launch, ProgramChannel
from everview.flow.connector.rows import Layout
from everview.flow.contract import Binding, Spec
from everview.flow.drivers.contract import (
    Constraint,
    Driver,
    FieldConstraint,
    Guarantee,
    Keys,
    Option,
    Pattern,
    Transactor,
    Validated,
)
from everview.flow.drivers.secrets import HIDDEN, secrets_in
from everview.flow.errors import DriverFailed, FlowError, InvalidMaterialization
from everview.flow.keyrange import KeyRange
from everview.flow.lineage import Owner
from everview.flow.protocol import DriverState, Open, StateUpdate
from everview.flow.wire import PROTOCOL, state_update

# How an image is run: a command with {image} and, if it likes, {codec} and {log_level}.
IMAGES = "EVERVIEW_CONNECTOR_COMMAND"

_CONSTRAINTS = {each.value: each for each in Constraint} | {
    "LOCATION_REQUIRED": Constraint.REQUIRED,
    "UNSATISFIABLE": Constraint.INCOMPATIBLE,
}
# Of several constraints for one field the strictest counts.
_STRICTNESS = [
    Constraint.OPTIONAL,
    Constraint.RECOMMENDED,
    Constraint.REQUIRED,
    Constraint.FORBIDDEN,
    Constraint.INCOMPATIBLE,
]
_OF_PROGRAMS = (
    Option("config", "the program's own settings", dict, secret=True, default={}),
    Option("codec", "how messages are framed: json or proto", default="json"),
    Option("log_level", "what the program is to log: debug, info, warn or error", default="warn"),
)


class CommandDriver(Driver):
    """A program that speaks the protocol."""

    name = "command"
    pattern = Pattern.NON_TRANSACTIONAL
    guarantee = Guarantee.AT_LEAST_ONCE
    keys = Keys.LOADED
    foreign = shared = own_resource = True
    options = (Option("command", "the program and its arguments", required=True), *_OF_PROGRAMS)

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self._codec = codec_of(self.config["codec"])
        self._arguments = self._command()
        if not self._arguments:
            raise InvalidMaterialization("the command is empty")

    def _command(self) -> list[str]:
        return shlex.split(self.config["command"])

    @property
    def _launch(self) -> Launch:
        said = {"FLOW_RUNTIME_CODEC": self._codec.name, "LOG_FORMAT": "json", "LOG_LEVEL": self.config["log_level"]}
        return Launch(self._arguments, {**os.environ, **said}, self._codec)

    # Secrets

    @property
    def secrets(self) -> set[str]:
        """The values that the program's schemas call secret.

        If the program does not tell its schemas, every text of the config, and what names say of resources.
        """
        found = [self._secrets_of_resource(each) for each in self.resources]
        return self._secrets_of_config.union(*found)

    @cached_property
    def _secrets_of_config(self) -> set[str]:
        return schemas.secrets(self.config["config"], self._schemas.get("configSchema") or {"secret": True})

    def _secrets_of_resource(self, resource: Mapping[str, Any]) -> set[str]:
        schema = self._schemas.get("resourceConfigSchema")
        return set(secrets_in(resource)) if schema is None else schemas.secrets(resource, schema)

    @cached_property
    def _schemas(self) -> Mapping[str, Mapping[str, Any]]:
        """The schemas that the program tells; it is not asked again if it fails."""
        try:
            return {name: each for name, each in self.about.items() if isinstance(each, Mapping)}
        except FlowError:
            return {}

    def shown(self, name: str, value: str) -> str | None:
        if name == "config":
            return dumps(_masked(self.config["config"], self._secrets_of_config))
        if name == "resource":
            given = loads(value)
            found = self._secrets_of_resource(given)
            return dumps(_masked(given, found)) if found else None
        return None

    # Before anything is written

    @cached_property
    def about(self) -> dict[str, Any]:
        """What the program says of itself."""
        found = self._launch.ask("spec", {"connectorType": "LOCAL", "config": self.config["config"]}, "spec")
        protocol = int(found.get("protocol", PROTOCOL))
        if protocol != PROTOCOL:
            raise DriverFailed(f"the program speaks protocol {protocol}", detail=f"it should be {PROTOCOL}")
        return found

    def completed(self, spec: Spec) -> Spec:
        about = self.about
        schemas.check("CONFIG", self.config["config"], about.get("configSchema") or {})
        schema = about.get("resourceConfigSchema") or {}
        bindings = tuple(_completed(each, schema) for each in spec.bindings)
        for each in bindings:
            schemas.check("RESOURCE", each.resource, schema)
        return replace(spec, bindings=bindings)

    def validate(self, spec: Spec) -> list[Validated]:
        backfills = _backfills(spec)
        question = {
            "name": spec.name,
            "connectorType": "LOCAL",
            "config": self.config["config"],
            "bindings": [proposed_json(each, backfills.get(at, 0)) for at, each in enumerate(spec.bindings)],
            **self._last(spec if spec.described is not None else None),
        }
        answer = self._launch.ask("validate", question, "validated")
        bindings = answer.get("bindings", [])
        if len(bindings) != len(spec.bindings):
            raise DriverFailed("the program validated another number of bindings than there are")
        return [_validated(each) for each in bindings]

    def describe(self, spec: Spec, validated: list[Validated]) -> Spec:
        chosen = [choose(binding, each) for binding, each in zip(spec.bindings, validated, strict=True)]
        made = described(spec, chosen, backfills=_backfills(spec))
        return replace(spec, described=made, version=spec.version + 1)

    def apply(self, spec: Spec) -> str:
        return str(self._apply(spec, None, None).get("actionDescription", ""))

    def prepare(self, spec: Spec, last: Spec | None = None, state: DriverState | None = None) -> StateUpdate | None:
        return state_update(self._apply(spec, last, state))

    def _apply(self, spec: Spec, last: Spec | None, state: DriverState | None) -> dict[str, Any]:
        question = {
            "materialization": self._described(spec),
            "version": _version(spec),
            **self._last(last),
            "state": dict(state or {}),
        }
        return self._launch.ask("apply", question, "applied")

    def _last(self, last: Spec | None) -> dict[str, Any]:
        if last is None:
            return {}
        return {"lastMaterialization": self._described(last), "lastVersion": _version(last)}

    def _described(self, spec: Spec) -> dict[str, Any]:
        """The materialization with the settings that it was applied with."""
        return {**_described(spec), "config": spec.config.get("config", self.config["config"])}

    def reset(self, spec: Spec) -> None:
        raise AssertionError("a program is told to begin anew by what it applies")

    def again(self, spec: Spec, *, anew: bool) -> Spec:
        """The next version of the materialization. A higher count of backfills makes a program start a place anew."""
        told = _described(spec)
        bindings = [{**each, "backfill": int(each.get("backfill", 0)) + anew} for each in told["bindings"]]
        counted = self.completed(replace(spec, described={**told, "bindings": bindings}))
        return self.describe(counted, self.validate(counted))

    # Conversations

    def open(self, spec: Spec, range: KeyRange, state: DriverState) -> Transactor:
        raise NotImplementedError("a program is connected to, not opened")

    def connect(self, request: Open) -> Channel:
        spec, span = request.spec, request.range
        said = _described(spec)
        opening = {
            "materialization": self._described(spec),
            "version": _version(spec),
            "range": {"keyBegin": span.begin, "keyEnd": span.end, "rClockBegin": 0, "rClockEnd": 2**32 - 1},
            "state": dict(request.state),
        }
        layouts = [Layout.of(each, here) for each, here in zip(spec.bindings, said["bindings"], strict=True)]
        if spec.described is None:  # of a sink that is older than the choice of fields: it always had documents
            layouts = [replace(each, document=True) for each in layouts]
        return ProgramChannel(self._launch, request, opening, layouts)

    def forget(self, spec: Spec, owner: Owner | None = None) -> None:
        """Tell the program that no bindings are left. Delivered data stay."""
        if spec.described is None:
            return
        nothing = replace(spec, bindings=(), described={**spec.described, "bindings": []}, version=spec.version + 1)
        self._apply(nothing, spec, None)


class ConnectorDriver(CommandDriver):
    """A public connector: a program by its path, or an image that a configured command runs."""

    name = "connector"
    options = (Option("connector", "a program's path, or the name of an image", required=True), *_OF_PROGRAMS)

    def _command(self) -> list[str]:
        given = str(self.config["connector"])
        if given.startswith((".", "/", "~")) or Path(given).is_file():
            return [str(Path(given).expanduser())]
        template = os.environ.get(IMAGES, "")
        if "{image}" not in template:
            example = (
                "docker run --rm -i -e FLOW_RUNTIME_CODEC={codec} -e LOG_FORMAT=json -e LOG_LEVEL={log_level} {image}"
            )
            raise InvalidMaterialization(
                f"nothing says how the image {given} is run",
                hint=f"give the path of a program, or start the server with {IMAGES}='{example}'",
            )
        words = {"image": given, "codec": self._codec.name, "log_level": self.config["log_level"]}
        return [re.sub(r"\{(image|codec|log_level)\}", lambda at: words[at[1]], each) for each in shlex.split(template)]


def _described(spec: Spec) -> Mapping[str, Any]:
    if spec.described is not None:
        return spec.described
    return described(spec, [chosen_before(each) for each in spec.bindings])


def _version(spec: Spec) -> str:
    return f"{max(1, spec.version):016x}"


def _backfills(spec: Spec) -> dict[int, int]:
    bindings = (spec.described or {}).get("bindings", [])
    return {at: int(each.get("backfill", 0)) for at, each in enumerate(bindings)}


def _completed(binding: Binding, schema: Mapping[str, Any]) -> Binding:
    """The binding with the place's name and DELTA UPDATES in its resource, where the schema has properties for them."""
    resource = dict(binding.resource)
    for path in schemas.marked(schema, "x-collection-name")[:1]:
        if _at(resource, path) is None:
            _set(resource, path, binding.title or binding.collection)
    for path in schemas.marked(schema, "x-delta-updates")[:1]:
        given = _at(resource, path)
        if given is None and binding.delta_updates:
            _set(resource, path, True)
        elif given is not None and bool(given) != binding.delta_updates:
            pointer = "".join(f"/{schemas.escaped(name)}" for name in path)
            raise InvalidMaterialization(
                f"RESOURCE says {dumps(given)} at {pointer}, and the sink "
                f"{'says' if binding.delta_updates else 'does not say'} DELTA UPDATES",
                hint="leave it out of RESOURCE: it follows the sink",
            )
    return replace(binding, resource=resource)


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _set(target: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for name in path[:-1]:
        target = target.setdefault(name, {})
    target[path[-1]] = value


def _masked(value: Any, secrets: set[str]) -> Any:
    if isinstance(value, Mapping):
        return {name: _masked(each, secrets) for name, each in value.items()}
    if isinstance(value, list):
        return [_masked(each, secrets) for each in value]
    return HIDDEN if not isinstance(value, bool) and value is not None and str(value) in secrets else value


def _validated(said: Mapping[str, Any]) -> Validated:
    given = [*(said.get("constraints") or {}).items()]
    given += [(each["field"], each.get("constraint", each)) for each in said.get("projectionConstraints") or ()]
    constraints: dict[str, FieldConstraint] = {}
    for name, each in given:
        kind = _CONSTRAINTS.get(each.get("type", ""), Constraint.FORBIDDEN)
        before = constraints.get(name)
        if before is None or _STRICTNESS.index(kind) > _STRICTNESS.index(before.kind):
            folded = each.get("foldedField") or (before.folded if before is not None else "")
            constraints[name] = FieldConstraint(kind, each.get("reason", ""), folded)
    path = tuple(map(str, said.get("resourcePath") or ()))
    delta, ignores_case = bool(said.get("deltaUpdates", False)), bool(said.get("caseInsensitiveFields", False))
    return Validated(constraints, path, delta, dict(said.get("serPolicy") or {}), ignores_case)
