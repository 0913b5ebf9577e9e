"""The rules of a conversation: every message of either side is looked at, and one that breaks a rule is named.

`Conversation` is a pure state machine, fed by whoever sees the messages: the runtime feeds it what it sends and
receives, so that a driver's violation is found where it happens and one of our own never leaves the process.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

import pyarrow as pa

from everview.compute.ir.infinite import to_python
from everview.flow import protocol
from everview.flow.contract import DELETE, EXISTS, Binding, Spec
from everview.flow.errors import Party, ProtocolViolation

# The runtime groups by key before it stores, so this rule guards against a slip: not worth millions of remembered keys.
KEYS_CHECKED_MAX = 10_000


class Phase(Enum):
    """Where the conversation stands, as its requests have it."""

    NEW = "before Open"
    OPENING = "waiting for Opened"
    COMMITTED = "before Acknowledge"
    LOADING = "loading"
    FLUSHING = "waiting for Flushed"
    STORING = "storing"
    COMMITTING = "waiting for StartedCommit"
    ENDED = "ended"


# Rules, by the names that violations carry.
RULES = {
    "open-first": "Open is the first message, and comes once",
    "opened-once": "Opened answers Open, once, before anything else",
    "acknowledge-first": "Acknowledge is the first message of every transaction, and comes once",
    "acknowledged-once": "Acknowledged comes once for every transaction, after the last one's StartedCommit",
    "load-phase": "Load comes after Acknowledge and before Flush",
    "load-once": "a key is loaded at most once in a transaction",
    "load-delta": "a delta-updates binding never loads",
    "load-columns": "Load carries the fields of the key",
    "flush-after-acknowledged": "Flush is never sent before Acknowledged was received",
    "flush-once": "Flush comes once in every transaction, after Acknowledge",
    "loaded-asked": "Loaded answers a key that was loaded, once, before Flushed",
    "loaded-columns": "Loaded carries all fields",
    "flushed-after-flush": "Flushed answers Flush, once",
    "store-phase": "Store comes after Flushed and before StartCommit",
    "store-once": "a key is stored at most once in a transaction",
    "store-columns": "Store carries all fields, exists and delete",
    "store-silence": "the driver says nothing while documents are stored",
    "start-commit-phase": "StartCommit comes once, after Flushed and all stores",
    "started-commit-after": "StartedCommit answers StartCommit, once",
    "binding": "a message names a binding that there is",
    "end": "a conversation ends after Acknowledge and before any load",
}


class Conversation:
    """One conversation, from Open to its end."""

    def __init__(self) -> None:
        self.phase = Phase.NEW
        self.acknowledged = False  # whether the last transaction's Acknowledged has come
        self._spec: Spec | None = None
        self._loads: list[dict[tuple[Any, ...], bool]] = []  # key to whether it was answered
        self._stored: list[set[tuple[Any, ...]]] = []
        self._any_loads = False

    def observe(self, message: protocol.Message) -> None:
        """Take a message in; `ProtocolViolation` if it may not come now."""
        if isinstance(message, protocol.REQUESTS):
            self._request(message)
        else:
            self._response(message)

    def end(self) -> None:
        """The runtime closes its side."""
        self._require("runtime", "end", self.phase in (Phase.LOADING, Phase.COMMITTED) and not self._any_loads, "EOF")
        self.phase = Phase.ENDED

    # What the runtime may say

    def _request(self, message: protocol.Message) -> None:
        phase = self.phase
        if phase is Phase.OPENING and not isinstance(message, protocol.Open):
            self._fail("runtime", "opened-once", message)
        if isinstance(message, protocol.Open):
            self._require("runtime", "open-first", phase is Phase.NEW, message)
            self._spec = message.spec
            self._begin()
            self.phase = Phase.OPENING
            return
        self._require("runtime", "open-first", phase is not Phase.NEW, message)
        self._require("runtime", "end", phase is not Phase.ENDED, message)
        if isinstance(message, protocol.Acknowledge):
            self._require("runtime", "acknowledge-first", phase is Phase.COMMITTED, message)
            self._begin()
            self.phase = Phase.LOADING
        elif isinstance(message, protocol.Load):
            self._require("runtime", "load-phase", phase is Phase.LOADING, message)
            self._load(message)
        elif isinstance(message, protocol.Flush):
            self._require("runtime", "flush-once", phase is Phase.LOADING, message)
            self._require("runtime", "flush-after-acknowledged", self.acknowledged, message)
            self.phase = Phase.FLUSHING
        elif isinstance(message, protocol.Store):
            self._require("runtime", "store-phase", phase is Phase.STORING, message)
            self._store(message)
        elif isinstance(message, protocol.StartCommit):
            self._require("runtime", "start-commit-phase", phase is Phase.STORING, message)
            self.phase = Phase.COMMITTING

    # What the driver may say

    def _response(self, message: protocol.Message) -> None:
        phase = self.phase
        if isinstance(message, protocol.Opened):
            self._require("driver", "opened-once", phase is Phase.OPENING, message)
            self.phase = Phase.COMMITTED
            return
        self._require("driver", "opened-once", phase not in (Phase.NEW, Phase.OPENING), message)
        self._require("driver", "store-silence", phase is not Phase.STORING, message)
        if isinstance(message, protocol.Acknowledged):
            in_time = phase in (Phase.COMMITTED, Phase.LOADING, Phase.ENDED) and not self.acknowledged
            self._require("driver", "acknowledged-once", in_time, message)
            self.acknowledged = True
        elif isinstance(message, protocol.Loaded):
            # Behind a commit that is not acknowledged yet, what is there may not be read.
            in_time = phase in (Phase.LOADING, Phase.FLUSHING) and self.acknowledged
            self._require("driver", "loaded-asked", in_time, message)
            self._answer(message)
        elif isinstance(message, protocol.Flushed):
            self._require("driver", "flushed-after-flush", phase is Phase.FLUSHING, message)
            self.phase = Phase.STORING
        elif isinstance(message, protocol.StartedCommit):
            self._require("driver", "started-commit-after", phase is Phase.COMMITTING, message)
            self.phase, self.acknowledged = Phase.COMMITTED, False

    # Keys

    def _begin(self) -> None:
        assert self._spec is not None
        self._loads = [{} for _ in self._spec.bindings]
        self._stored = [set() for _ in self._spec.bindings]
        self._any_loads = False

    def _load(self, message: protocol.Load) -> None:
        binding = self._binding("runtime", message)
        self._require("runtime", "load-delta", not binding.delta_updates, message)
        self._require("runtime", "load-columns", message.keys.column_names == list(binding.key), message)
        self._any_loads = True
        asked = self._loads[message.binding]
        before = len(asked)
        asked.update((key, False) for key in _keys(message.keys, binding.key))
        self._require("runtime", "load-once", len(asked) == before + message.keys.num_rows, message)

    def _answer(self, message: protocol.Loaded) -> None:
        binding = self._binding("driver", message)
        self._require("driver", "loaded-columns", message.documents.column_names == binding.names, message)
        asked = self._loads[message.binding]
        for key in _keys(message.documents, binding.key):
            self._require("driver", "loaded-asked", asked.get(key) is False, message, detail=f"key {key}")
            asked[key] = True

    def _store(self, message: protocol.Store) -> None:
        binding = self._binding("runtime", message)
        columns = [*binding.names, EXISTS, DELETE]
        self._require("runtime", "store-columns", message.documents.column_names == columns, message)
        stored = self._stored[message.binding]
        if binding.key and len(stored) + message.documents.num_rows <= KEYS_CHECKED_MAX:
            before = len(stored)
            stored.update(_keys(message.documents, binding.key))
            self._require("runtime", "store-once", len(stored) == before + message.documents.num_rows, message)

    def _binding(self, party: Party, message: protocol.Load | protocol.Loaded | protocol.Store) -> Binding:
        assert self._spec is not None
        self._require(party, "binding", 0 <= message.binding < len(self._spec.bindings), message)
        return self._spec.bindings[message.binding]

    def _require(
        self, party: Party, rule: str, holds: bool, message: protocol.Message | str, detail: str | None = None
    ) -> None:
        if not holds:
            self._fail(party, rule, message, detail)

    def _fail(self, party: Party, rule: str, message: protocol.Message | str, detail: str | None = None) -> None:
        name = message if isinstance(message, str) else type(message).__name__
        where = f"{name} {self.phase.value}, acknowledged: {'yes' if self.acknowledged else 'no'}"
        raise ProtocolViolation(
            party,
            rule,
            f"the {party} broke the rule {rule}: {RULES[rule]}",
            detail=f"{where}{f', {detail}' if detail else ''}",
        )


def _keys(table: pa.Table, key: tuple[str, ...]) -> Iterable[tuple[Any, ...]]:
    columns = [to_python(table.column(name)) for name in key]
    return zip(*columns, strict=True)
