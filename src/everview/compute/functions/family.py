"""How a family of functions is written down: one `add` for each overload."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from everview.compute.functions.contract import Arguments, Function, Result
from everview.compute.functions.naming import key_of
from everview.compute.functions.spark_sql import Renderer
from everview.compute.ir.types import SqlType


class Family(list[Function]):
    """Functions that belong together."""

    def add(
        self,
        name: str,
        args: tuple[SqlType, ...],
        result: Result,
        evaluate: Callable[..., Any],
        spark: str | Renderer,
        *,
        word: str | None = None,
        strict: bool = True,
        fails: bool = False,
        typed: bool = False,
        variadic: bool = False,
        volatile: bool = False,
        safe: Callable[[Arguments], bool] | None = None,
    ) -> None:
        """One more overload; its key begins with `word`, for an operator's name is no word."""
        self.append(
            Function(
                key_of(word or name, args, variadic=variadic),
                name,
                args,
                result,
                evaluate,
                spark,
                strict=strict,
                fails=fails,
                typed=typed,
                variadic=variadic,
                volatile=volatile,
                safe=safe,
            )
        )
