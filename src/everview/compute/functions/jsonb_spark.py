"""jsonb in Spark SQL: canonical text taken apart and put together.

A regular expression finds the values inside an object or array, up to `_DEPTH` levels of nesting. All repetitions are
possessive, which Java runs as loops: no text is too long for the stack.
"""

from __future__ import annotations

from everview.compute.functions.cast_spark import float_text, moment_text, text_sql
from everview.compute.functions.spark_sql import let, once
from everview.compute.ir.types import Kind, SqlType, element_of

_DEPTH = 12
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'


def _nested(depth: int) -> str:
    inner = f"|{_nested(depth - 1)}" if depth else ""
    return rf'[\[{{](?:{_STRING}|[^\[\]{{}}"]++{inner})*+[\]}}]'


_VALUE = rf'(?:{_STRING}|{_nested(_DEPTH)}|[^\[\]{{}}",: ]++)'


def _literal(pattern: str) -> str:
    return "'" + pattern.replace("\\", "\\\\") + "'"


_KEYS = _literal(f"({_STRING}): {_VALUE}")
_VALUES = _literal(f"{_STRING}: ({_VALUE})")
_ELEMENTS = _literal(f"({_VALUE})")


def _inner(json: str) -> str:
    return f"substring({json}, 2, length({json}) - 2)"


def keys(json: str) -> str:
    """The keys of an object, as JSON strings."""
    return f"regexp_extract_all({_inner(json)}, {_KEYS}, 1)"


def values(json: str) -> str:
    """The values of an object, in the order of its keys."""
    return f"regexp_extract_all({_inner(json)}, {_VALUES}, 1)"


def elements(json: str) -> str:
    return f"regexp_extract_all({_inner(json)}, {_ELEMENTS}, 1)"


def is_object(json: str) -> str:
    return f"startswith({json}, '{{')"


def is_array(json: str) -> str:
    return f"startswith({json}, '[')"


def quote(text: str) -> str:
    """A JSON string of a text."""
    return let("CASE WHEN k.a IS NOT NULL THEN substring(to_json(k), 6, length(to_json(k)) - 6) END", text, name="k")


def unquote(json: str) -> str:
    """The text of a JSON string."""
    return f"get_json_object(concat('[', {json}, ']'), '$[0]')"


def as_text(json: str) -> str:
    """The result of ->>: NULL of null, the text of a string, else the JSON."""
    body = f"CASE WHEN n.a = 'null' THEN NULL WHEN startswith(n.a, '\"') THEN {unquote('n.a')} ELSE n.a END"
    return let(body, json, name="n")


def field(json: str, key: str) -> str:
    """The value under a key (a text) of what may be an object."""
    found = f"try_element_at(map_from_arrays({keys('o.a')}, {values('o.a')}), o.b)"
    return let(f"CASE WHEN {is_object('o.a')} AND o.b IS NOT NULL THEN {found} END", json, quote(key), name="o")


def item(json: str, index: str) -> str:
    """The element at an index from 0 on, or from the end, of what may be an array."""
    # The least and greatest of all integers are places in no array, and Spark cannot count to them.
    place = "CASE WHEN o.b < 0 THEN greatest(o.b, -2147483647) ELSE o.b + 1 END"
    found = f"try_element_at({elements('o.a')}, {place})"
    scalar = f"NOT {is_object('o.a')} AND NOT {is_array('o.a')} AND o.b IN (0, -1) THEN o.a"
    body = f"CASE WHEN {is_array('o.a')} AND o.b < 2147483647 THEN {found} WHEN {scalar} END"
    return let(body, json, index, name="o")


def at_path(json: str, path: str) -> str:
    """The value at a path of keys and indexes."""
    by_index = item("s", "try_cast(p as int)")
    step = f"CASE WHEN {is_array('s')} AND p RLIKE '^[+-]?[0-9]+$' THEN {by_index} ELSE {field('s', 'p')} END"
    return f"CASE WHEN NOT exists({path}, p -> p IS NULL) THEN aggregate({path}, {json}, (s, p) -> {step}) END"


