"""mz_sinks, and how sinks and the sources that read change streams are doing: state, progress, lag, failures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import astuple
from datetime import UTC, datetime
from itertools import zip_longest

from everview.adapter.catalog.items import Connection, Part, Secret, Sink, Source, Subscription
from everview.adapter.catalog.specs import Delivered
from everview.adapter.retention import FOR_EVER_MS
from everview.adapter.system.definitions import create
from everview.adapter.system.locations import create_sink
from everview.adapter.system.relation import Row, SystemRelation, View, named, relations_of
from everview.cdc.times import bound_of
from everview.compute.ir.types import Interval
from everview.errors import text_of
from everview.sources.contract import STOPPED, Reading

CLUSTER = "c1"


def type_of(item: Sink | Source) -> str:
    """What a sink delivers into, or what a source reads from."""
    return "subsource" if isinstance(item.spec, Part) else item.spec.kind.replace(" ", "-")


def _sinks(view: View) -> Iterable[Row]:
    catalog = view.around.catalog
    for item in catalog.of(Sink):
        collections = item.spec.collections
        only = collections[0] if len(collections) == 1 else None  # what differs between several is not told here
        yield (
            *(*named(view, item), type_of(item), CLUSTER, create_sink(catalog, item)),
            *((None, None, None) if only is None else (only.collection, list(only.key), only.delta_updates)),
        )


def _sink_collections(view: View) -> Iterable[Row]:
    for item in view.around.catalog.of(Sink):
        collections, found = item.spec.collections, view.coordinator.sinks.status(item.id)
        rows_by: Iterable[int] = () if found is None else found.rows_by
        for number, (each, rows) in enumerate(zip_longest(collections, rows_by, fillvalue=0), 1):
            assert isinstance(each, Delivered)
            name = view.around.catalog.items[each.collection].name
            yield (item.id, number, each.collection, name, list(each.key), each.delta_updates, rows)


def _sink_statuses(view: View) -> Iterable[Row]:
    for item in view.around.catalog.of(Sink):
        found = view.coordinator.sinks.status(item.id)
        if found is not None:
            retry = _moment(found.retry_ms)
            yield (item.id, item.name, type_of(item), found.state, found.error, found.frontier, found.lag_ms, retry)


def _sink_statistics(view: View) -> Iterable[Row]:
    for item in view.around.catalog.of(Sink):
        found = view.coordinator.sinks.status(item.id)
        for each in () if found is None else found.splits:
            yield (
                *(item.id, each.name, each.frontier, each.lag_ms),
                *(each.transactions, each.rows, each.failures, each.error, _moment(each.retry_ms)),
            )


def _moment(ms: int | None) -> datetime | None:
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC)


def _source_statuses(view: View) -> Iterable[Row]:
    for item in view.around.catalog.of(Source):
        found = view.coordinator.source_status(item.id)
        if found is None:
            yield (item.id, item.name, type_of(item), "running", None, None, 0, None)
        else:
            frontier = None if found.read is None else bound_of(found.read.frontier)
            stalls = 0 if found.read is None else len(found.read.stalls)
            why = found.stopped.get(item.spec.table) if isinstance(item.spec, Part) else None
            said = (found.state, found.error) if why is None else (STOPPED, text_of(why))
            yield (item.id, item.name, type_of(item), *said, frontier, stalls, _moment(found.retry_ms))


def _read_streams(view: View) -> Iterator[tuple[Source, Reading]]:
    """The sources that read change streams, and how far they are."""
    for item in view.around.catalog.of(Source):
        found = view.coordinator.source_status(item.id)
        if found is not None and found.read is not None:
            yield item, found.read


def _source_statistics(view: View) -> Iterable[Row]:
    for item in view.around.catalog.of(Source):
        found = view.coordinator.source_status(item.id)
        if found is not None and found.progress is not None and not isinstance(item.spec, Part):
            yield (item.id, *[None] * 8, *astuple(found.progress))
    for item, read in _read_streams(view):
        yield (
            *(item.id, bound_of(read.frontier), bound_of(read.covered), read.updates_total, read.open_times),
            *(read.open_updates, read.statements_waiting, read.bad_records, len(read.partial)),
            *[None] * 7,
        )


def _source_stalls(view: View) -> Iterable[Row]:
    for item, read in _read_streams(view):
        for each in read.stalls:
            time = each.time if isinstance(each.time, int) else None
            yield (item.id, time, each.reason, each.expected, each.arrived, each.curable, each.detail)


def _source_bad_records(view: View) -> Iterable[Row]:
    for item, read in _read_streams(view):
        for each in read.bad:
            yield (item.id, each.piece, each.position, _readable(each.reason), _readable(each.raw))


def _readable(raw: bytes | str) -> str:
    """Data as text that clients can read: bytes that are no text, and NUL, as `\\x` and two digits."""
    text = raw if isinstance(raw, str) else raw.decode(errors="backslashreplace")
    return text.replace("\0", "\\x00")


def _subscription_statuses(view: View) -> Iterable[Row]:
    for item in view.around.catalog.of(Subscription):
        found = view.coordinator.durable.status(item)
        if found is None:
            continue
        place = found.place
        yield (
            *(item.id, item.name, item.on, found.state, None if found.session is None else str(found.session)),
            *(None if place.snapshot else place.position, _moment(place.moved_ms)),
            *(Interval(0, 0, found.held_ms * 1_000), found.held_ms),
            *(None if found.hold_ms >= FOR_EVER_MS else found.hold_ms, _moment(place.lapsed_ms)),
        )


def _connections(view: View) -> Iterable[Row]:
    for item in view.around.catalog.of(Connection):
        yield (*named(view, item), item.to, create(view.around.catalog, item))


def _secrets(view: View) -> Iterable[Row]:
    for item in view.around.catalog.of(Secret):
        yield (*named(view, item), item.origin)


_catalog, _internal = relations_of("mz_catalog"), relations_of("mz_internal")


_OBJECT = "id text, oid oid, schema_id, name, owner_id"
_STATUS = "id, name, type, status, error text, frontier mz_timestamp"
RELATIONS: tuple[SystemRelation, ...] = (
    _catalog(
        "mz_sinks",
        "id text, oid oid, schema_id, name, owner_id, type, cluster_id, create_sql, on_id text, key text[],"
        " delta_updates bool",
        _sinks,
    ),
    _internal("mz_sink_statuses", f"{_STATUS}, lag_ms int8, retry_at timestamptz", _sink_statuses),
    _internal(
        "mz_sink_statistics",
        "id, split text, frontier mz_timestamp, lag_ms, transactions, rows, failures int8, error text,"
        " retry_at timestamptz",
        _sink_statistics,
    ),
    _internal(
        "mz_subscription_statuses",
        "id, name, on_id, status, session_id text, acknowledged_before mz_timestamp, acknowledged_at timestamptz,"
        " held interval, held_ms, held_ms_max int8, lapsed_at timestamptz",
        _subscription_statuses,
    ),
    _internal(
        "mz_sink_collections",
        "id text, position int4, collection_id, collection text, key text[], delta_updates bool, rows int8",
        _sink_collections,
    ),
    _internal("mz_source_statuses", f"{_STATUS}, stalls int8, retry_at timestamptz", _source_statuses),
    _internal(
        "mz_source_statistics",
        "id text, frontier, covered mz_timestamp, updates, open_times, open_updates, statements_waiting,"
        " bad_records, partial_files, rows, bytes int8, position text, snapshot_rows, snapshot_rows_total, lag_bytes,"
        " lag_ms int8",
        _source_statistics,
    ),
    _internal(
        "mz_source_stalls",
        "id text, time mz_timestamp, reason text, expected, arrived int8, curable bool, detail text",
        _source_stalls,
    ),
    _internal("mz_source_bad_records", "id, piece text, position int8, reason, raw text", _source_bad_records),
    _catalog("mz_connections", f"{_OBJECT}, type, create_sql text", _connections),
    _catalog("mz_secrets", f"{_OBJECT}, origin text", _secrets),
)
