"""COUNTER: 1, 2, 3, ..., one more at each tick; with a limit, the oldest goes when a new one comes."""

from __future__ import annotations

from dataclasses import dataclass

from everview.compute.ir.types import INT8
from everview.sources.contract import Table
from everview.sources.generator.contract import Changes


@dataclass(frozen=True, slots=True)
class Counter:
    """Counts; keeps the last `keep` numbers if given."""

    keep: int | None = None

    @property
    def tables(self) -> tuple[Table, ...]:
        """One table, of one column."""
        return (Table.of("", ("counter", INT8)),)

    def changes(self, tick: int) -> Changes:
        """One number more, and perhaps one less."""
        if tick == 0:
            return {"": []}
        rows = [((tick,), 1)]
        if self.keep is not None and tick > self.keep:
            rows.append(((tick - self.keep,), -1))
        return {"": rows}
