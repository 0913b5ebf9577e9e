"""The functions that exist only over a window, by type; evaluating them is the engine's."""

from __future__ import annotations

from dataclasses import dataclass

from everview.compute.functions.contract import Result
from everview.compute.functions.naming import ANY
from everview.compute.ir.types import FLOAT8, INT4, INT8, SqlType


@dataclass(frozen=True, slots=True)
class WindowOnly:
    """One overload. `frame` says whether it looks at the frame (first_value) or at the whole partition (rank)."""

    key: str
    name: str
    args: tuple[SqlType, ...]
    result: Result
    frame: bool = False


WINDOWS = [
    *(WindowOnly(f"{name}()", name, (), INT8) for name in ("row_number", "rank", "dense_rank")),
    *(WindowOnly(f"{name}()", name, (), FLOAT8) for name in ("percent_rank", "cume_dist")),
    WindowOnly("ntile(int4)", "ntile", (INT4,), INT4),
    *(
        WindowOnly(f"{name}({','.join(('any', 'int4', 'any')[: len(args)])})", name, args, lambda types: types[0])
        for name in ("lag", "lead")
        for args in ((ANY,), (ANY, INT4), (ANY, INT4, ANY))
    ),
    *(
        WindowOnly(f"{name}(any)", name, (ANY,), lambda types: types[0], frame=True)
        for name in ("first_value", "last_value")
    ),
    WindowOnly("nth_value(any,int4)", "nth_value", (ANY, INT4), lambda types: types[0], frame=True),
]
