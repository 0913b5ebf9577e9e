"""Join in Spark SQL: input after input, each on the equivalences that it shares with those before it."""

from __future__ import annotations

from collections.abc import Sequence

from everview.compute.engine.spark.scalar import column, render_scalar
from everview.compute.ir.relation import Join, arity
from everview.compute.ir.scalar import Scalar, columns_of


def render_join(join: Join, sources: Sequence[str]) -> str:
    """The join of rendered inputs: the product of multiplicities where all members are equal."""
    owners = [(number, place) for number, each in enumerate(join.inputs) for place in range(arity(each))]

    def place(index: int) -> str:
        number, inside = owners[index]
        return f"j{number}.{column(inside)}"

    def owner(scalar: Scalar) -> int:
        return owners[min(columns_of(scalar))][0] if columns_of(scalar) else 0

    conditions: list[list[str]] = [[] for _ in sources]
    classes = [(members, "=") for members in join.equivalences] + [(members, "<=>") for members in join.nullsafe]
    for members, sign in classes:
        first, *others = sorted(members, key=owner)
        if not others and sign == "=":
            conditions[owner(first)].append(f"{render_scalar(first, place)} IS NOT NULL")
        for other in others:
            pair = f"{render_scalar(first, place)} {sign} {render_scalar(other, place)}"
            conditions[owner(other)].append(pair)
    items = [f"{place(index)} AS {column(index)}" for index in range(len(owners))]
    diffs = " * ".join(f"j{number}._diff" for number in range(len(sources))) or "1L"
    lines = [f"SELECT {', '.join([*items, f'{diffs} AS _diff'])}"]
    for number, source in enumerate(sources):
        if number == 0:
            lines.append(f"FROM {source} AS j0")
        elif conditions[number]:
            lines.append(f"JOIN {source} AS j{number} ON {' AND '.join(conditions[number])}")
        else:
            lines.append(f"CROSS JOIN {source} AS j{number}")
    if conditions and conditions[0]:
        lines.append(f"WHERE {' AND '.join(conditions[0])}")
    return "\n".join(lines)
