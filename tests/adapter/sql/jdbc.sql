# What a JDBC driver asks of the catalogs for DatabaseMetaData: the same shapes, in fewer columns
> CREATE TABLE items (id int NOT NULL, name text DEFAULT 'none', price numeric(8,2), tags text[])
CREATE TABLE

> COMMENT ON TABLE items IS 'what is sold'
COMMENT

> COMMENT ON COLUMN items.price IS 'in euros'
COMMENT

> CREATE VIEW cheap AS SELECT id FROM items WHERE price < 10
CREATE VIEW

> CREATE MATERIALIZED VIEW totals AS SELECT name, sum(price) AS total FROM items GROUP BY name
CREATE MATERIALIZED VIEW

> CREATE INDEX items_key ON items (name, upper(name), id)
CREATE INDEX

> SELECT NULL AS "TABLE_CAT", n.nspname AS "TABLE_SCHEM", c.relname AS "TABLE_NAME", CASE n.nspname ~ '^pg_' OR n.nspname = 'information_schema' WHEN true THEN 'SYSTEM' WHEN false THEN CASE c.relkind WHEN 'r' THEN 'TABLE' WHEN 'i' THEN 'INDEX' WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE NULL END ELSE NULL END AS "TABLE_TYPE", d.description AS "REMARKS" FROM pg_catalog.pg_namespace n, pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_description d ON (c.oid = d.objoid AND d.objsubid = 0 AND d.classoid = 'pg_class'::regclass) WHERE c.relnamespace = n.oid AND n.nspname LIKE 'public' ORDER BY "TABLE_TYPE", "TABLE_SCHEM", "TABLE_NAME"
TABLE_CAT|TABLE_SCHEM|TABLE_NAME|TABLE_TYPE|REMARKS
NULL|public|items_key|INDEX|NULL
NULL|public|totals|MATERIALIZED VIEW|NULL
NULL|public|items|TABLE|what is sold
NULL|public|cheap|VIEW|NULL

> SELECT nspname AS "TABLE_SCHEM" FROM pg_catalog.pg_namespace WHERE nspname <> 'pg_toast' AND (nspname !~ '^pg_temp_' OR nspname = (pg_catalog.current_schemas(true))[1]) AND nspname LIKE 'pub%'
TABLE_SCHEM
public

> SELECT * FROM (SELECT current_database() AS current_database, n.nspname, c.relname, a.attname, a.atttypid, a.attnotnull OR (t.typtype = 'd' AND t.typnotnull) AS attnotnull, a.atttypmod, row_number() OVER (PARTITION BY a.attrelid ORDER BY a.attnum) AS attnum, nullif(a.attidentity, '') AS attidentity, pg_catalog.pg_get_expr(def.adbin, def.adrelid) AS adsrc, dsc.description, t.typbasetype, t.typtype FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_class c ON (c.relnamespace = n.oid) JOIN pg_catalog.pg_attribute a ON (a.attrelid = c.oid) JOIN pg_catalog.pg_type t ON (a.atttypid = t.oid) LEFT JOIN pg_catalog.pg_attrdef def ON (a.attrelid = def.adrelid AND a.attnum = def.adnum) LEFT JOIN pg_catalog.pg_description dsc ON (c.oid = dsc.objoid AND a.attnum = dsc.objsubid) LEFT JOIN pg_catalog.pg_class dc ON (dc.oid = dsc.classoid AND dc.relname = 'pg_class') WHERE c.relkind IN ('r', 'p', 'v', 'f', 'm') AND a.attnum > 0 AND NOT a.attisdropped AND c.relname LIKE 'items') AS c WHERE true AND attname LIKE '%' ORDER BY nspname, c.relname, attnum
current_database|nspname|relname|attname|atttypid|attnotnull|atttypmod|attnum|attidentity|adsrc|description|typbasetype|typtype
everview|public|items|id|23|t|-1|1|NULL|NULL|NULL|0|b
everview|public|items|name|25|f|-1|2|NULL|'none'|NULL|0|b
everview|public|items|price|1700|f|524294|3|NULL|NULL|in euros|0|b
everview|public|items|tags|1009|f|-1|4|NULL|NULL|NULL|0|b

> SELECT t.typname, t.oid FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON (t.typnamespace = n.oid) WHERE n.nspname <> 'pg_toast' AND (t.typrelid = 0 OR (SELECT c.relkind = 'c' FROM pg_catalog.pg_class c WHERE c.oid = t.typrelid)) AND t.typname IN ('int4', 'mz_timestamp') ORDER BY 1
typname|oid
int4|23
mz_timestamp|16552

> SELECT tmp.name, tmp.place, trim(BOTH '"' FROM pg_catalog.pg_get_indexdef(tmp.ci_oid, tmp.place, false)) AS column_name, CASE tmp.am_name WHEN 'btree' THEN CASE tmp.i_indoption[tmp.place - 1] & 1::smallint WHEN 1 THEN 'D' ELSE 'A' END ELSE NULL END AS asc_or_desc, tmp.non_unique FROM (SELECT ci.relname AS name, NOT i.indisunique AS non_unique, (information_schema._pg_expandarray(i.indkey)).n AS place, ci.oid AS ci_oid, i.indoption AS i_indoption, am.amname AS am_name FROM pg_catalog.pg_class ct JOIN pg_catalog.pg_namespace n ON (ct.relnamespace = n.oid) JOIN pg_catalog.pg_index i ON (ct.oid = i.indrelid) JOIN pg_catalog.pg_class ci ON (ci.oid = i.indexrelid) JOIN pg_catalog.pg_am am ON (ci.relam = am.oid) WHERE ct.relname = 'items') AS tmp ORDER BY name, place
name|place|column_name|asc_or_desc|non_unique
items_key|1|name|A|t
items_key|2|upper(name)|A|t
items_key|3|id|A|t

> SELECT result.table_name, result.column_name, result.key_seq FROM (SELECT ct.relname AS table_name, a.attname AS column_name, (information_schema._pg_expandarray(i.indkey)).n AS key_seq, information_schema._pg_expandarray(i.indkey) AS keys, a.attnum AS a_attnum FROM pg_catalog.pg_class ct JOIN pg_catalog.pg_attribute a ON (ct.oid = a.attrelid) JOIN pg_catalog.pg_index i ON (a.attrelid = i.indrelid) WHERE ct.relname = 'items' AND NOT i.indisprimary) AS result WHERE result.a_attnum = (result.keys).x ORDER BY result.key_seq
table_name|column_name|key_seq
items|name|1
items|id|3

> SELECT string_agg(word, ',' ORDER BY word) FROM pg_catalog.pg_get_keywords() WHERE word <> ALL ('{all,and,any}'::text[]) AND word LIKE 's%'
string_agg
select,session_user,setof,similar,sink,smallint,snapshot,some,source,subscribe,substring,symmetric,system_user

> SELECT e.typdelim, e.typname FROM pg_catalog.pg_type t, pg_catalog.pg_type e WHERE t.oid = 1007 AND t.typelem = e.oid
typdelim|typname
,|int4

> SELECT jsonb_each('{"a": 1}')
! 0A000 a composite value is not supported

> SELECT indkey, indkey[0] AS first, array_lower(indkey, 1) AS lower FROM pg_index
indkey|first|lower
{2,0,1}|2|0

> SELECT unnest(indkey) AS key, generate_subscripts(indkey, 1) AS place FROM pg_index
key|place
2|0
0|1
1|2
