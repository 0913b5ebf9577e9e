"""Everview inside a Python program, beside the PySpark that it uses: `everview.open(path)`.

    import everview

    with everview.open("everview-data") as db:
        db.sql("CREATE TABLE bids (auction int, cents int)")
        db.sql("INSERT INTO bids VALUES ($1, $2)", [1, 250])
        db.sql("CREATE MATERIALIZED VIEW best AS SELECT auction, max(cents) AS cents FROM bids GROUP BY auction")
        for row in db.sql("SELECT * FROM best"):
            print(row.auction, row.cents)
        db.frame("best").show()

Values are those of the table in `compute/ir/types.py`: int, Decimal, str, datetime and so on.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from everview.adapter.catalog.items import Item
from everview.adapter.contract import Column, CopyIn, CopyOut, Done, Prepared, Result, Rows
from everview.adapter.session import CoordinatorSession
from everview.adapter.timestamps import TimestampRequest
from everview.closing import Closing
from everview.compute.engine.spark.bulk import read_contents
from everview.compute.functions.contract import Failure
from everview.compute.sql.errors import SqlError
from everview.compute.sql.lexer import tokens
from everview.instance import Folder, Instance
from everview.parameters import parameter
from everview.storage.selection import Selection
from everview.storage.stores import BLOB_VARIABLE, CONSENSUS_VARIABLE, StoreAddresses
from everview.timely.consolidate import DIFF

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from typing_extensions import TypeIs

ROLE = DATABASE = "everview"


class Row(tuple[Any, ...]):
    """A row: a tuple whose values are also attributes, by the names of its columns."""

    __slots__ = ()
    names: ClassVar[tuple[str, ...]] = ()

    def __getattr__(self, name: str) -> Any:
        try:
            return self[self.names.index(name)]
        except ValueError:
            raise AttributeError(f"no column {name}; there are {', '.join(self.names)}") from None

    def asdict(self) -> dict[str, Any]:
        """The values by name; if several columns have the same name, the last one's."""
        return dict(zip(self.names, self, strict=True))

    def __repr__(self) -> str:
        return f"Row({', '.join(f'{name}={value!r}' for name, value in zip(self.names, self, strict=True))})"


class Answer(list[Row]):
    """The rows of a statement, what their columns are, and its tag, such as `INSERT 0 1`."""

    def __init__(self, rows: Iterable[Row] = (), columns: tuple[Column, ...] = (), tag: str | None = None) -> None:
        super().__init__(rows)
        self.columns, self.tag = columns, tag

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)


class Database(Closing):
    """An environment that is open in this process. Any thread may run statements; they are run one after the other."""

    def __init__(self, instance: Instance, folder: Folder) -> None:
        self._instance, self._folder = instance, folder
        self.coordinator = instance.coordinator
        self._session = self.coordinator.connect(ROLE, DATABASE, {"application_name": "everview.open"})
        self._lock = threading.RLock()
        self._selections: list[Selection] = []

    def sql(self, text: str, params: Sequence[Any] | Iterable[Sequence[Any]] = ()) -> Answer:
        """Run statements, as one transaction unless they say otherwise, and return the answer of the last.

        `params` are the values of `$1`, `$2` and so on in a single statement. For COPY … FROM STDIN they are the rows.
        """
        with self._lock:
            return _run(self._session, text, params)

    def stream(self, text: str, params: Sequence[Any] = ()) -> Iterator[Row]:
        """The rows of one statement as they come; SUBSCRIBE continues until the iterator is closed."""
        session = self.coordinator.connect(ROLE, DATABASE, {"application_name": "everview.open stream"})
        try:
            result = _started(session, session.prepare(text), params)
            rows = result.rows if isinstance(result, CopyOut) else result
            if isinstance(rows, Done) or _takes_rows(rows):
                raise SqlError("42601", "the statement gives no rows to stream", hint="run it with sql()")
            kind = _row_class(rows.columns)
            try:
                for batch in rows.batches():
                    yield from map(kind, batch)
            finally:
                rows.close()
        finally:
            session.close()

    def frame(self, name: str, as_of: int | datetime | None = None) -> DataFrame:
        """The contents of a table, source or materialized view at a time, by default the present, as a DataFrame.

        The DataFrame does not change with the relation. It can be used for an hour, until the database is closed.
        """
        session = self._session
        with self._lock:
            around = session.statement_context()
            item = around.relation(_path(name))
            if not item.stored or not item.columns:
                hint = "make it a materialized view, or read it with sql()"
                raise SqlError("42809", f'"{name}" is a {item.kind}, which stores no rows', hint=hint)
            selection = self._selected(item, _milliseconds(as_of))
            self._selections.append(selection)
        return _frame(self._instance.spark().bulk, selection, item)

    def _selected(self, item: Item, as_of: int | None) -> Selection:
        coordinator, catalog = self.coordinator, self.coordinator.catalog.state
        ids = frozenset({item.id})
        coordinator.environment.confirm()
        choice, hold = coordinator.timestamps.hold(TimestampRequest(ids, as_of=as_of), catalog)
        try:
            coordinator.timestamps.wait(ids, choice.time, self._session.interrupts, catalog)
            coordinator.peeks.check_errors(item.id, choice.time)
            return coordinator.environment.contents(item.id, choice.time)
        finally:
            hold.release()

    @property
    def spark(self) -> SparkSession:
        """A session of the Spark that maintains the views, once it has started."""
        return self._instance.spark().bulk

    @property
    def ready(self) -> bool:
        """Whether Spark is warm. Statements that do not need Spark run before that too."""
        return self._instance.ready

    def close(self) -> None:
        """Stop maintaining views and unlock the folder. What was committed stays. Safe more than once."""
        for selection in self._selections:
            selection.close()
        self._selections.clear()
        self._session.close()
        self._instance.close()
        self._folder.close()


