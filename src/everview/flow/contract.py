"""What a materialization is, and what it promises.

A materialization delivers collections into an outside system: one *binding* for each collection and place there (a
table, a topic, a folder). Where there is a checkpoint c for a key's place, what the system holds under that key is
what the collection makes of it at the times before c, no more and no less: *checkpoint and view state always commit
together*. What "makes of it" means is the binding's:

* a *view*: the collection has at most one row under each key, and the system holds that row: inserts, updates, deletes;
* *reduced*: the rows under a key are documents, reduced field by field into one that is loaded, updated and stored;
* *delta updates*: nothing is loaded; each transaction sends what it alone adds up to, under each key or, without a
  key, row by row, which only an append-only collection can be.

All bindings of a materialization are at one time: every transaction takes all of them from l to u.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from everview.compute.ir.types import SqlType, outside_type
from everview.flow.reduction import LAST_WRITE_WINS, Reduction
from everview.storage.contract import GlobalId

# Columns of stored documents beside the fields: whether the endpoint has the key, and whether it is to be removed.
EXISTS, DELETE = "_exists", "_delete"


@dataclass(frozen=True, slots=True)
class Field:
    """One column of a binding, by the name it has at the endpoint."""

    name: str
    type: SqlType
    reduction: Reduction = LAST_WRITE_WINS


@dataclass(frozen=True)
class Binding:
    """One collection and where it goes; `resource` says where, in the driver's own terms."""

    collection: GlobalId
    fields: tuple[Field, ...]
    key: tuple[str, ...]
    resource: Mapping[str, Any] = field(default_factory=dict)
    delta_updates: bool = False
    places: tuple[int, ...] = ()  # which columns of the collection the fields are; by default the first
    title: str = ""  # the collection's name, for those who see it by name

    @cached_property
    def names(self) -> list[str]:
        """The names of all fields, in the order of the collection's columns."""
        return [each.name for each in self.fields]

    @cached_property
    def key_fields(self) -> tuple[Field, ...]:
        """The fields of the key, in the key's order."""
        by_name = {each.name: each for each in self.fields}
        return tuple(by_name[name] for name in self.key)

    @cached_property
    def value_fields(self) -> tuple[Field, ...]:
        return tuple(each for each in self.fields if each.name not in self.key)

    @cached_property
    def reduces(self) -> bool:
        """Whether rows under one key are reduced to one, rather than being one."""
        return any(each.reduction != LAST_WRITE_WINS for each in self.fields)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of documents: all fields."""
        return pa.schema([(each.name, outside_type(each.type)) for each in self.fields])

    @cached_property
    def key_schema(self) -> pa.Schema:
        return pa.schema([(each.name, outside_type(each.type)) for each in self.key_fields])

    @cached_property
    def store_schema(self) -> pa.Schema:
        """The columns of documents to store."""
        return self.schema.append(pa.field(EXISTS, pa.bool_())).append(pa.field(DELETE, pa.bool_()))


@dataclass(frozen=True)
class Spec:
    """A whole materialization. What its endpoint is reached by is not shown: it may hold secrets.

    `described` is how a foreign driver was told of it when it was applied, as `version`; without the config.
    """

    name: str
    driver: str
    bindings: tuple[Binding, ...]
    config: Mapping[str, Any] = field(default_factory=dict, repr=False)
    described: Mapping[str, Any] | None = field(default=None, repr=False)
    version: int = 0
