# What the catalog says of tables and views
% no-view no-spark

> CREATE TABLE ct (a int NOT NULL, b text DEFAULT 'x', c numeric(6,2), d varchar(10), e timestamp, f int[])
CREATE TABLE

> CREATE VIEW cv AS SELECT a, b FROM ct
CREATE VIEW

> SELECT relname::text, relkind FROM pg_class WHERE relname IN ('ct', 'cv')
relname:text|relkind:"char"
ct|r
cv|v

> SELECT attname::text, attnum, attnotnull FROM pg_attribute WHERE attrelid = 'ct'::regclass AND attnum > 0 ORDER BY attnum
attname:text|attnum:int2|attnotnull:bool
a|1|t
b|2|f
c|3|f
d|4|f
e|5|f
f|6|f

> SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'ct'::regclass AND attnum > 0 ORDER BY attnum
attname:text|format_type:text
a|integer
b|text
c|numeric(6,2)
d|character varying(10)
e|timestamp without time zone
f|integer[]

> SELECT typname::text, typlen, typtype FROM pg_type WHERE typname IN ('int4', 'text', 'numeric', 'bool') ORDER BY typname
typname:text|typlen:int2|typtype:"char"
bool|1|b
int4|4|b
numeric|-1|b
text|-1|b

> SELECT oid, typname::text FROM pg_type WHERE oid IN (16, 20, 21, 23, 25, 700, 701, 1043, 1082, 1114, 1184, 1700, 2950, 3802) ORDER BY oid
oid:oid|typname:text
16|bool
20|int8
21|int2
23|int4
25|text
700|float4
701|float8
1043|varchar
1082|date
1114|timestamp
1184|timestamptz
1700|numeric
2950|uuid
3802|jsonb

> SELECT column_name::text, data_type::text, is_nullable::text FROM information_schema.columns WHERE table_name = 'ct' ORDER BY ordinal_position
column_name:text|data_type:text|is_nullable:text
a|integer|NO
b|text|YES
c|numeric|YES
d|character varying|YES
e|timestamp without time zone|YES
f|ARRAY|YES

> SELECT column_name::text, ordinal_position, column_default::text FROM information_schema.columns WHERE table_name = 'cv' ORDER BY ordinal_position
column_name:text|ordinal_position:int4|column_default:text
a|1|NULL
b|2|NULL

> SELECT numeric_precision, numeric_scale FROM information_schema.columns WHERE table_name = 'ct' AND column_name = 'c'
numeric_precision:int4|numeric_scale:int4
6|2

> SELECT character_maximum_length FROM information_schema.columns WHERE table_name = 'ct' AND column_name = 'd'
character_maximum_length:int4
10

> SELECT table_name::text, table_type::text FROM information_schema.tables WHERE table_name IN ('ct', 'cv') ORDER BY table_name
table_name:text|table_type:text
ct|BASE TABLE
cv|VIEW

> SELECT tablename::text FROM pg_tables WHERE tablename = 'ct'
tablename:text
ct

> SELECT viewname::text FROM pg_views WHERE viewname = 'cv'
viewname:text
cv

> SELECT nspname::text FROM pg_namespace WHERE nspname IN ('pg_catalog', 'information_schema', 'public') ORDER BY nspname
nspname:text
information_schema
pg_catalog
public

> SELECT c.relname::text, n.nspname = current_schema() FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relname = 'ct'
relname:text|?column?:bool
ct|t

> SELECT 'nope'::regclass
! 42P01 relation "nope" does not exist

> SELECT format_type(23, NULL), format_type(1700, NULL), format_type(1043, 14), format_type(1009, NULL)
format_type:text|format_type:text|format_type:text|format_type:text
integer|numeric|character varying(10)|text[]

> SELECT pg_get_viewdef('cv'::regclass) IS NOT NULL
?column?:bool
t

> SELECT to_regclass('ct') IS NOT NULL, to_regclass('nope') IS NULL
?column?:bool|?column?:bool
t|t

> SELECT count(*) FROM pg_index WHERE indrelid = 'ct'::regclass
count:int8
0

> SELECT current_user = session_user, current_database() IS NOT NULL, pg_backend_pid() > 0
?column?:bool|?column?:bool|?column?:bool
t|t|t

> SELECT version() LIKE 'PostgreSQL%'
?column?:bool
t

> SELECT current_setting('standard_conforming_strings'), current_setting('nope', true) IS NULL
current_setting:text|?column?:bool
on|t

> SELECT has_table_privilege('ct', 'SELECT'), pg_table_is_visible('ct'::regclass)
has_table_privilege:bool|pg_table_is_visible:bool
t|t

> SELECT obj_description('ct'::regclass, 'pg_class')
obj_description:text
NULL

> COMMENT ON TABLE ct IS 'a table'
COMMENT

> SELECT obj_description('ct'::regclass, 'pg_class')
obj_description:text
a table

> COMMENT ON COLUMN ct.a IS 'a column'
COMMENT

> SELECT col_description('ct'::regclass, 1)
col_description:text
a column

> COMMENT ON TABLE nope IS 'x'
! 42P01 relation "nope" does not exist

> SELECT quote_ident('ct')
quote_ident:text
ct

> SELECT extname::text FROM pg_extension WHERE extname = 'nope'
extname:text

> SELECT count(*) FROM pg_attrdef WHERE adrelid = 'ct'::regclass
count:int8
1

> SELECT array_length(current_schemas(false), 1)
array_length:int4
1

> SELECT relname::text FROM pg_class WHERE relname LIKE 'ct%' AND relkind IN ('r', 'v')
relname:text
ct
