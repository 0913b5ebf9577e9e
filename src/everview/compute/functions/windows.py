"""The functions that exist only over a window, by type; evaluating them is the engine's."""

from __future__ import annotations

from dataclasses import dataclass

from everview.compute.functions.contract import ResultType
from everview.compute.functions.signatures import signatures
from everview.compute.ir.types import SqlType


@dataclass(frozen=True, slots=True)
class WindowOnly:
    """One overload. `frame` says whether it looks at the frame (first_value) or at the whole partition (rank)."""

    key: str
    name: str
    args: tuple[SqlType, ...]
    result: ResultType
    frame: bool = False


_PARTITION = ("row_number, rank, dense_rank() -> int8", "percent_rank, cume_dist() -> float8", "ntile(int4) -> int4")
_FRAME = ("first_value, last_value(any) -> $1", "nth_value(any, int4) -> $1")
WINDOWS = [
    WindowOnly(each.key, each.name, each.args, each.results[0], frame=text in _FRAME)
    for text in (*_PARTITION, "lag, lead(any [, int4 [, any]]) -> $1", *_FRAME)
    for each in signatures(text)
]
