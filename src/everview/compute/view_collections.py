"""The collections of a view: its output, its arrangements and its errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from everview.compute.capabilities import errors_id, starting_time, with_errors
from everview.compute.ir.types import SqlType
from everview.compute.pending_updates import state_id
from everview.compute.stored_state import schema_of
from everview.compute.view import ERROR_SCHEMA, View
from everview.storage.contract import Clone, Create, GlobalId, ReadCapability
from everview.storage.environment import Environment


def make_collections(
    environment: Environment, id: GlobalId, schema: Sequence[SqlType], view: View, inputs: Sequence[ReadCapability]
) -> tuple[list[ReadCapability], list[Any]]:
    """Make the collections of a view, and clones of the read capabilities on its inputs and their errors."""
    wanted = with_errors(environment, inputs)
    start = starting_time(wanted)
    creates = [Create(id, schema_of(schema), at=start)]
    for each in view.program.kept:
        key = [f"c{index}" for index in each.key] or None
        creates.append(Create(state_id(id, each), schema_of(each.schema), key=key, at=start))
    creates.append(Create(errors_id(id), schema_of(ERROR_SCHEMA), at=start))
    return wanted, environment.commit(*map(Clone, wanted), *creates)
