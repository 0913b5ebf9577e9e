"""What a driver is: how one kind of endpoint takes part in the protocol.

A `Driver` knows an endpoint by its configuration: it says what it could take (`validate`), makes room for it
(`apply`) and opens transactors. A `Transactor` is one conversation about one range of keys. Its methods are called by
`serving`, one at a time and in the order that the protocol has, so a driver needs neither threads nor queues: loads
are staged until `flush`, when the last commit is certain, and `commit` runs after the runtime was told that it began.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar

import pyarrow as pa

from everview.flow.channel import Channel, Serving
from everview.flow.checkpoint import Checkpoint
from everview.flow.contract import Binding, Spec
from everview.flow.drivers.secrets import hidden, secrets_of
from everview.flow.errors import InvalidMaterialization, MissingLibrary
from everview.flow.keyrange import KeyRange
from everview.flow.lineage import Owner
from everview.flow.protocol import DriverState, Open, StateUpdate

CENSUS_S = 30.0  # how long rows are counted at most
RESET_HINT = "drop the sink and what it has delivered, and create it anew"


class Pattern(Enum):
    """Whose commit is authoritative, and what that gives."""

    AUTHORITATIVE = "remote store is authoritative"
    IDEMPOTENT_APPLY = "recovery log with idempotent apply"
    NON_TRANSACTIONAL = "recovery log with a non-transactional store"
    PUSH_ONLY = "push-only, delta updates"


class Guarantee(Enum):
    """What a reader of the endpoint sees."""

    EXACTLY_ONCE = "exactly once"
    AT_LEAST_ONCE = "at least once"


class Keys(Enum):
    """How it is known whether the endpoint has a key already."""

    ENFORCED = "the endpoint refuses a second document with the same key"
    CHECKED = "the runtime asks for keys that are new, and finds none"
    LOADED = "the runtime asks for every key that changes"
    TRUSTED = "the endpoint takes any document in place of the one that it has"


class Constraint(Enum):
    """What an endpoint says of a field."""

    REQUIRED = "FIELD_REQUIRED"
    RECOMMENDED = "LOCATION_RECOMMENDED"
    OPTIONAL = "FIELD_OPTIONAL"
    FORBIDDEN = "FIELD_FORBIDDEN"
    INCOMPATIBLE = "INCOMPATIBLE"


@dataclass(frozen=True, slots=True)
class FieldConstraint:
    """A constraint and why, and the name that a foreign driver keeps the field under, if it is another."""

    kind: Constraint
    reason: str = ""
    folded: str = ""


@dataclass(frozen=True)
class Validated:
    """What the endpoint says of one binding: each field, where it will be, and whether it insists on delta updates."""

    constraints: Mapping[str, FieldConstraint]
    path: tuple[str, ...]
    delta_updates: bool = False
    ser_policy: Mapping[str, Any] = field(default_factory=dict)  # as a foreign driver wants documents to be cut
    ignores_case: bool = False  # names of fields that differ only in case are one

    def folded(self, name: str) -> str:
        """The name that the endpoint keeps a field under."""
        constraint = self.constraints.get(name)
        if constraint is not None and constraint.folded:
            return constraint.folded
        return name.lower() if self.ignores_case else name


@dataclass(frozen=True)
class Option:
    """One setting of a driver or of a binding's resource."""

    name: str
    help: str
    kind: type = str
    required: bool = False
    secret: bool = False
    default: Any = None
    place: bool = False  # says which place it is, not how it is reached
    host_only: bool = False  # of the address, what comes behind the host is secret too


CONFINED = Option("confined", "stay inside of folders that are allowed", bool, default=False, place=True)


@dataclass(frozen=True)
class Started:
    """A commit that has begun: the change of the driver's state, and the rest of the work, if the endpoint commits."""

    state: StateUpdate | None = None
    commit: Callable[[], None] | None = None


@dataclass(frozen=True)
class Census:
    """How many rows each binding's table has, None if it is not there, and the checkpoints that go with it."""

    checkpoint: Checkpoint
    rows: tuple[int | None, ...]


@dataclass(frozen=True)
class Trouble:
    """What has failed and is tried again, without the conversation having failed."""

    message: str
    retry_ms: int  # when it is tried again, in milliseconds since 1970


class Transactor(ABC):
    """One conversation about one range of keys."""

    checkpoint: str | None = None  # of the endpoint, where it is authoritative
    trouble: Trouble | None = None
    drift: str | None = None  # what the endpoint did not hold as it should, and which kept nothing from being committed

    def __init__(self) -> None:
        self.staged: list[tuple[int, pa.Table]] = []

    def load(self, binding: int, keys: pa.Table) -> None:
        """Note keys to load; nothing may be read yet, for the last commit may still be under way."""
        self.staged.append((binding, keys))

    def flush(self) -> Iterator[tuple[int, pa.Table]]:
        """The documents that there are of all keys noted."""
        staged, self.staged = self.staged, []
        for binding, keys in staged:
            found = self.find(binding, keys)
            if found.num_rows:
                yield binding, found

    def find(self, binding: int, keys: pa.Table) -> pa.Table:
        """The documents with these keys. Drivers that only push have none."""
        raise NotImplementedError

    def begin_stores(self, checkpoint: str) -> None:
        """The last commit is certain; documents may follow, of a transaction that ends at this checkpoint."""
        return None

    @abstractmethod
    def store(self, binding: int, documents: pa.Table) -> None:
        """Take documents of the transaction."""

    @abstractmethod
    def start_commit(self, checkpoint: str) -> Started:
        """All documents were given: begin to commit them."""

    def acknowledge(self) -> StateUpdate | None:
        """The recovery log has the last transaction: apply what was staged, again if need be."""
        return None

    @abstractmethod
    def close(self) -> None:
        """Let go of the endpoint; what is not committed is undone."""


