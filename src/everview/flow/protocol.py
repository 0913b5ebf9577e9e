"""The messages of the materialization protocol, as values.

Requests come from the runtime and are named in the imperative, responses come from the driver and are named in the
past tense. Loads and stores carry many documents at once, as Arrow tables: a key is still loaded at most once in a
transaction. What may follow what is said, and checked, in `conversation`.

    Open → Opened, then for every transaction:
    Acknowledge ⇄ Acknowledged (in either order), Load*, Flush → Loaded*, Flushed, Store*, StartCommit → StartedCommit

`Flush` waits for `Acknowledged`: until then the next transaction is prepared behind the commit of the last one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa

from everview.flow.contract import Spec
from everview.flow.keyrange import KeyRange
from everview.flow.lineage import Owner

DriverState: TypeAlias = Mapping[str, Any]  # a JSON object
# What a foreign driver hears of the last changes of state, of all ranges: merge patches, and NULL for a new beginning.
Patches: TypeAlias = tuple[DriverState | None, ...]


@dataclass(frozen=True, slots=True)
class StateUpdate:
    """A change of the driver's state: a JSON merge patch, or a whole new state."""

    updated: DriverState = field(default_factory=dict)
    merge_patch: bool = True

    @property
    def patches(self) -> Patches:
        """The change as merge patches."""
        return (self.updated,) if self.merge_patch else (None, self.updated)


@dataclass(frozen=True, slots=True)
class Open:
    """Begin a conversation about one range of keys; `state` is the driver's, as last committed.

    A driver that keeps no checkpoint judges by `owner` whether another copy of the environment has delivered since.
    """

    spec: Spec
    range: KeyRange
    state: DriverState = field(default_factory=dict)
    owner: Owner | None = None


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """The last transaction is committed to the recovery log, with these changes of state of `StartedCommit`."""

    patches: Patches = ()


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    """Fetch the documents with these keys, those that there are."""

    binding: int
    keys: pa.Table


@dataclass(frozen=True, slots=True)
class Flush:
    """All loads of the transaction have been sent, and it will end at `end`; `patches` came with `Acknowledged`."""

    patches: Patches = ()
    end: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Store:
    """Store documents: all fields, and for each whether the endpoint has its key and whether it is to be removed.

    `transaction` names the transaction among those of the materialization.
    """

    binding: int
    documents: pa.Table
    transaction: str = ""


@dataclass(frozen=True, slots=True)
class StartCommit:
    """All stores have been sent; commit them, with the checkpoint where the endpoint is authoritative.

    `patches` came with `Flushed`.
    """

    checkpoint: str
    patches: Patches = ()


@dataclass(frozen=True, slots=True)
class Opened:
    """The endpoint is ready; `checkpoint` is its own, where it is authoritative, else None.

    With `disable_load_optimization` it is asked for every key that is stored, also where none can be there yet.
    """

    checkpoint: str | None = None
    disable_load_optimization: bool = False


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The last transaction is committed at the endpoint. A state that comes with it may be lost."""

    state: StateUpdate | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """Documents that were asked for."""

    binding: int
    documents: pa.Table


@dataclass(frozen=True, slots=True)
class Flushed:
    """All documents that exist have been loaded."""

    state: StateUpdate | None = None


@dataclass(frozen=True, slots=True)
class StartedCommit:
    """All stores are processed; `state` is committed to the recovery log together with the checkpoint."""

    state: StateUpdate | None = None


Request: TypeAlias = Open | Acknowledge | Load | Flush | Store | StartCommit
Response: TypeAlias = Opened | Acknowledged | Loaded | Flushed | StartedCommit
Message: TypeAlias = Request | Response
REQUESTS = (Open, Acknowledge, Load, Flush, Store, StartCommit)
