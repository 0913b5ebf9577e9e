"""Random FROM clauses: tables, queries, values and table functions, joined in every way, lateral or not."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.compute.sql.phrases import Column, Env, Phrases, ident
from tests.compute.sql.words import TABLES, WRITTEN, literal

# Table functions and the types of their columns.
FUNCTIONS = (
    ("generate_series(1, least({int4}, 3))", ("int4",)),
    ("generate_series(greatest({int4}, 0), 4, 2)", ("int4",)),
    ("generate_series({date}::timestamp, {date}::timestamp + interval '2 days', '1 day')", ("timestamp",)),
    ("unnest({ints})", ("int4",)),
    ("unnest({texts})", ("text",)),
    ("unnest({ints}, {texts})", ("int4", "text")),
    ("jsonb_array_elements(jsonb_build_array({int4}, {text}, {bool}))", ("jsonb",)),
    ("jsonb_array_elements_text(jsonb_build_array({int4}, {text}))", ("text",)),
    ("jsonb_each(jsonb_build_object('a', {int4}, 'b', {text}))", ("text", "jsonb")),
    ("jsonb_object_keys(jsonb_build_object('a', {int4}, 'b', {text}))", ("text",)),
    ("string_to_table({text}, 'b')", ("text",)),
    ("regexp_split_to_table({text}, 'a')", ("text",)),
)
NUMBERS = ("int2", "int4", "int8", "numeric", "float8")
ITEMS_MAX = 3


@dataclass(frozen=True)
class Query:
    """The text of a query, and names and types of its columns."""

    text: str
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Source:
    """A part of a FROM clause: its text, the columns that it gives, and the tables that it names."""

    text: str
    columns: tuple[Column, ...]
    tables: tuple[str, ...]


class Clauses:
    """FROM clauses with one source of randomness; `query` gives a query in an environment."""

    def __init__(self, rng: random.Random, phrases: Phrases, query: Callable[..., Query]) -> None:
        self.rng = rng
        self._phrases = phrases
        self._query = query
        self._numbers = itertools.count(1)

    def source(self, env: Env, depth: int) -> Source:
        """What stands behind FROM, in a query that `env` is around."""
        count = self.rng.choice([1, 1, 1, 2, 2, ITEMS_MAX]) if depth > 0 else self.rng.choice([1, 1, 1, 2])
        found = self._joined(env, Source("", (), ()), count, depth)
        if count < ITEMS_MAX and self.rng.random() < 0.12:
            more = self._item(env, found, depth - 1, lateral=self.rng.random() < 0.5)
            found = Source(f"{found.text}, {more.text}", found.columns + more.columns, found.tables + more.tables)
        return found

    def environment(self, env: Env, source: Source) -> Env:
        """What a query over this FROM clause may speak of."""
        return Env(columns=source.columns, tables=source.tables, around=env, ctes=env.ctes)

    def _joined(self, env: Env, before: Source, count: int, depth: int) -> Source:
        """A tree of joins with this many items, behind what a comma separates it from."""
        left = self._item(env, before, depth - 1, lateral=bool(before.columns) and self.rng.random() < 0.3)
        while count > 1:
            kind = self.rng.choice(["JOIN", "INNER JOIN", "LEFT JOIN", "LEFT OUTER JOIN", "RIGHT JOIN", "FULL JOIN"])
            kind = self.rng.choice([kind, kind, kind, "CROSS JOIN"])
            taken = 1
            if count > 2 and self.rng.random() < 0.4:
                taken = 2
                right = self._joined(env, Source("", (), left.tables), taken, depth)
                right = replace(right, text=f"({right.text})")
            else:
                possible = kind not in ("RIGHT JOIN", "FULL JOIN")
                around = Source("", before.columns + left.columns, before.tables + left.tables)
                right = self._item(env, around, depth - 1, lateral=possible and self.rng.random() < 0.3)
            left = self._join(env, left, kind, right, depth)
            count -= taken
        return left

    def _join(self, env: Env, left: Source, kind: str, right: Source, depth: int) -> Source:
        tables = left.tables + right.tables
        if kind == "CROSS JOIN":
            return Source(f"{left.text} {kind} {right.text}", left.columns + right.columns, tables)
        common = self._common(left, right)
        if common is not None and self.rng.random() < 0.35:
            if self.rng.random() < 0.3:
                return Source(f"{left.text} NATURAL {kind} {right.text}", merged(left, right, common), tables)
            chosen = self.rng.sample(common, self.rng.randint(1, len(common)))
            names = ", ".join(ident(name) for name in chosen)
            return Source(f"{left.text} {kind} {right.text} USING ({names})", merged(left, right, chosen), tables)
        both = replace(self.environment(env, left), columns=left.columns + right.columns, tables=tables)
        text = f"{left.text} {kind} {right.text} ON {self._condition(both, left, right, depth)}"
        return Source(text, left.columns + right.columns, tables)

    def _common(self, left: Source, right: Source) -> list[str] | None:
        """Names that both sides have once and with types that can be compared; None if some cannot."""
        ours, theirs = (set(names(side)) for side in (left, right))
        shared = sorted(ours & theirs)
        for name in shared:
            if names(left).count(name) > 1 or names(right).count(name) > 1:
                return None
            kinds = {
                each.kind for side in (left, right) for each in side.columns if each.name == name and not each.hidden
            }
            if len(kinds) > 1 and not kinds <= {"int4", "int8"}:
                return None
        return shared or None

    def _condition(self, both: Env, left: Source, right: Source, depth: int) -> str:
        """Mostly an equality of two columns, with more beside it or not."""
        pairs = [
            f"{a.table}.{ident(a.name)} {self.rng.choice(['=', '=', '=', '<', '>='])} {b.table}.{ident(b.name)}"
            for a in left.columns
            for b in right.columns
            if a.table and b.table and (a.kind == b.kind != "interval" or {a.kind, b.kind} <= set(NUMBERS))
        ]
        more = self._phrases.of("bool", both, min(depth, 2))
        if not pairs or self.rng.random() < 0.15:
            return more if self.rng.random() < 0.9 else "true"
        chosen = self.rng.choice(pairs)
        return chosen if self.rng.random() < 0.6 else f"{chosen} AND {more}"

    def _item(self, env: Env, before: Source, depth: int, *, lateral: bool) -> Source:
        """One item, which may speak of those before it if it is lateral."""
        # In PostgreSQL a name is also ambiguous if another item has it that cannot be spoken of from here.
        around = replace(self.environment(env, before), qualified=True) if lateral else env
        alias = self._alias(env, before)
        draw = self.rng.random()
        if draw < 0.1:
            return self._function(around if lateral else Env(around=env, tables=before.tables, ctes=env.ctes), alias)
        if draw < 0.34 and depth > 0:
            query = self._query(around, None, depth)
            word = "LATERAL " if lateral or self.rng.random() < 0.03 else ""
            return self._named(f"{word}({query.text})", alias, query.columns, renamed=self.rng.random() < 0.4)
        if draw < 0.4:
            return self._values(around, alias, lateral=lateral)
        if draw < 0.6 and env.ctes:
            name = self.rng.choice(list(env.ctes))
            return self._named(ident(name), alias, env.ctes[name], renamed=self.rng.random() < 0.2)
        name = self.rng.choice([each for each in "aaabbbcce" if each not in env.ctes])
        if name not in before.tables and not lateral and self.rng.random() < 0.15:
            return Source(name, tuple(Column(name, *each) for each in TABLES[name].items()), (name,))
        return self._named(name, alias, tuple(TABLES[name].items()), renamed=self.rng.random() < 0.1)

    def _alias(self, env: Env, before: Source) -> str:
        """A name of its own; sometimes one that hides a table of a query around."""
        around = [each for each in env.tables if each not in before.tables]
        if around and self.rng.random() < 0.05:
            return self.rng.choice(around)
        return f"t{next(self._numbers)}"

    def _named(self, text: str, alias: str, columns: tuple[tuple[str, str], ...], *, renamed: bool) -> Source:
        word = self.rng.choice([" AS ", " "])
        if not renamed and len({name for name, _ in columns}) == len(columns):
            own = tuple(Column(alias, name, kind) for name, kind in columns)
            return Source(f"{text}{word}{alias}", own, (alias,))
        pool = ["id", "k", "Some Name", "v", "w", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9"]
        pool += [f"d{number}" for number in range(len(columns))]
        chosen = self.rng.sample(pool, len(columns))
        given = ", ".join(ident(name) for name in chosen)
        rest = [name for name, _ in columns[1:]]
        if len(set(rest)) == len(rest) and chosen[0] not in rest and self.rng.random() < 0.2:
            given, chosen = ident(chosen[0]), [chosen[0], *rest]  # the others keep their names
        own = tuple(Column(alias, name, kind) for name, (_, kind) in zip(chosen, columns, strict=True))
        return Source(f"{text}{word}{alias}({given})", own, (alias,))

    def _function(self, around: Env, alias: str) -> Source:
        form, kinds = self.rng.choice(FUNCTIONS)
        text = self._phrases.fill(form, "int4", around, 0)
        counted = self.rng.random() < 0.3
        columns = tuple((f"v{at}", kind) for at, kind in enumerate((*kinds, "int8") if counted else kinds))
        named = ", ".join(name for name, _ in columns)
        own = tuple(Column(alias, name, kind) for name, kind in columns)
        return Source(f"{text}{' WITH ORDINALITY' if counted else ''} AS {alias}({named})", own, (alias,))

    def _values(self, around: Env, alias: str, *, lateral: bool) -> Source:
        kinds = [self._phrases.hashed() for _ in range(self.rng.randint(1, 3))]
        text = values(self.rng, self._phrases, around, kinds)
        columns = tuple((f"column{at}", kind) for at, kind in enumerate(kinds, 1))
        return self._named(f"{'LATERAL ' if lateral else ''}({text})", alias, columns, renamed=self.rng.random() < 0.6)


def values(rng: random.Random, phrases: Phrases, around: Env, kinds: list[str]) -> str:
    """VALUES of these types; cells may be NULL, or speak of what is around."""
    rows = []
    for number in range(rng.randint(1, 3)):
        cells = []
        for kind in kinds:
            # The first row decides the types; a NULL elsewhere takes them.
            cell = phrases.leaf(kind, Env(around=around)) if rng.random() < 0.3 else literal(rng, kind)
            if kind in ("int8", "varchar", "ints", "texts", "numeric") and number == 0:
                cell = f"{cell}::{WRITTEN[kind]}"
            cells.append("NULL" if number and rng.random() < 0.2 else cell)
        rows.append(f"({', '.join(cells)})")
    return f"VALUES {', '.join(rows)}"


def names(side: Source) -> list[str]:
    """The names of all columns that are found without their table."""
    return [each.name for each in side.columns if not each.hidden]


def merged(left: Source, right: Source, chosen: list[str]) -> tuple[Column, ...]:
    """The columns behind a join with USING: those that it merges in front."""
    kinds = {each.name: each.kind for each in left.columns if not each.hidden}
    for each in right.columns:
        if each.name in kinds and not each.hidden and "int8" in (kinds[each.name], each.kind):
            kinds[each.name] = "int8"
    own = tuple(Column(None, name, kinds[name]) for name in chosen)
    rest = [each for side in (left, right) for each in side.columns if each.name not in chosen or each.hidden]
    gone = [each for side in (left, right) for each in side.columns if each.name in chosen and each.table]
    return (*own, *rest, *(replace(each, hidden=True) for each in gone if not each.hidden))