def open(
    path: str | os.PathLike[str],
    spark: str | SparkSession | None = "local[*]",
    *,
    consensus: str | None = None,
    blob: str | None = None,
    take_over: bool = False,
) -> Database:
    """Open the environment in a folder, made if there is none, and maintain its views in this process.

    `consensus` and `blob` are the URLs of stores for metadata and data that are not in the folder, such as
    `postgresql://…` and `s3://…`; the folder then has local copies only. None takes them from the variables
    EVERVIEW_CONSENSUS and EVERVIEW_BLOB, and "" leaves them in the folder nevertheless. If another process that lives
    has the environment open, that is an error; with `take_over` that process is fenced off instead.

    `spark` is an address (`local[*]` embeds it, `spark://…`, `sc://…`), or a session of a Spark that runs already, or
    None: then this process computes everything by itself, which is for small data.
    """
    folder = Folder(path)
    try:
        stores = StoreAddresses(_given(consensus, CONSENSUS_VARIABLE), _given(blob, BLOB_VARIABLE))
        return Database(Instance(folder, spark=spark, stores=stores, take_over=take_over), folder)
    except BaseException:
        folder.close()
        raise


def _given(url: str | None, variable: str) -> str | None:
    return (os.environ.get(variable) if url is None else url) or None


def _run(session: CoordinatorSession, text: str, params: Any) -> Answer:
    answer = Answer()
    pieces = session.split(text)
    if len(pieces) != 1 and params:
        raise SqlError("42601", "only a single statement can have parameters")
    try:
        for piece in pieces:
            prepared = session.prepare(piece)
            answer = _answer(_started(session, prepared, params), params)
    except BaseException:
        session.fail()
        session.sync()
        raise
    session.sync()
    return answer


def _started(session: CoordinatorSession, prepared: Prepared, params: Any) -> Result:
    types = prepared.parameters
    values = params if types else ()
    if len(values) != len(types):
        raise SqlError("08P01", f"{len(types)} parameters are needed, and {len(values)} are given")
    try:
        return session.run(prepared, [parameter(value, each) for value, each in zip(values, types, strict=True)])
    except Failure as failure:
        raise SqlError(failure.sqlstate, failure.message) from None


def _answer(result: Result, params: Any) -> Answer:
    if isinstance(result, Done):
        return Answer(tag=result.tag)
    if _takes_rows(result):
        types = [column.type for column in result.columns]
        rows = (tuple(parameter(value, each) for value, each in zip(row, types, strict=True)) for row in params)
        return Answer(tag=result.finish(rows))
    rows_of: Rows = result.rows if isinstance(result, CopyOut) else result
    kind = _row_class(rows_of.columns)
    try:
        found = [kind(row) for batch in rows_of.batches() for row in batch]
        return Answer(found, rows_of.columns, rows_of.tag(len(found)))
    finally:
        rows_of.close()


def _takes_rows(result: Result) -> TypeIs[CopyIn]:
    return hasattr(result, "finish")


def _row_class(columns: Sequence[Column]) -> type[Row]:
    return type("Row", (Row,), {"__slots__": (), "names": tuple(column.name for column in columns)})


def _path(name: str) -> tuple[str, ...]:
    """The parts of a name as SQL writes it: `sales.bids`, `"Sales".bids`."""
    words = tokens(name)[:-1]
    parts, dots = words[::2], words[1::2]
    if (
        len(words) % 2 == 0
        or any(word.kind not in ("word", "quoted") for word in parts)
        or not all(word.is_symbol(".") for word in dots)
    ):
        raise SqlError("42602", f'"{name}" is not the name of a relation', hint="names are written as in SQL")
    return tuple(word.value for word in parts)


def _milliseconds(time: int | datetime | None) -> int | None:
    if not isinstance(time, datetime):
        return time
    if time.tzinfo is None:
        raise SqlError("22007", "as_of has no time zone", hint="for example datetime.now(UTC)")
    return int(time.timestamp() * 1000)


def _frame(session: SparkSession, selection: Selection, item: Item) -> DataFrame:
    """The rows, each as often as it occurs, under the names that SQL knows them by."""
    from pyspark.sql import functions as f

    names = selection.spec.schema.names
    places = [(place, *each.earlier) for each, place in zip(item.columns, item.places, strict=True)]
    stored = [names[place] for place in dict.fromkeys(place for each in places for place in each)]
    found = read_contents(session, selection, stored)
    counted = found.groupBy(*stored).agg(f.sum(DIFF).alias(DIFF)).where(f"{DIFF} <> 0")
    # The multiplicity is a sequence to go through: 1 is by far the most frequent.
    each = counted.withColumn(DIFF, f.explode(f.sequence(f.lit(1).cast("bigint"), f.col(DIFF))))
    columns = (f.coalesce(*(f.col(names[place]) for place in each)) for each in places)
    return each.select(*(column.alias(name) for column, name in zip(columns, item.names, strict=True)))