def object_sql(pairs: str) -> str:
    """The object of an array of structs: `k`, a text, and `v`, JSON. The last of equal keys counts."""
    last = "filter(q.a, (e, i) -> NOT exists(slice(q.a, i + 2, size(q.a)), f -> f.k = e.k))"
    ordered = f"array_sort(transform({last}, e -> struct(octet_length(e.k) as l, e.k as k, e.v as v)))"
    body = f"concat('{{', array_join(transform({ordered}, e -> concat({quote('e.k')}, ': ', e.v)), ', '), '}}')"
    return let(f"CASE WHEN NOT exists(q.a, e -> e.k IS NULL) THEN {body} END", pairs, name="q")


def array_sql(items: str) -> str:
    """The array of an array of JSON."""
    return f"concat('[', array_join({items}, ', '), ']')"


def merged(left: str, right: str) -> str:
    """The two together: objects by key, else arrays end to end, in which a value by itself is an array of one."""
    pairs = "concat(arrays_zip({}, {}), arrays_zip({}, {}))".format(
        keys("m.a"), values("m.a"), keys("m.b"), values("m.b")
    )
    both = object_sql(f"transform({pairs}, z -> struct({unquote('z.`0`')} as k, z.`1` as v))")
    lists = ", ".join(
        f"CASE WHEN {is_array(each)} THEN {elements(each)} ELSE array({each}) END" for each in ("m.a", "m.b")
    )
    body = (
        f"CASE WHEN {is_object('m.a')} AND {is_object('m.b')} THEN {both}"
        f" WHEN m.a IS NOT NULL AND m.b IS NOT NULL THEN {array_sql(f'concat({lists})')} END"
    )
    return let(body, left, right, name="m")


def without_keys(json: str, names: str) -> str:
    """An object without these keys (an array of texts), an array without these strings; NULL of anything else."""
    kept = "filter(arrays_zip({}, {}), z -> NOT array_contains(w.b, z.`0`))".format(keys("w.a"), values("w.a"))
    rest = f"concat('{{', array_join(transform({kept}, z -> concat(z.`0`, ': ', z.`1`)), ', '), '}}')"
    items = array_sql(f"filter({elements('w.a')}, z -> NOT array_contains(w.b, z))")
    quoted = f"transform(filter({names}, n -> n IS NOT NULL), n -> {quote('n')})"
    return let(
        f"CASE WHEN w.b IS NULL THEN NULL WHEN {is_object('w.a')} THEN {rest} WHEN {is_array('w.a')} THEN {items} END",
        json,
        quoted,
        name="w",
    )


def to_jsonb_sql(value: str, sql_type: SqlType, depth: int = 0) -> str:
    """A value of any type as JSON; NULL stays NULL."""
    kind = sql_type.kind
    if kind is Kind.JSONB:
        return value
    if kind in (Kind.BOOLEAN, Kind.INT2, Kind.INT4, Kind.INT8, Kind.MZ_TIMESTAMP):
        return f"cast({value} as string)"
    if kind is Kind.NUMERIC:
        plain = f"cast({value} as string)"
        return f"regexp_replace({plain}, '\\\\.?0+$', '')" if sql_type.scale else plain
    if kind in (Kind.FLOAT4, Kind.FLOAT8):
        plain = float_text("j.a", 400, -400)  # never with an exponent
        special = f"isnan(j.a) OR abs(j.a) = double('Infinity') THEN {quote(plain)}"
        return let(f"CASE WHEN {special} ELSE {plain} END", value, name="j")
    if kind is Kind.ARRAY:
        name = f"a{depth}"
        inner = to_jsonb_sql(name, element_of(sql_type), depth + 1)
        return array_sql(f"transform({value}, {name} -> coalesce({inner}, 'null'))")
    if kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        zone = ", '+00:00'" if kind is Kind.TIMESTAMPTZ else ""
        plain = "concat(replace(cast({} as string), ' ', 'T')" + zone + ")"
        return quote(once(value, lambda of: moment_text(of, sql_type, plain.format(of)), "k"))
    return quote(text_sql(value, sql_type))
