"""Functions that Spark SQL has no equivalent of: their meaning in Python, called from Spark's tasks.

A statement calls such a function by a name that stands for the function and its types; before the statement runs, the
names in it are made known to the session. The rows travel to a Python process and back, so this is for the few
functions that cannot be said otherwise. Executors must have Everview installed, as the driver has.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pyarrow as pa

from everview.compute.engine.spark.canceled_tasks import CANCELED, can_ask, make_known
from everview.compute.functions.contract import Failure, Function
from everview.compute.functions.spark_sql import NotOnSpark, spark_type
from everview.compute.interpreter.scalars import compile_scalar
from everview.compute.ir.scalar import Call, Column, Literal, Scalar, transform, walk
from everview.compute.ir.types import SqlType
from everview.compute.rows.arrow import values_from_arrow, values_to_arrow
from everview.compute.rows.collection import canonical_row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PREFIX = "everview_python_"
_NAMES = re.compile(f"{_PREFIX}[a-z0-9_]*_[0-9a-f]{{16}}")

_calls: dict[str, tuple[Call, tuple[SqlType, ...]]] = {}  # what is evaluated, over columns of these types
_known: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()


def python_call(function: Function, args: Sequence[str], types: Sequence[SqlType], result: SqlType) -> str:
    """The call of a function in Python, over rendered arguments; raises NotOnSpark."""
    if function.volatile or not args or (function.fails and not function.strict):
        # Without arguments there are no rows to run over; and a NULL has to say whether the call failed.
        raise NotOnSpark(function.name)
    columns = tuple(Column(index, each) for index, each in enumerate(types))
    return _named(function, Call(function.key, columns, result), types, args)


def python_expression(function: Function, call: Call, render: Callable[[Scalar], str]) -> str:
    """The call with all that is inside its arguments, over columns and literals; raises NotOnSpark.

    Spark loses a Python function whose argument has a lambda that reads the variable of another lambda around it, as
    the renderings of calls inside of calls do.
    """
    if function.volatile or (function.fails and not function.strict):
        raise NotOnSpark(function.name)
    leaves = {repr(part): part for part in walk(call) if isinstance(part, Column | Literal)}
    places = {name: Column(index, part.type) for index, (name, part) in enumerate(leaves.items())}
    scalar = transform(call, lambda part: places[repr(part)] if isinstance(part, Column | Literal) else None)
    assert isinstance(scalar, Call)
    return _named(function, scalar, [each.type for each in leaves.values()], list(map(render, leaves.values())))


def _named(function: Function, call: Call, types: Sequence[SqlType], args: Sequence[str]) -> str:
    digest = hashlib.sha256(repr((call, tuple(types))).encode()).hexdigest()[:16]
    name = f"{_PREFIX}{re.sub('[^a-z0-9]+', '_', function.name.lower())}_{digest}"
    _calls[name] = call, tuple(types)
    return f"{name}({', '.join(args)})"


def run_sql(session: SparkSession, statement: str) -> DataFrame:
    """The statement as a DataFrame, its functions that are ours made known to the session.

    A literal may have such a name in it as well. That makes a function known that is not called, or nothing at all: no
    name in a literal goes on behind its closing quote, so the names that are called are among those found.
    """
    known = _known.setdefault(session, set())
    if CANCELED in statement and CANCELED not in known and can_ask(session):
        make_known(session)
        known.add(CANCELED)
    for name in (_calls.keys() & _NAMES.findall(statement)) - known:
        session.udf.register(name, _task_function(*_calls[name]))
        known.add(name)
    return session.sql(statement)


def _task_function(call: Call, types: Sequence[SqlType]) -> Any:
    from pyspark.sql.pandas.functions import arrow_udf

    def run(*columns: pa.Array) -> pa.Array:
        return evaluated(call, types, columns)

    return arrow_udf(run, spark_type(call.type))  # type: ignore[call-overload]


def evaluated(call: Call, types: Sequence[SqlType], columns: Sequence[pa.Array]) -> pa.Array:
    """The results for the rows of a batch: NULL where the evaluation fails, if it may."""
    evaluate = compile_scalar(call)
    values = [values_from_arrow(pa.chunked_array([each]), kind) for each, kind in zip(columns, types, strict=True)]
    settle, settle_result = canonical_row(types), canonical_row([call.type])
    results = [_attempt(evaluate, settle(row)) for row in zip(*values, strict=True)]
    return values_to_arrow([settle_result((result,))[0] for result in results], call.type)


def _attempt(evaluate: Callable[[tuple[Any, ...]], Any], row: tuple[Any, ...]) -> Any:
    try:
        return evaluate(row)
    except Failure:
        return None
