"""Window functions that look at where a row stands in its partition, rather than aggregate a frame.

Each is given the arguments of every row, the partition and the frame, and gives the value at a position.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from everview.compute.functions.contract import Failure
from everview.compute.interpreter.partition import Partition
from everview.compute.rows.collection import Row

FrameOf = Callable[[int], Sequence[int]]
WindowEvaluator = Callable[[Partition, Sequence[Row], FrameOf, int], Any]


def _ntile(partition: Partition, args: Sequence[Row], frame: FrameOf, position: int) -> int | None:
    """The first buckets are larger by one where the rows do not divide; how many there are, the first row says."""
    buckets: int | None = args[0][0]
    if buckets is None:
        return None
    if buckets <= 0:
        raise Failure("22014", "argument of ntile must be greater than zero")
    size, larger = divmod(len(partition.rows), buckets)
    if position < larger * (size + 1):
        return position // (size + 1) + 1
    return larger + (position - larger * (size + 1)) // size + 1


def _shifted(direction: int) -> WindowEvaluator:
    def evaluate(partition: Partition, args: Sequence[Row], frame: FrameOf, position: int) -> Any:
        _, *rest = args[position]
        offset = rest[0] if rest else 1
        if offset is None:
            return None
        target = position + direction * offset
        if 0 <= target < len(args):
            return args[target][0]
        return rest[1] if len(rest) > 1 else None

    return evaluate


def _nth_value(partition: Partition, args: Sequence[Row], frame: FrameOf, position: int) -> Any:
    wanted = args[position][1]
    if wanted is None:
        return None
    if wanted <= 0:
        raise Failure("22016", "argument of nth_value must be greater than zero")
    inside = frame(position)
    return args[inside[wanted - 1]][0] if wanted <= len(inside) else None


WINDOW_FUNCTIONS: Mapping[str, WindowEvaluator] = {
    "row_number": lambda partition, args, frame, position: position + 1,
    "rank": lambda partition, args, frame, position: partition.peers(position).start + 1,
    "dense_rank": lambda partition, args, frame, position: partition.group[position] + 1,
    "percent_rank": lambda partition, args, frame, position: (
        partition.peers(position).start / max(1, len(partition.rows) - 1)
    ),
    "cume_dist": lambda partition, args, frame, position: partition.peers(position).stop / len(partition.rows),
    "ntile": _ntile,
    "lag": _shifted(-1),
    "lead": _shifted(1),
    "first_value": lambda partition, args, frame, position: args[at[0]][0] if (at := frame(position)) else None,
    "last_value": lambda partition, args, frame, position: args[at[-1]][0] if (at := frame(position)) else None,
    "nth_value": _nth_value,
}


def window_function(key: str) -> WindowEvaluator | None:
    """Find a window function by its name, which argument types may follow; None if it is an aggregate."""
    return WINDOW_FUNCTIONS.get(key.partition("(")[0])
