"""Random expressions. The grammar is `phrases.txt`: forms for each type, whose holes are filled by expressions again.

`{int4}` is an expression of that type, `{same}` one of the type wanted, `{num}` one of any number. `{scalar:int4}` is a
query of one row, `{query:int4}` one of any number, `{exists}` one with any columns.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.compute.sql.words import VALUES, WRITTEN, literal, quoted

NUMBERS = ("int2", "int4", "int8", "numeric", "float8")
HASHED = ("int4", "int8", "numeric", "float8", "text", "varchar", "bool", "date", "timestamp", "ints", "texts", "jsonb")
# What may be compared, grouped and sorted. Not intervals: equal ones may look different (a day, 24 hours).
KINDS = (*HASHED, "int2", "interval")


@dataclass(frozen=True)
class Column:
    """A column in scope: how it is written, and its type.

    `table` is None for what USING has merged; what it was merged of is `hidden`, and found only with its table.
    """

    table: str | None
    name: str
    kind: str
    hidden: bool = False


@dataclass(frozen=True)
class Env:
    """What an expression may speak of: columns here, of the queries around, and, where it may aggregate, `rows`."""

    columns: tuple[Column, ...] = ()
    tables: tuple[str, ...] = ()  # the names in front of columns, which hide the same names around
    keys: tuple[tuple[str, str], ...] = ()  # expressions that are grouped by: text and type
    rows: Env | None = None  # what aggregates may speak of
    around: Env | None = None
    windows: bool = False
    total: str = ""  # partitions and order of all windows in which the order of equal rows shows
    named: tuple[str, ...] = ()  # windows of the WINDOW clause
    ctes: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    qualified: bool = False  # whether names must be
    groups: tuple[str, ...] = ()  # what grouping() may be asked about

    def inside(self) -> Env:
        """As a query inside sees it."""
        return replace(self, keys=(), rows=None, windows=False, total="", named=(), groups=())


def _read(text: str) -> dict[str, tuple[str, ...]]:
    """The forms below each heading."""
    lines = [line for line in text.splitlines() if line and not line.startswith("--")]
    places = [index for index, line in enumerate(lines) if line.startswith("[")]
    ends = [*places[1:], len(lines)]
    return {lines[a][1:-1]: tuple(lines[a + 1 : b]) for a, b in zip(places, ends, strict=True)}


FORMS = _read(Path(__file__).with_name("phrases.txt").read_text())
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "!=")
HOLE = re.compile(r"\{([a-z0-9]+)(?::([a-z0-9,]+))?(:sorted)?\}")


class Phrases:
    """Expressions with one source of randomness; `query` gives the text of a query of columns of these types."""

    def __init__(self, rng: random.Random, query: Callable[..., str]) -> None:
        self.rng = rng
        self._query = query

    def any_kind(self) -> str:
        """A type, mostly one of those that most forms are about."""
        return self.rng.choice(["int4", "text", "int4", "bool", "numeric", self.rng.choice(KINDS)])

    def hashed(self) -> str:
        """A type whose values may be compared, grouped and sorted, mostly one of the usual ones."""
        return self.rng.choice(["int4", "int4", "text", self.rng.choice(HASHED)])

    def of(self, kind: str, env: Env, depth: int) -> str:
        """An expression of this type."""
        if env.windows and self.rng.random() < 0.1 and f"window {kind}" in FORMS:
            return self.fill(self.rng.choice(FORMS[f"window {kind}"]), kind, replace(env, windows=False), depth - 1)
        if env.rows is not None and (self.rng.random() < 0.4 or depth <= 0) and self.aggregates(kind):
            return self.aggregate(kind, env, depth)
        if env.groups and kind == "int4" and self.rng.random() < 0.4:
            return f"grouping({', '.join(self.rng.sample(env.groups, self.rng.randint(1, len(env.groups))))})"
        if depth <= 0 or self.rng.random() < 0.35:
            return self.leaf(kind, env)
        forms = FORMS[kind] * 2 + FORMS["same"] + (FORMS["sorted"] if kind in HASHED and kind != "jsonb" else ())
        form = self.rng.choice(forms)
        text = self.fill(form, kind, env, depth - 1)
        # Mostly in parentheses: without them precedence has a say. Predicates cannot follow one another.
        bare = kind != "bool" or re.match(r"NOT \{|\{bool\} (AND|OR) ", form) is not None
        return text if bare and self.rng.random() < 0.15 else f"({text})"

    def formed(self, kind: str, env: Env, depth: int) -> str:
        """An expression that is no column and no literal, as what is sorted or grouped by must not be one."""
        return f"({self.fill(self.rng.choice(FORMS[kind]), kind, env, depth)})"

    def aggregates(self, kind: str) -> bool:
        """Whether there are aggregates of this type."""
        return f"aggregate {kind}" in FORMS

    def aggregate(self, kind: str, env: Env, depth: int) -> str:
        """An aggregate of this type over the rows of a group, or of all of them.

        It speaks of a column of these rows: one that speaks only of a query around is an aggregate of that query.
        """
        assert env.rows is not None
        rows = replace(env.rows, windows=False, rows=None, groups=())
        # The last form has no query inside, which might speak of one around by way of a WITH.
        forms = FORMS[f"aggregate {kind}"]
        plain = [form for form in forms if not re.search("scalar|query|exists", form)]
        for form, around, deep in (
            (self.rng.choice(forms), rows, 1),
            (self.rng.choice(forms), replace(rows, around=None), 1),
            (self.rng.choice(plain), replace(rows, around=None), 0),
        ):
            text = self.fill(form, kind, around, min(depth - 1, deep))
            if not form.startswith("round(") and self.rng.random() < 0.2:
                text += f" FILTER (WHERE {self.of('bool', around, deep)})"
            if any(f"{table}." in text for table in rows.tables):
                break
        return text

    def leaf(self, kind: str, env: Env) -> str:
        """A column here or around, or a literal."""
        own = [self.written(each, env) for each in env.columns if each.kind == kind]
        own += [text for text, each in env.keys if each == kind]
        if own and self.rng.random() < 0.75:
            return self.rng.choice(own)
        outer = self.outer(kind, env)
        if outer and self.rng.random() < 0.7:
            return self.rng.choice(outer)
        if self.rng.random() < 0.06:
            return f"NULL::{WRITTEN[kind]}"
        return literal(self.rng, kind)

    def outer(self, kind: str, env: Env) -> list[str]:
        """Columns of the queries around, as far as no table in between has the same name."""
        hidden = set(env.tables)
        level, found = env.around, []
        while level is not None:
            found += [
                f"{each.table}.{ident(each.name)}"
                for each in level.columns
                if each.kind == kind and each.table is not None and each.table not in hidden
            ]
            hidden |= set(level.tables)
            level = level.around
        return found

    def written(self, column: Column, env: Env) -> str:
        """A column by its name, qualified where that is needed and sometimes where it is not."""
        alone = sum(each.name == column.name for each in env.columns) == 1
        if column.table is None or (
            alone and not env.qualified and env.rows is None and not env.keys and self.rng.random() < 0.4
        ):
            return ident(column.name)
        return f"{column.table}.{ident(column.name)}"

    def fill(self, form: str, kind: str, env: Env, depth: int) -> str:
        """A form with its holes filled."""
        one = self.rng.choice(["int4", "text", "date", "numeric", "bool"])  # the same in all holes that say so
        text = HOLE.sub(lambda match: self._hole(match, kind, one, env, depth), form)
        return text

    def _hole(self, match: re.Match[str], same: str, one: str, env: Env, depth: int) -> str:
        word, detail = match[1], match[2]
        if detail is not None and word in ("scalar", "query"):
            kinds = [same if each == "same" else each for each in detail.split(",")]
            text = self._query(env.inside(), kinds, depth, scalar=word == "scalar", ordered=bool(match[3]))
            return f"({text})" if word == "scalar" else text
        match word:
            case "same":
                return self.of(same, env, depth)
            case "type":
                return WRITTEN[same] if same != "varchar" else "varchar(3)"
            case "any":
                return self.of(self.any_kind(), env, depth)
            case "one":
                return self.of(one, env, depth)
            case "num":
                return self.of(self.rng.choice(NUMBERS), env, depth)
            case "compare":
                return self.rng.choice(COMPARISONS)
            case "exists":
                return self._query(env.inside(), None, depth)
            case "quoted":
                return quoted(detail, VALUES[detail](self.rng))
            case "plain":  # where no aggregates may stand
                return self.of(detail, replace(env, rows=None, groups=()), depth)
            case "local":
                return self._local(detail, env)
            case "all":
                return ", ".join(self.everything(env)) or "1"
            case "over" | "total":
                return self.window(env, total=word == "total")
            case _:
                return self.of(word, env, depth)

    def _local(self, kind: str | None, env: Env) -> str:
        found = [self.written(each, env) for each in env.columns if kind in (None, each.kind)]
        return self.rng.choice(found) if found else literal(self.rng, kind or "int4")

    def everything(self, env: Env) -> list[str]:
        """Sort keys that leave nothing open, in some order and direction."""
        plain = [self.written(each, env) for each in env.columns] + [text for text, _ in env.keys]
        chosen = list(dict.fromkeys(plain))
        self.rng.shuffle(chosen)
        return [self.directed(each) for each in chosen]

    def directed(self, key: str) -> str:
        """A sort key with a direction."""
        return key + self.rng.choice(["", "", " ASC", " DESC", " NULLS FIRST", " DESC NULLS LAST"])

    def window(self, env: Env, *, total: bool) -> str:
        """What stands behind OVER.

        Equal rows are in some order, which shows where two windows sort them differently. So in one query there is only
        one order of all columns, which is sorted by once.
        """
        if total:
            frame = self.rng.choice(["", "", f"ROWS {self._bounds()}", f"GROUPS {self._bounds()}"])
            return f"({env.total} {self._excluding(frame)})" if env.total.count("ORDER") else "()"
        if env.named and self.rng.random() < 0.4:
            return self.rng.choice(env.named)
        return f"({self.window_definition(env)})"

    def total_order(self, env: Env) -> str:
        """Partitions, and an order of all columns."""
        parts = [f"PARTITION BY {self.leaf(self.hashed(), env)}"] if self.rng.random() < 0.5 else []
        everything = self.everything(env)
        if env.groups:  # what is NULL because it is not grouped by is not what is NULL in the rows
            everything.append(f"grouping({', '.join(env.groups)})")
        return " ".join([*parts, *([f"ORDER BY {', '.join(everything)}"] if everything else [])])

    def window_definition(self, env: Env) -> str:
        """The partitions, order and frame of a window in which equal rows see the same."""
        parts, frame = [], ""
        kinds = [kind for kind in HASHED if kind not in ("jsonb", "ints", "texts")]
        if self.rng.random() < 0.5:
            keys = [self.of(self.rng.choice(kinds), env, 1) for _ in range(self.rng.randint(1, 2))]
            parts.append(f"PARTITION BY {', '.join(keys)}")
        if self.rng.random() < 0.7:
            parts.append(f"ORDER BY {self.directed(self._sort_key(env))}")
            frame = self.rng.choice(["", "", f"GROUPS {self._bounds()}", "RANGE UNBOUNDED PRECEDING"])
            numbers = [self.written(each, env) for each in env.columns if each.kind in ("int4", "int8", "numeric")]
            if numbers and self.rng.random() < 0.3:
                parts[-1] = f"ORDER BY {self.directed(self.rng.choice(numbers))}"
                frame = f"RANGE {self._bounds()}"
        return " ".join([*parts, *([self._excluding(frame)] if frame else [])])

    def _excluding(self, frame: str) -> str:
        if "BETWEEN" not in frame or self.rng.random() < 0.7:
            return frame
        return frame + self.rng.choice(
            [" EXCLUDE CURRENT ROW", " EXCLUDE TIES", " EXCLUDE GROUP", " EXCLUDE NO OTHERS"]
        )

    def _sort_key(self, env: Env) -> str:
        return self.of(self.rng.choice(["int4", "text", "date", "numeric", "bool"]), env, 1)

    def _bounds(self) -> str:
        starts = ("UNBOUNDED PRECEDING", "2 PRECEDING", "1 PRECEDING", "CURRENT ROW")
        ends = ("CURRENT ROW", "1 FOLLOWING", "2 FOLLOWING", "UNBOUNDED FOLLOWING")
        return f"BETWEEN {self.rng.choice(starts)} AND {self.rng.choice(ends)}"


def qualified(column: Column) -> str:
    """A column with its table, as far as it has one."""
    return ident(column.name) if column.table is None else f"{column.table}.{ident(column.name)}"


def ident(name: str) -> str:
    """A name as it is written: in quotes where it needs them."""
    return name if re.fullmatch("[a-z_][a-z0-9_]*", name) else f'"{name}"'
