"""The records: statements with what they answer, in files by topic, in the format of `tests.adapter.scripts`.

The line of names says the types as well, `a:int4|b:text`. Rows are in the order that an ORDER BY outside of all
parentheses gives them, and in any order without one. NULL is `NULL`, the empty string `""`; a backslash stands before
`|`, another backslash, and what a line could not begin with otherwise; `\\n` is a line break, `\\s` a space at the end.
The data of COPY … FROM STDIN are the lines below it. Of an error a fragment of the message is enough. Marks:

| mark | meaning |
|---|---|
| `everview-only` | PostgreSQL says something else, or knows no such thing: the answer is ours |
| `no-view` | no view can be made of it: it asks the catalog, or the session |
| `no-spark` | Spark is not asked, for the same reason |
| `not-on-spark` | Spark has no equivalent, so it and the view must say that: 0A000 |
| `changes` | up to here tables are filled; from here they change, and views that were made before must follow |

A file with `changes` fills tables, changes them, and then only asks: its queries may be run in any selection. The
statements of other files build upon one another.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from tests.adapter.scripts import Step, parse

FOLDER = Path(__file__).with_name("records")
NAMES = tuple(sorted(path.stem for path in FOLDER.glob("*.sql")))
_QUERY = re.compile(r"[(\s]*(SELECT|VALUES|TABLE|WITH)\b", re.IGNORECASE)
_MODIFIES = re.compile(r"\b(INSERT\s+INTO|UPDATE|DELETE\s+FROM)\b", re.IGNORECASE)
_PIECES = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|[()]|;|order\s+by\b|.", re.IGNORECASE | re.DOTALL)
_CELLS = re.compile(r"((?:[^\\|]|\\.)*)(?:\||$)")
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?")
# Scales are static here and follow the values in PostgreSQL, which gives sixteen digits or more; floats may differ in
# the last digit by the library that computes them.
_TOLERANCE = {"numeric": Decimal("1e-15"), "float8": Decimal("2e-15"), "float4": Decimal("1e-6")}


@dataclass(frozen=True, slots=True)
class File:
    """The records of one topic: what fills the tables, what changes them, and the rest."""

    name: str
    filling: tuple[Step, ...]
    changes: tuple[Step, ...]
    rest: tuple[Step, ...]

    @property
    def is_maintained(self) -> bool:
        """Whether views can be made before the tables change."""
        return bool(self.changes)

    @property
    def steps(self) -> tuple[Step, ...]:
        """All of them."""
        return (*self.filling, *self.changes, *self.rest)


def load(name: str) -> File:
    """The file of a topic."""
    steps = parse(path_of(name).read_text())
    change = next((index for index, step in enumerate(steps) if "changes" in step.marks), None)
    if change is None:
        return File(name, (), (), tuple(steps))
    query = next(index for index, step in enumerate(steps) if is_query(step.statement))
    assert change < query, f"{name}: tables must change before they are asked"
    queries = tuple(steps[query:])
    assert all(is_query(step.statement) for step in queries), f"{name}: only queries may follow the changes"
    return File(name, tuple(steps[:change]), tuple(steps[change:query]), queries)


def path_of(name: str) -> Path:
    """Where the file of a topic is."""
    return FOLDER / f"{name}.sql"


def is_query(statement: str) -> bool:
    """Whether it is one query, and only reads."""
    if not _QUERY.match(statement) or _MODIFIES.search(statement):
        return False
    return ";" not in _PIECES.findall(statement)


def is_ordered(statement: str) -> bool:
    """Whether an ORDER BY outside of all parentheses gives the rows an order."""
    depth = 0
    for piece in _PIECES.findall(statement):
        depth += (piece == "(") - (piece == ")")
        if depth == 0 and piece[:5].lower() == "order":
            return True
    return False


def shown(value: str | None) -> str:
    """A value as a record writes it."""
    if value is None:
        return "NULL"
    if value == "":
        return '""'
    text = value.replace("\\", "\\\\").replace("|", "\\|").replace("\n", "\\n")
    if text[0] in "#@%!? " or text.startswith("> "):
        text = "\\" + text
    return text[:-1] + "\\s" if text.endswith(" ") else text


def difference(step: Step, found: Sequence[str], *, ordered: bool | None = None) -> str | None:
    """What is wrong with an answer, if anything is."""
    expected = list(step.expected)
    if expected == ["?"]:
        return None
    in_order = is_ordered(step.statement) if ordered is None else ordered
    if _agree(expected, list(found), in_order=in_order):
        return None
    return "\n    ".join([step.statement, "--- expected", *expected, "--- found", *found])


def _agree(expected: list[str], found: list[str], *, in_order: bool) -> bool:
    if not expected or not found:
        return expected == found
    if expected[0].startswith("! ") or found[0].startswith("! "):
        return len(expected) == 1 and len(found) == 1 and _same_error(expected[0], found[0])
    if ":" not in expected[0]:  # a tag, or lines of COPY, which have no header
        return expected == found if in_order else sorted(expected) == sorted(found)
    if expected[0] != found[0] or len(expected) != len(found):
        return False
    types = [column.rpartition(":")[2] for column in _cells(expected[0])]
    wanted, given = ([_cells(line) for line in lines[1:]] for lines in (expected, found))
    if not in_order:
        wanted, given = sorted(wanted, key=_sort_key), sorted(given, key=_sort_key)
    return all(_same_row(*pair, types) for pair in zip(wanted, given, strict=True))


def _same_error(expected: str, found: str) -> bool:
    """The same SQLSTATE, and the message contains what is expected of it."""
    return expected[:8] == found[:8] and expected[8:].strip() in found[8:]


def _cells(line: str) -> list[str]:
    return _CELLS.findall(line)[:-1]  # the last one is the nothing behind the last cell


def _sort_key(cells: list[str]) -> list[str]:
    """Numbers are rounded, so that those which are equal but for their last digits come to the same place."""
    return [f"{float(cell):.9g}" if _NUMBER.fullmatch(cell) else cell for cell in cells]


def _same_row(expected: list[str], found: list[str], types: Sequence[str]) -> bool:
    if not len(expected) == len(found) == len(types):
        return False
    return all(_same_value(*cells) for cells in zip(expected, found, types, strict=True))


def _same_value(expected: str, found: str, type_name: str) -> bool:
    if expected == found:
        return True
    tolerance = _TOLERANCE.get(type_name)
    if tolerance is None or not (_NUMBER.fullmatch(expected) and _NUMBER.fullmatch(found)):
        return False
    wanted, given = Decimal(expected), Decimal(found)
    return abs(wanted - given) <= max(abs(wanted), Decimal(1) / 10) * tolerance
