"""Have tasks that are canceled end in the middle of a join.

Spark tells a task that its job is canceled, and leaves it to the task to look. It looks where it reads rows of files,
shuffles, sorts and large buffers. A join of rows that are in memory has nothing of the kind: it would go through
billions of pairs for a job that is gone, and keep its core from others.

So every row that enters a join or a table function asks, in a predicate that is always true and raises once the task
is canceled. What happens for one such row is bounded by what is in memory. Spark takes the predicate for deterministic,
for one that it knows not to be would stand in the way of other predicates and of shared steps. It also pushes
predicates down as far as the columns that they read. So the predicate reads columns of the rows that it is about, but
few, and none that are equal to others: Spark derives all that follows from predicates and equalities, and of a
predicate over many columns very much follows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from everview.compute.ir.types import Kind, SqlType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CANCELED = "everview_task_is_canceled"
_CHEAP = (Kind.INT2, Kind.INT4, Kind.INT8, Kind.BOOLEAN, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.TEXT)


def can_ask(session: SparkSession) -> bool:
    """Whether tasks of this session can ask: over Connect there is no way to say how."""
    return hasattr(session, "_jsparkSession")


def still_wanted(read: Iterable[str]) -> str:
    """A predicate that is true of every row, or raises if the task is canceled, over some columns of the row.

    Of a row whose hash is 0 nobody asks. Predicates of one join raise different errors: Spark would merge equal ones
    into a predicate over both sides, and evaluate it for each pair.
    """
    names = ", ".join(dict.fromkeys(read))
    asked = f"CASE WHEN {CANCELED}() THEN raise_error('everview: the task was canceled at {names}') ELSE true END"
    return f"(hash({names}) = 0 OR {asked})"


def column_to_read(columns: Iterable[tuple[str, SqlType]]) -> str | None:
    """The last column that is cheap to hash, for operators that multiply rows add columns behind. None without one."""
    ranked = [
        (each.kind is not Kind.TEXT, place, name) for place, (name, each) in enumerate(columns) if each.kind in _CHEAP
    ]
    return max(ranked)[2] if ranked else None


def make_known(session: SparkSession) -> None:
    """Let statements of this session ask whether their task is canceled.

    The function is an expression of Spark's own, `TaskContext.get().isInterrupted()`, which executors need nothing of
    ours for. Spark asks an object with `apply` for the expression of each call: a map that has nothing but a default.
    """
    jvm: Any = session._jvm
    expressions = jvm.org.apache.spark.sql.catalyst.expressions.objects
    none = jvm.scala.jdk.javaapi.CollectionConverters.asScala(jvm.java.util.ArrayList()).toSeq()
    context = jvm.java.lang.Class.forName("org.apache.spark.TaskContext")
    kind = jvm.org.apache.spark.sql.types.ObjectType(context)
    get = expressions.StaticInvoke(context, kind, "get", none, none, True, True, True, jvm.scala.Option.empty())
    boolean = jvm.org.apache.spark.sql.types.DataTypes.BooleanType
    asked = expressions.Invoke(get, "isInterrupted", boolean, none, none, True, True, True)
    always = jvm.scala.collection.immutable.HashMap().withDefaultValue(asked)
    state: Any = session._jsparkSession.sessionState()
    state.functionRegistry().createOrReplaceTempFunction(CANCELED, always, "built-in")
