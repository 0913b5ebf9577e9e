"""PostgreSQL's words that are not just names, by what they may name without quotes: nothing, types and functions, or
columns and tables; and those that cannot name a result's column without AS."""

from __future__ import annotations

_RESERVED = """
    all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create
    current_catalog current_date current_role current_time current_timestamp current_user default deferrable desc
    distinct do else end except false fetch for foreign from grant group having in initially intersect into lateral
    leading limit localtime localtimestamp not null offset on only or order placing primary references returning select
    session_user some symmetric system_user table then to trailing true union unique user using variadic when where
    window with
"""
_TYPES_AND_FUNCTIONS = """
    authorization binary collation concurrently cross current_schema freeze full ilike inner is isnull join left like
    natural notnull outer overlaps right similar tablesample verbose
"""
_COLUMNS = """
    between bigint bit boolean char character coalesce dec decimal exists extract float greatest grouping inout int
    integer interval json json_array json_arrayagg json_exists json_object json_objectagg json_query json_scalar
    json_serialize json_table json_value least merge_action national nchar none normalize nullif numeric out overlay
    position precision real row setof smallint substring time timestamp treat trim values varchar xmlattributes
    xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable
"""
_NEED_AS = """
    array as char character create day except fetch filter for from grant group having hour intersect into isnull limit
    minute month notnull offset on order over overlaps precision returning second to union varying where window with
    within without year
"""
RESERVED = tuple(_RESERVED.split())
TYPES_AND_FUNCTIONS = tuple(_TYPES_AND_FUNCTIONS.split())
COLUMNS = tuple(_COLUMNS.split())
NEED_AS = frozenset(_NEED_AS.split())
KEYWORDS = frozenset((*RESERVED, *TYPES_AND_FUNCTIONS, *COLUMNS))
