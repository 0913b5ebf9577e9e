"""Guards of APPLY REPLACEMENT: limits to what a replacement may change.

They are options of the statement. A replacement that is applied WHEN HYDRATED stores them as its own options.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from everview.adapter.errors import INVALID_PARAMETER_VALUE, OBJECT_NOT_READY
from everview.compute.handover import Handover
from everview.compute.sql.errors import SqlError

ROWS_MAX = 2**63 - 1
# As WITH (…) is read: in an option of two bare words the second is the value.
_NAMES = {("forward", "time"): "FORWARD TIME", ("allow", "errors"): "ALLOW ERRORS"}
EXISTING = "TIMEOUT, FORWARD TIME, ALLOW ERRORS and MAX ROWS"


@dataclass(frozen=True, slots=True)
class Guards:
    """`forward`: times that neither view knows may be skipped. `allow_errors`: the replacement may fail.

    `rows_max`: the replacement changes at most so many rows.
    """

    forward: bool = False
    allow_errors: bool = False
    rows_max: int | None = None

    @staticmethod
    def of(options: Mapping[str, str]) -> Guards:
        """The guards that options of WITH ask for."""
        rows = options.get("max rows")
        if rows is not None and not (rows.isdigit() and int(rows) <= ROWS_MAX):
            raise SqlError(
                INVALID_PARAMETER_VALUE, f'invalid MAX ROWS: "{rows}"', hint="a whole number of rows, such as 1000"
            )
        return Guards(
            options.get("forward") == "time", options.get("allow") == "errors", None if rows is None else int(rows)
        )


def is_guard(name: str, value: str) -> bool:
    return name == "max rows" or (name, value) in _NAMES


def shown_guards(options: Mapping[str, str]) -> list[str]:
    return [
        f"MAX ROWS {value}" if name == "max rows" else _NAMES[name, value] for name, value in sorted(options.items())
    ]


def check_errors(guards: Guards, replacement: str, target: str, error: tuple[str, str] | None) -> None:
    """Raise if the replacement fails and may not be applied then."""
    if error is None or guards.allow_errors:
        return
    state, message = error
    raise SqlError(
        OBJECT_NOT_READY,
        f'replacement "{replacement}" cannot be applied to "{target}" because it fails: {message}',
        detail=f'reading "{target}" would fail with SQLSTATE {state} from then on, while there are such rows',
        hint=f'SELECT from "{replacement}" fails in the same way; WITH (ALLOW ERRORS) applies it all the same',
    )


def check_rows(guards: Guards, replacement: str, target: str, added: int, removed: int) -> None:
    """Raise if the replacement changes too many rows."""
    if guards.rows_max is None or added + removed <= guards.rows_max:
        return
    raise SqlError(
        OBJECT_NOT_READY,
        f'replacement "{replacement}" cannot be applied to "{target}" because it changes {added + removed} rows,'
        f" more than MAX ROWS {guards.rows_max}",
        detail=f"it adds {added} rows and removes {removed}",
        hint=f'SHOW REPLACEMENT DIFF "{replacement}" lists them',
    )


def check(guards: Guards, replacement: str, target: str, handover: Handover) -> None:
    """Raise if the handover that is about to be committed violates a guard."""
    check_errors(guards, replacement, target, handover.error)
    check_rows(guards, replacement, target, handover.rows_added, handover.rows_removed)
