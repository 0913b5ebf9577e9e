"""Updates in bulk: executors read the parts of stored collections, and write parts, without a detour by the driver.

What is read is a storage `Selection`, exactly its updates; it must stay open until Spark has run. What is written is
the result of one query, in one job: hashed, consolidated, sorted as parts are, and cut into a few files that are
staged for a commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pyarrow as pa

from everview.compute.engine.contract import PlanRefused, RunFailed
from everview.compute.engine.spark.runs import RUN_ROWS, can_write_runs, write_runs
from everview.quoting import spark_identifier
from everview.storage.errors import StorageError
from everview.storage.landing import Landing
from everview.storage.parts import ROW_GROUP_ROWS
from everview.storage.selection import Selection
from everview.storage.shard import Spec
from everview.storage.staging import Staged
from everview.timely.consolidate import DIFF, HASH, TIME
from everview.timely.hashing import SPARK_SEED

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

FILE_ROWS_MAX = 1 << 22  # of a file, however little room its rows take: copies of its columns are made in one piece
BROADCAST_HASHES_MAX = 1 << 20
PART_ROWS, PARTS_MAX = 1 << 19, 1 << 12
UNDIVIDED_ROWS_MAX = 16 * RUN_ROWS
SAMPLE_ROWS, SAMPLED_ROWS_MIN = 20_000, 500_000
_MOSTLY = 0.95

WRITE_OPTIONS = {
    "compression": "zstd",
    "maxRecordsPerFile": str(FILE_ROWS_MAX),
    "parquet.block.row.count.limit": str(ROW_GROUP_ROWS),
    "parquet.compression.codec.zstd.level": "1",
    f"parquet.enable.dictionary#{HASH}": "false",
    "parquet.page.write-checksum.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
}
READ_OPTIONS = {"parquet.page.verify-checksum.enabled": "true", "datetimeRebaseMode": "CORRECTED"}

_SPARK_TYPES = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp_ntz",
    pa.timestamp("us", "UTC"): "timestamp",
}
_TRACEBACK = "Traceback (most recent call last):"
_CALLING = "An error occurred while calling"  # some method of some number
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_GLOB = str.maketrans({character: f"\\{character}" for character in "{}[]*?"})


def read_updates(session: SparkSession, selection: Selection, columns: Sequence[str] | None = None) -> DataFrame:
    """The selected updates: `_time`, the data columns asked for, `_diff`; not consolidated."""
    names = list(selection.spec.schema.names if columns is None else columns)
    wanted = [TIME, *names, DIFF]
    frames = []
    if selection.inline:
        frames.append(_local(session, selection.inline_updates(), wanted))
    if selection.parts:
        frames.append(_stored(session, selection, wanted))
    if not frames:
        return _local(session, selection.spec.in_parts.empty_table(), wanted)
    return frames[0] if len(frames) == 1 else frames[0].unionAll(frames[1])


def read_contents(session: SparkSession, selection: Selection, columns: Sequence[str] | None = None) -> DataFrame:
    """The selected rows as of the end of the time range: the data columns asked for, `_diff`; not consolidated."""
    return read_updates(session, selection, columns).drop(TIME)


def write_updates(session: SparkSession, query: DataFrame | str, landing: Landing, rows_about: int = 0) -> Staged:
    """Run the query, which gives `_time`, the columns of the landing's collection and `_diff`, and stage its result.

    Its rows need not be consolidated. How many there are about, at the most, says how many files are made. Whatever
    fails, the landing is empty afterwards and nothing has happened.
    """
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    try:
        with _errors(f"write updates of {landing.id}"):
            frame = _typed(session.sql(query) if isinstance(query, str) else query, landing)
            if can_write_runs(session, landing):
                return write_runs(_divided(frame, landing.spec, rows_about), landing)
            written = Observation()
            parts = min(PARTS_MAX, 1 + rows_about // PART_ROWS)
            distinct = rows_about > SAMPLED_ROWS_MIN and mostly_distinct(frame)
            arranged = _arranged(frame, landing.spec, parts, distinct=distinct)
            counted = arranged.observe(written, f.count(f.lit(1)).alias("rows"))
            counted.write.options(**WRITE_OPTIONS).parquet(landing.uri)
            rows = int(written.get["rows"])
        return landing.staged(rows)
    except BaseException:
        with suppress(StorageError):  # what cannot be removed now is found by the next process
            landing.discard()
        raise


def _arranged(frame: DataFrame, spec: Spec, parts: int, *, distinct: bool) -> DataFrame:
    """The updates with their hashes, consolidated, in parts that follow one another, each in the order of a part.

    One shuffle serves all of this. It divides by ranges of the hash, which are known beforehand because hashes are
    even: to look for ranges of equal size would compute everything twice. Equal updates have equal hashes and meet in
    one task; one with a key of very many rows sorts them on its disk. If hardly two are equal, as `distinct` says, they
    are left as they are: compaction finds those few.
    """
    from pyspark.sql import functions as f

    data = [spark_identifier(name) for name in spec.schema.names]
    hashed = frame.withColumn(HASH, _hash(spec.key))
    order = [HASH, TIME]
    dividing = HASH
    if spec.keyed:
        # Rows of one key are in the order of the hash of all their columns, as wherever parts are merged.
        row = _unused("_row", spec)
        hashed = hashed.withColumn(row, _hash(spec.schema.names))
        order = [HASH, row, TIME]
        dividing = HASH if spec.key else row
    place = _unused("_place", spec)
    divided = hashed.withColumn(place, _place(f.col(dividing), parts)).repartitionById(parts, place)
    if distinct:  # to look for equal ones takes longer than to sort and write them all
        kept = divided.where(f"{DIFF} <> 0")
        return kept.sortWithinPartitions(*order).select(HASH, TIME, DIFF, *data)
    # A sum of what is there is not NULL, which Spark cannot know and would write down.
    total = f.coalesce(f.sum(DIFF), f.lit(0).cast("bigint")).alias(DIFF)
    # Grouped by the place too, though the hash says it: so Spark sees that the groups are together already.
    summed = divided.groupBy(place, *order, *data).agg(total).where(f"{DIFF} <> 0")
    return summed.sortWithinPartitions(*order).select(HASH, TIME, DIFF, *data)


def _divided(frame: DataFrame, spec: Spec, rows_about: int) -> DataFrame:
    """The updates as they come, unless they are so many that a look-up should find most files to be of other hashes."""
    if rows_about <= UNDIVIDED_ROWS_MAX:
        return frame
    place = _unused("_place", spec)
    parts = min(PARTS_MAX, 1 + rows_about // RUN_ROWS)
    dividing = _hash(spec.key or spec.schema.names)
    return frame.withColumn(place, _place(dividing, parts)).repartitionById(parts, place)


def mostly_distinct(updates: DataFrame) -> bool:
    """Whether hardly two updates have the same data, judging by a few of them.

    Parts are in the order of a hash, so the first rows that come are as good as any.
    """
    from pyspark.sql import functions as f

    data = [name for name in updates.columns if name not in (TIME, DIFF)]
    few = updates.limit(SAMPLE_ROWS).select(_hash(data).alias(HASH))
    rows, different = few.agg(f.count(f.lit(1)), f.count_distinct(HASH)).collect()[0]
    return bool(different >= _MOSTLY * rows)


def _place(hash: Column, parts: int) -> Column:
    """Which of so many equal ranges of hashes one is in, from below."""
    from pyspark.sql import functions as f

    from_zero = f.shiftright(hash, 32) + f.lit(1 << 31)
    return f.shiftright(from_zero * f.lit(parts), 32).cast("int")


def _unused(name: str, spec: Spec) -> str:
    while name in spec.schema.names:
        name += "_"
    return name


def _hash(names: Sequence[str]) -> Column:
    from pyspark.sql import functions as f

    # Of no columns at all, the hash is what it starts from.
    return f.xxhash64(*map(spark_identifier, names)) if names else f.lit(SPARK_SEED).cast("bigint")


def spark_type_of(dtype: pa.DataType) -> str:
    """The Spark type of a stored column."""
    if pa.types.is_decimal128(dtype):
        return f"decimal({dtype.precision},{dtype.scale})"
    if pa.types.is_list(dtype):
        return f"array<{spark_type_of(dtype.value_type)}>"
    if pa.types.is_struct(dtype):
        return f"struct<{','.join(f'{spark_identifier(field.name)}:{spark_type_of(field.type)}' for field in dtype)}>"
    return _SPARK_TYPES[dtype]


def plain_paths(uris: Iterable[str]) -> list[str]:
    """Addresses for Spark to read, which takes them for patterns: folders may have names that look like one."""
    return [uri.translate(_GLOB) for uri in uris]


def _local(session: SparkSession, table: pa.Table, names: Sequence[str]) -> DataFrame:
    table = table.select(list(names))
    return session.createDataFrame(table, schema=_schema(table.schema))


def _stored(session: SparkSession, selection: Selection, names: Sequence[str]) -> DataFrame:
    """The updates in parts, within a range of times and of hashes."""
    from pyspark.sql import functions as f

    declared = _schema(selection.spec.in_parts)
    frame = session.read.schema(declared).options(**READ_OPTIONS).parquet(*plain_paths(selection.uris))
    low, high = selection.time_range
    frame = frame.where(f"{TIME} >= {low}L AND {TIME} < {high}L")
    if selection.hashes is not None:
        wanted = _local(session, pa.table({HASH: selection.hashes}), [HASH])
        small = len(selection.hashes) <= BROADCAST_HASHES_MAX
        frame = frame.join(f.broadcast(wanted) if small else wanted, HASH, "left_semi")
    return frame.select(*map(spark_identifier, names))


def _typed(frame: DataFrame, landing: Landing) -> DataFrame:
    """The columns of updates in their types; raises PlanRefused where a cast might change values."""
    from pyspark.sql import functions as f

    given = {field.name: field.dataType for field in frame.schema}
    later = landing.spec.schema.names[landing.spec.created :]
    items = []
    for field in _schema(landing.spec.at_rest):
        if field.name not in given and field.name in later:  # of another definition than this one
            items.append(f.lit(None).cast(field.dataType).alias(field.name))
            continue
        if field.name not in given:
            detail = f"it has {', '.join(given)}"
            raise PlanRefused(f"internal error: updates of {landing.id} have no column {field.name}", detail=detail)
        theirs, ours = given[field.name], field.dataType
        if not _widens(theirs, ours):
            raise PlanRefused(
                f"internal error: updates of {landing.id} do not have its types",
                detail=f"column {field.name} is {theirs.simpleString()}, and should be {ours.simpleString()}",
            )
        items.append(f.col(spark_identifier(field.name)).cast(ours).alias(field.name))
    return frame.select(*items)


def _widens(given: DataType, wanted: DataType) -> bool:
    """Whether every value of the one type is one of the other."""
    from pyspark.sql.types import DecimalType, FloatType, NullType

    theirs, ours = given.simpleString(), wanted.simpleString()
    if theirs == ours or isinstance(given, NullType):
        return True
    if theirs in _INTEGERS and ours in _INTEGERS:
        return _INTEGERS.index(theirs) < _INTEGERS.index(ours)
    if isinstance(given, DecimalType) and isinstance(wanted, DecimalType):
        whole = wanted.precision - wanted.scale >= given.precision - given.scale
        # Digits before the point that do not fit fail in ANSI mode; digits behind it would be rounded away.
        return wanted.scale >= given.scale and (whole or wanted.precision == 38)
    return isinstance(given, FloatType) and ours == "double"


def _schema(schema: pa.Schema) -> StructType:
    from pyspark.sql.types import StructType

    parsed = StructType.fromDDL(
        ", ".join(f"{spark_identifier(each.name)} {spark_type_of(each.type)}" for each in schema)
    )
    assert isinstance(parsed, StructType)
    return parsed


@contextmanager
def _errors(doing: str) -> Iterator[None]:
    """What Spark says against a query, or dies of, as our errors."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import AnalysisException, PySparkException

    try:
        yield
    except AnalysisException as error:
        raise PlanRefused(f"internal error: spark refuses to {doing}", detail=said(error)) from error
    except (PySparkException, Py4JError, OSError) as error:
        raise RunFailed(f"spark failed to {doing}", detail=said(error)) from error


def said(error: Exception) -> str:
    """The first line of what Spark says that says something; the rest is its stack. Python says it behind its own."""
    _, _, python = str(error).partition(_TRACEBACK)
    ends = [line for line in python.splitlines() if line and not line[0].isspace()]
    if ends:
        return ends[0]
    lines = [line.strip(" :") for line in str(error).strip().splitlines()]
    return next((line for line in lines if line and not line.startswith(_CALLING)), type(error).__name__)