class Driver(ABC):
    """One endpoint."""

    name: ClassVar[str]
    pattern: ClassVar[Pattern]
    guarantee: ClassVar[Guarantee]
    keys: ClassVar[Keys] = Keys.TRUSTED
    delta_only: ClassVar[bool] = False
    foreign: ClassVar[bool] = False  # written by others: it may keep checkpoints of ranges that are no more
    options: ClassVar[tuple[Option, ...]] = ()
    resource_options: ClassVar[tuple[Option, ...]] = ()
    shared: ClassVar[bool] = False  # whether several sinks can deliver to one place
    own_resource: ClassVar[bool] = False  # whether RESOURCE is a JSON object that only the driver understands
    resources: Sequence[Mapping[str, Any]] = ()  # where bindings go, which may hold secrets too
    interval_ms: ClassVar[int] = 0  # the least time between two transactions, unless the user chooses

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = checked_options(self.name, self.options, config)

    @abstractmethod
    def validate(self, spec: Spec) -> list[Validated]:
        """What the endpoint says of each binding, without changing anything there."""

    def completed(self, spec: Spec) -> Spec:
        """The materialization with what the driver itself knows of it; an error if settings are wrong."""
        return spec

    def describe(self, spec: Spec, validated: list[Validated]) -> Spec:
        """The materialization as a foreign driver is told of it, with the fields that it takes."""
        return spec

    def prepare(self, spec: Spec, last: Spec | None = None, state: DriverState | None = None) -> StateUpdate | None:
        """Make what the bindings need; `last` is what was applied before, if anything. Gives a change of state."""
        self.apply(spec)
        return None

    @abstractmethod
    def apply(self, spec: Spec) -> str:
        """Make what the bindings need, such as tables, where it is not there; says what was done."""

    @abstractmethod
    def open(self, spec: Spec, range: KeyRange, state: DriverState) -> Transactor:
        """Begin a conversation, fencing off whoever had these keys before."""

    def opened(self, request: Open) -> Transactor:
        """Begin a conversation as the runtime asks for it.

        A driver that keeps no checkpoint raises TakenOver here, and before it changes anything, if it finds the mark
        of another copy of the environment at the endpoint.
        """
        return self.open(request.spec, request.range, request.state)

    def connect(self, request: Open) -> Channel:
        """A channel to a new conversation."""
        return Serving(lambda: self.opened(request), f"{self.name} {request.range}")

    def again(self, spec: Spec, *, anew: bool) -> Spec:
        """The materialization as a foreign driver is told of it next, `anew` if everything is delivered anew."""
        return spec

    def reset(self, spec: Spec) -> None:
        """Empty what the bindings hold, for all of it to be delivered anew, and fence off whoever has it open."""
        raise InvalidMaterialization(f"what is in {self.name} cannot be emptied", hint=RESET_HINT)

    def census(self, spec: Spec) -> Census | None:
        """Count what the bindings hold, at one moment; None if nothing was committed yet."""
        raise NotImplementedError("only some endpoints can count")

    def forget(self, spec: Spec, owner: Owner | None = None) -> None:
        """The materialization is dropped: remove what was kept for it beside the data.

        TakenOver, and nothing is removed, if that is another copy's of the environment now.
        """
        return None

    def shown(self, name: str, value: str) -> str | None:
        """A setting of a statement as anyone may see it; None if its name tells enough about that."""
        return None

    @property
    def secrets(self) -> set[str]:
        """What must not be shown of the settings."""
        values = [self.config.get(option.name) for option in self.options if option.secret]
        return {secret for value in values if isinstance(value, str) for secret in secrets_of(value)}

    def hide(self, text: str) -> str:
        """The text without any of this endpoint's secrets."""
        return hidden(text, self.secrets)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def checked_options(owner: str, options: tuple[Option, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with their defaults; an error for an unknown, missing or wrong one."""
    known = {option.name: option for option in options}
    result = {option.name: option.default for option in options if option.default is not None}
    for name, value in given.items():
        option = known.get(name.lower())
        if option is None:
            hint = f"one of {', '.join(known)}" if known else "it takes none"
            raise InvalidMaterialization(f'{owner} has no option "{name}"', hint=hint)
        result[option.name] = _converted(owner, option, value)
    missing = [option.name for option in options if option.required and option.name not in result]
    if missing:
        raise InvalidMaterialization(f"{owner} needs the option {', '.join(missing)}", hint=known[missing[0]].help)
    return result


def _converted(owner: str, option: Option, value: Any) -> Any:
    if isinstance(value, option.kind) and not (option.kind is int and isinstance(value, bool)):
        return value
    text = str(value).strip().lower()
    if option.kind is bool and text in ("true", "on", "false", "off"):
        return text in ("true", "on")
    if option.kind in (int, float):
        try:
            return option.kind(text)
        except ValueError:
            pass
    shown = "" if option.secret else f": {value!r}"
    raise InvalidMaterialization(f'option "{option.name}" of {owner} must be {option.kind.__name__}{shown}')


def plain_constraints(binding: Binding) -> dict[str, FieldConstraint]:
    """Keys are required and the rest is recommended: what an endpoint says that takes any type."""
    return {
        each.name: FieldConstraint(Constraint.REQUIRED, "it is part of the key")
        if each.name in binding.key
        else FieldConstraint(Constraint.RECOMMENDED)
        for each in binding.fields
    }


def library(module: str, package: str, extra: str) -> Any:
    """An optional module; where it is not installed, an error that says what to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingLibrary(package, extra) from error
