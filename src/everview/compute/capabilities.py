"""The capabilities of a dataflow: their tokens, the note that keeps them, and the collection of its errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from everview.storage.contract import Command, Drop, GlobalId, ReadCapability
from everview.storage.environment import Environment
from everview.storage.errors import CapabilityInvalid, Corruption, UnknownId, UpperMismatch

DROPS_MAX = 10  # tries to drop what a dataflow holds whose tick still runs


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of the capabilities that a dataflow lives by; kept with its state."""

    inputs: Mapping[GlobalId, str]  # the inputs, and the errors of those that have some
    outputs: Mapping[GlobalId, tuple[str | None, str]]  # the output, the arrangements and the errors: read, write
    state: GlobalId | None = None  # whose arrangements they are, if this dataflow took the output over from another
    form: int = 1  # how the state is kept: see `View.of`; older notes do not say it
    shared: Mapping[str, GlobalId] = field(default_factory=dict)  # by arrangement: the shared one that stands for it

    def encoded(self) -> bytes:
        outputs = {id: list(pair) for id, pair in self.outputs.items()}
        return json.dumps([dict(self.inputs), outputs, self.state, self.form, dict(self.shared)]).encode()

    @staticmethod
    def decoded(note: bytes) -> Tokens:
        inputs, outputs, *more = json.loads(note)
        return Tokens(inputs, {id: (read, write) for id, (read, write) in outputs.items()}, *more)


def errors_reader(environment: Environment, id: GlobalId) -> ReadCapability | None:
    """The capability by which the dataflow of a view reads the view's errors, if it can have any."""
    note = environment.get(note_of(id))
    if note is None:
        return None
    pair = Tokens.decoded(note).outputs.get(errors_id(id))
    if pair is None or pair[0] is None:
        return None
    capability = environment.present(errors_id(id), pair[0])
    assert isinstance(capability, ReadCapability)
    return capability


def with_errors(environment: Environment, inputs: Sequence[ReadCapability]) -> list[ReadCapability]:
    """The capabilities that a view needs to read its inputs: those on their errors too."""
    return [*inputs, *(found for each in inputs if (found := errors_reader(environment, each.id)))]


def starting_time(wanted: Sequence[ReadCapability]) -> int:
    """The first time at which all of these can be read."""
    return max((each.frontier.only for each in wanted), default=0)


def held_by(environment: Environment, id: GlobalId) -> Tokens:
    """What a dataflow lives by, as it is noted."""
    note = environment.get(note_of(id))
    if note is None:
        raise Corruption(f"the note of what maintains {id} is missing")
    return Tokens.decoded(note)


def note_of(id: GlobalId) -> str:
    """The key of the note with a dataflow's capabilities."""
    return f"dataflow/{id}"


def errors_id(id: GlobalId) -> GlobalId:
    """The collection of a view's errors: at times when it has rows, the view can't be read."""
    return f"{id}.errors"


def is_errors_id(id: GlobalId) -> bool:
    return id.endswith(".errors")


def is_awake(environment: Environment, errors: GlobalId) -> bool:
    """Whether a collection of errors is written; one that sleeps, or does not exist, has no errors."""
    try:
        found = environment.frontiers(errors)
        if found.since.empty:
            return False
        return found.upper.empty or found.upper.only > environment.shard(errors).spec.initial
    except UnknownId:
        return False


def drop_held(environment: Environment, tokens: Callable[[], Iterable[tuple[GlobalId, str]]], *more: Command) -> None:
    """Drop the capabilities that still exist, in one step with more commands.

    A tick that still runs, though it was asked to end, may move or drop one of them a moment before. It does so once
    or twice at the most.
    """
    for attempt in range(DROPS_MAX):
        try:
            held = [environment.present(id, token) for id, token in tokens() if token in held_of(environment, id)]
            environment.commit(*map(Drop, held), *more)
            return
        except (CapabilityInvalid, UnknownId, UpperMismatch):
            if attempt + 1 == DROPS_MAX:
                raise


def held_of(environment: Environment, id: GlobalId) -> list[str]:
    """The tokens of all capabilities on a collection; no tokens if it is gone."""
    try:
        return list(environment.shard(id).held)
    except UnknownId:
        return []
