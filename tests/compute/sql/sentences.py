"""Random queries as text: what only the parser, the binder and the decorrelation see. One seed is one query.

An answer is determined: a limit comes with an order of all columns, and so does whatever depends on the order of rows.
`phrases` has the expressions, `clauses` what stands behind FROM, and `words` the tables.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace

from tests.compute.sql.clauses import Clauses, Query, Source, values
from tests.compute.sql.phrases import HASHED, KINDS, Env, Phrases, ident, qualified
from tests.compute.sql.words import VALUES, quoted

SIZE = 7  # queries within one


def sentence(seed: int | str) -> str:
    """The query of a seed."""
    return Sentences(random.Random(seed)).sentence()


def recased(text: str, change: Callable[[str], str]) -> str:
    """The text in other letters, but for what is between quotes."""
    parts = re.split(r"""('(?:[^']|'')*'|"[^"]*")""", text)
    return "".join(part if part[:1] in ("'", '"') else change(part) for part in parts)


class Sentences:
    """Queries with one source of randomness."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.phrases = Phrases(rng, self._inside)
        self.clauses = Clauses(rng, self.phrases, self.query)
        self._left = rng.randint(1, SIZE)

    def sentence(self) -> str:
        """A query that stands by itself; now and then one with a mistake in it."""
        text = self.query(Env(), None, 3, top=True).text
        if self.rng.random() < 0.05:
            text = self._mistaken(text)
        draw = self.rng.random()
        return text if draw < 0.6 else recased(text, str.lower if draw < 0.95 else str.upper)

    def _mistaken(self, text: str) -> str:
        """One column is another: one that there is not, of a table that there is not, or of a type that does not go."""
        if "DISTINCT ON" in text:
            return text  # which would be another mistake
        places = list(re.finditer(r'\b(t\d+)\.(\w+|"[^"]*")', text))
        if not places:
            return text.replace("SELECT", "SELECT nothing,", 1)
        place = self.rng.choice(places)
        wrong = [
            f"{place[1]}.nothing",
            f"nowhere.{place[2]}",
            f"({place[0]} + true)",
            "nothing",
            f"nothing({place[0]})",
        ]
        return text[: place.start()] + self.rng.choice(wrong) + text[place.end() :]

    def _inside(
        self, env: Env, kinds: list[str] | None, depth: int, *, scalar: bool = False, ordered: bool = False
    ) -> str:
        """A query in an expression: of one row at most, or with its rows in order, or neither."""
        if scalar:
            return self._one_row(env, kinds or ["int4"], depth)
        return self._select(env, kinds, depth, tail=ordered, ordered=ordered).text if ordered else self.query(
            env, kinds, depth
        ).text  # fmt: skip

    def query(self, env: Env, kinds: list[str] | None, depth: int, *, top: bool = False, tail: bool = True) -> Query:
        """A query of columns of these types, or of any; `tail`: it may begin with WITH and end with ORDER BY."""
        self._left -= 1
        if self._left <= 0:
            return self._select(env, kinds, 0, tail=tail, top=top)
        draw = self.rng.random()
        if draw < 0.12:
            return self._set_operation(env, kinds, depth - 1, tail=tail)
        if draw < 0.16 and depth < 3 and not (kinds and "interval" in kinds):
            chosen = kinds or [self.phrases.hashed() for _ in range(self.rng.randint(1, 3))]
            columns = tuple((f"column{at}", kind) for at, kind in enumerate(chosen, 1))
            return Query(values(self.rng, self.phrases, env, chosen), columns)
        if draw < 0.26 and tail:
            return self._with(env, kinds, depth, top=top)
        return self._select(env, kinds, depth, tail=tail, top=top)

    def _with(self, env: Env, kinds: list[str] | None, depth: int, *, top: bool) -> Query:
        parts: list[str] = []
        for _ in range(self.rng.randint(1, 2)):
            name = self.rng.choice(["w", "w2", "Big W", "a"])
            if any(part.startswith(f"{ident(name)} ") for part in parts):
                continue
            body = self.query(env, None, depth - 1)
            columns = body.columns
            given = ""
            if self.rng.random() < 0.3 or len({each for each, _ in columns}) < len(columns):
                columns = tuple((f"g{at}", kind) for at, (_, kind) in enumerate(columns))
                given = f"({', '.join(each for each, _ in columns)})"
            hint = self.rng.choice(["", "", "", " MATERIALIZED", " NOT MATERIALIZED"])
            parts.append(f"{ident(name)} {given} AS{hint} ({body.text})")
            env = replace(env, ctes={**env.ctes, name: columns})
        body = self._select(env, kinds, depth, tail=True, top=top)
        return Query(f"WITH {', '.join(parts)} {body.text}", body.columns)

    def _set_operation(self, env: Env, kinds: list[str] | None, depth: int, *, tail: bool) -> Query:
        chosen = kinds or [self.phrases.hashed() for _ in range(self.rng.randint(1, 3))]
        branches = []
        for number in range(self.rng.choice([2, 2, 2, 3])):
            own = [self._varied(kind) if number else kind for kind in chosen]
            plain = any(kind.startswith("?") for kind in own) or self.rng.random() < 0.6
            body = self._select(env, own, depth, tail=False) if plain else self.query(env, own, depth)
            branches.append(body if not number else replace(body, columns=()))
            branches[-1] = replace(
                branches[-1], text=body.text if plain and self.rng.random() < 0.7 else f"({body.text})"
            )
        words = ["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL", "UNION DISTINCT"]
        text = branches[0].text
        for branch in branches[1:]:
            text += f" {self.rng.choice(words)} {branch.text}"
        columns = tuple((name, kind) for (name, _), kind in zip(branches[0].columns, chosen, strict=True))
        if tail and "interval" not in chosen and self.rng.random() < 0.3:
            text += f" ORDER BY {self._all_positions(len(chosen))}{self._limit()}"
        return Query(text, columns)

    def _varied(self, kind: str) -> str:
        """A type that goes with another one and leaves it what it is; `?` is one that its place decides."""
        if self.rng.random() < 0.12:
            return f"?{kind}"
        narrower = {"int8": ["int4", "int2"], "numeric": ["int4", "int8"], "text": ["varchar"], "timestamp": ["date"]}
        return self.rng.choice([kind, kind, *narrower.get(kind, [])])

    def _one_row(self, env: Env, kinds: list[str], depth: int) -> str:
        self._left -= 1
        draw = self.rng.random()
        if draw < 0.1:
            own = Env(around=env, ctes=env.ctes)
            return f"SELECT {', '.join(self.phrases.of(kind, own, min(depth, 1)) for kind in kinds)}"
        if draw < 0.65 and all(self.phrases.aggregates(kind) for kind in kinds) and self._left > 0:
            source = self.clauses.source(env, depth - 1)
            own = self.clauses.environment(env, source)
            grouped = Env(rows=own, tables=own.tables, around=env, ctes=env.ctes)
            items = [self.phrases.aggregate(kind, grouped, depth) for kind in kinds]
            having = f" HAVING {self.phrases.of('bool', grouped, 1)}" if self.rng.random() < 0.1 else ""
            return f"SELECT {', '.join(items)} FROM {source.text}{self._where(own, depth)}{having}"
        body = self._select(env, kinds, depth, tail=False)
        return f"{body.text} ORDER BY {self._all_positions(len(kinds))} LIMIT 1"

    def _where(self, env: Env, depth: int) -> str:
        if self.rng.random() < 0.5:
            return ""
        return f" WHERE {self.phrases.of('bool', env, min(max(depth, 1), 2))}"

    # SELECT

    def _select(
        self,
        env: Env,
        kinds: list[str] | None,
        depth: int,
        *,
        tail: bool,
        top: bool = False,
        ordered: bool = False,
    ) -> Query:
        source = self.clauses.source(env, depth) if self.rng.random() < 0.95 else Source("", (), ())
        own = self.clauses.environment(env, source)
        if kinds is None and source.text and depth > 0 and self.rng.random() < 0.06:
            return self._star(source, own, depth)
        where = self._where(own, depth) if source.text else ""
        distinct = self.rng.choice(["", "", "", "", "", "", "DISTINCT ", "ON"])
        pool = HASHED if distinct else KINDS
        chosen = kinds or [
            self.rng.choice(["int4", "text", self.rng.choice(pool)]) for _ in range(self.rng.randint(1, 4))
        ]
        if any(kind.startswith("?") or kind == "interval" for kind in chosen):
            distinct = ""
        keys = (self._keys(own) if source.columns and self.rng.random() < 0.3 else None) or None
        view = replace(own, windows=True)
        sets = keys is not None and self.rng.random() < 0.3
        if keys is not None:
            view = self._grouped(own, keys, sets=sets)
        view = replace(
            view, total=self.phrases.total_order(replace(view, windows=False, rows=None, qualified=keys is not None))
        )
        window = ""
        if self.rng.random() < 0.1:
            definition = self.phrases.window_definition(replace(view, windows=False))
            window = f" WINDOW win AS ({definition})"
            view = replace(view, named=("win",))
        items = [self._item_of(kind, view, keys, depth) for kind in chosen]
        names = self._names(items, own, top=top)
        group = "" if keys is None else self._group_by(keys, items, names, own, sets=sets)
        if keys is not None and self.rng.random() < 0.3:
            group += f" HAVING {self.phrases.of('bool', replace(view, windows=False), min(max(depth, 1), 2))}"
        shown = [
            item if name is None else f"{item}{self.rng.choice([' AS ', ' AS ', ' '])}{ident(name)}"
            for item, name in zip(items, names, strict=True)
        ]
        if distinct == "ON":
            width = self.rng.randint(1, len(items))
            distinct = f"DISTINCT ON ({', '.join(items[:width])}) "
            rest = ", ".join(self.phrases.directed(str(number)) for number in range(1, len(items) + 1))
            order = f" ORDER BY {rest}"
            # The name of one column may be that of another output, which then is meant.
            if (
                not tail
                or any(self._constant(item) or item.isidentifier() for item in items[:width])
                or "(WITH " in distinct
            ):
                distinct, order = "", ""
        else:
            order = self._order(view, items, chosen, tail=tail, ordered=ordered, distinct=bool(distinct), depth=depth)
        behind = f" FROM {source.text}" if source.text else ""
        # Of a window that nobody uses the plan knows nothing, not even which query an aggregate around it is of.
        if not any(re.search(r"OVER \(?win\b", part) for part in (*items, order)):
            window = ""
        text = f"SELECT {distinct}{', '.join(shown)}{behind}{where}{group}{window}{order}"
        named = tuple((name or "?", kind) for name, kind in zip(names, chosen, strict=True))
        return Query(text, named)

    @staticmethod
    def _constant(item: str) -> bool:
        """Whether it would be taken for the position of a column."""
        return re.match(r"[(-]*([\d.]+\)*$|'|true|false|NULL)", item) is not None

    def _star(self, source: Source, own: Env, depth: int) -> Query:
        shown, what = [each for each in source.columns if not each.hidden], "*"
        table = self.rng.choice(source.tables)
        if self.rng.random() < 0.4 and not any(each.table is None for each in source.columns):
            shown, what = [each for each in shown if each.table == table], f"{table}.*"
        columns = tuple((each.name, each.kind) for each in shown)
        return Query(f"SELECT {what} FROM {source.text}{self._where(own, depth)}", columns)

    def _item_of(self, kind: str, view: Env, keys: list[tuple[str, str]] | None, depth: int) -> str:
        if kind.startswith("?"):
            return self.rng.choice(["NULL", quoted(kind[1:], VALUES[kind[1:]](self.rng))])
        fitting = [text for text, each in keys or [] if each == kind]
        if fitting and self.rng.random() < 0.5:
            return self.rng.choice(fitting)
        return self.phrases.of(kind, view, min(max(depth, 1), 2))

    def _names(self, items: list[str], own: Env, *, top: bool) -> list[str | None]:
        """Names of their own; none for some, where nobody will speak of them."""
        pool = ["x", "y", "id", "k", "name", "Odd", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8"]
        chosen: list[str | None] = list(self.rng.sample(pool, len(items)))
        return [None if top and self.rng.random() < 0.4 else name for name in chosen]

    # GROUP BY

    def _keys(self, own: Env) -> list[tuple[str, str]]:
        """Columns and expressions to group by, as text and type."""
        usable = [each for each in own.columns if each.kind in HASHED]
        keys = []
        for _ in range(self.rng.randint(1, 3)):
            kind = self.rng.choice(["int4", "text", "bool", "date", "numeric"])
            formed = self.phrases.formed(kind, own, 1)
            # An expression speaks of these rows: PostgreSQL takes a constant for what it is although it is grouped by,
            # and grouping() of what is around for that of another query. Of two queries with a WITH that are the same
            # it knows that they are, and the binder does not, nor of an IN that is a condition and one that is a value.
            if (
                self.rng.random() < 0.3
                and not re.search(r"\(WITH | IN \(", formed)
                and any(f"{each}." in formed for each in own.tables)
            ):
                keys.append((formed, kind))
            elif usable:
                column = self.rng.choice(usable)
                keys.append((qualified(column), column.kind))
        return list(dict.fromkeys(keys))

    def _grouped(self, own: Env, keys: list[tuple[str, str]], *, sets: bool) -> Env:
        texts = {text for text, _ in keys}
        plain = tuple(each for each in own.columns if qualified(each) in texts)
        written = {qualified(each) for each in plain}
        others = tuple((text, kind) for text, kind in keys if text not in written)
        groups = tuple(text for text, _ in keys) if sets else ()
        return replace(own, columns=plain, keys=others, rows=own, windows=True, groups=groups)

    def _group_by(
        self, keys: list[tuple[str, str]], items: list[str], names: list[str | None], own: Env, *, sets: bool
    ) -> str:
        columns = {each.name for each in own.columns}
        written = []
        for text, _ in keys:
            place = items.index(text) if text in items else None
            name = names[place] if place is not None else None
            if place is not None and self.rng.random() < 0.3:
                written.append(str(place + 1))
            elif name is not None and name not in columns and self.rng.random() < 0.4:
                written.append(ident(name))
            else:
                written.append(text)
        if not sets:
            return f" GROUP BY {self.rng.choice(['', '', '', 'ALL '])}{', '.join(written)}"
        some = ", ".join(written)
        forms = [f"ROLLUP ({some})", f"CUBE ({some})", f"GROUPING SETS (({some}), ())"]
        if len(written) > 1:
            forms.append(f"{written[0]}, ROLLUP ({', '.join(written[1:])})")
            forms.append(f"GROUPING SETS ({', '.join(written)}, ())")
            forms.append(f"GROUPING SETS (({', '.join(written)}), ({written[0]}), {written[-1]})")
            forms.append(f"GROUPING SETS (ROLLUP ({written[0]}, {written[1]}), CUBE ({written[-1]}))")
            forms.append(f"ROLLUP ({written[0]}), CUBE ({', '.join(written[1:])})")
        return f" GROUP BY {self.rng.choice(['', '', '', 'DISTINCT '])}{self.rng.choice(forms)}"

    # ORDER BY and LIMIT

    def _all_positions(self, count: int) -> str:
        places = list(range(1, count + 1))
        self.rng.shuffle(places)
        return ", ".join(self.phrases.directed(str(place)) for place in places)

    def _order(
        self, view: Env, items: list[str], kinds: list[str], *, tail: bool, ordered: bool, distinct: bool, depth: int
    ) -> str:
        if not tail or "interval" in kinds or (not ordered and self.rng.random() < 0.7):
            return ""
        first = ""
        if not distinct and not ordered and self.rng.random() < 0.4:
            first = (
                self.phrases.directed(
                    self.phrases.formed(self.rng.choice(["int4", "text", "bool"]), view, min(depth, 1))
                )
                + ", "
            )
        if not distinct and not ordered and self.rng.random() < 0.15:
            few = self.phrases.directed(str(self.rng.randint(1, len(items))))
            return f" ORDER BY {first}{few} FETCH FIRST {self.rng.randint(0, 4)} ROWS WITH TIES"
        return f" ORDER BY {first}{self._all_positions(len(items))}{'' if self.rng.random() < 0.4 else self._limit()}"

    def _limit(self) -> str:
        count, skipped = self.rng.randint(0, 5), self.rng.randint(0, 3)
        forms = [f" LIMIT {count}", f" LIMIT {count} OFFSET 1 + {skipped}", f" OFFSET {skipped}", " LIMIT ALL"]
        forms += [f" FETCH FIRST {count} ROWS ONLY", f" OFFSET {skipped} ROWS FETCH NEXT {count} ROWS ONLY"]
        return self.rng.choice(forms)
