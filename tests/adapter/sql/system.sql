# Relations and functions of the system
> CREATE TABLE t (a int NOT NULL, b varchar(10) DEFAULT 'x', c numeric(10,2), d text[])
CREATE TABLE

> CREATE VIEW v AS SELECT a, b FROM t
CREATE VIEW

> CREATE MATERIALIZED VIEW m AS SELECT b, count(*) AS n FROM t GROUP BY b
CREATE MATERIALIZED VIEW

> CREATE INDEX i ON t (a, lower(b))
CREATE INDEX

> COMMENT ON TABLE t IS 'hello'
COMMENT

> COMMENT ON COLUMN t.a IS 'first'
COMMENT

> SHOW TABLES
name|comment
t|hello

> SHOW VIEWS
name|comment
v|

> SHOW MATERIALIZED VIEWS
name|comment
m|

> SHOW COLUMNS FROM t
name|nullable|type|comment
a|f|integer|first
b|t|character varying(10)|
c|t|numeric(10,2)|
d|t|text[]|

> SHOW INDEXES ON t
name|on|key
i|t|{a,lower(b)}

> SHOW OBJECTS LIKE 'm%'
name|type|comment
m|materialized-view|

> SHOW SCHEMAS LIKE 'p%'
name
pg_catalog
public

> SHOW TABLES FROM nope
! 3F000 schema "nope" does not exist

> SHOW CREATE TABLE t
name|create_sql
everview.public.t|CREATE TABLE everview.public.t (a integer NOT NULL, b character varying(10) DEFAULT 'x', c numeric(10,2), d text[])

> SHOW CREATE INDEX i
name|create_sql
everview.public.i|CREATE INDEX i ON everview.public.t (a, lower(b))

> SHOW CREATE VIEW t
! 42809 "t" is not a view

> SELECT n.nspname, c.relname, c.relkind FROM pg_catalog.pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'public' ORDER BY 2
nspname|relname|relkind
public|i|i
public|m|m
public|t|r
public|v|v

> SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute WHERE attrelid = 't'::regclass ORDER BY attnum
attname|format_type|attnotnull
a|integer|t
b|character varying(10)|f
c|numeric(10,2)|f
d|text[]|f

> SELECT 'nope'::regclass
! 42P01 relation "nope" does not exist

> SELECT pg_get_viewdef('v'::regclass), obj_description('t'::regclass, 'pg_class'), col_description('t'::regclass, 1)
pg_get_viewdef|obj_description|col_description
 SELECT a, b FROM everview.public.t AS t;|hello|first

> SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1
table_name|table_type
m|MATERIALIZED VIEW
t|BASE TABLE
v|VIEW

> SELECT column_name, data_type, is_nullable, column_default FROM information_schema.columns WHERE table_name = 't' ORDER BY ordinal_position
column_name|data_type|is_nullable|column_default
a|integer|NO|NULL
b|character varying|YES|'x'
c|numeric|YES|NULL
d|ARRAY|YES|NULL

> SELECT current_user, current_database(), current_schema(), current_schemas(false), session_user
current_user|current_database|current_schema|current_schemas|session_user
everview|everview|public|{public}|everview

> SELECT pg_get_indexdef(indexrelid), indkey FROM pg_index WHERE indrelid = 't'::regclass
pg_get_indexdef|indkey
CREATE INDEX i ON public.t USING btree (a, lower(b))|{1,0}

> SELECT hydrated FROM mz_internal.mz_hydration_statuses h JOIN mz_objects o ON o.id = h.object_id WHERE name = 'i'
hydrated
t

> SELECT o.name, r.name FROM mz_internal.mz_object_dependencies d JOIN mz_objects o ON o.id = d.object_id
    JOIN mz_objects r ON r.id = d.referenced_object_id ORDER BY 1
name|name
i|t
m|t
v|t

> SELECT count(*) FROM mz_internal.mz_frontiers
count
2

> SELECT event_type, object_type FROM mz_audit_events WHERE details->>'name' = 'everview.public.v'
event_type|object_type
create|view

> SELECT extract(year FROM now()) >= 2023, now() = current_timestamp, pg_typeof_missing()
! 42883 function pg_typeof_missing() does not exist

> INSERT INTO pg_class VALUES (1)
! 42P01 relation "pg_class" does not exist

> CREATE TABLE pg_catalog.x (a int)
! 42501 permission denied for schema "pg_catalog"

# Schemas, databases, roles
> CREATE SCHEMA s
CREATE SCHEMA

> CREATE TABLE s.t (z int)
CREATE TABLE

> SET search_path = s, public
SET

> SELECT * FROM t
z

> SELECT a FROM public.t
a

> SELECT a FROM everview.public.t
a

> DROP SCHEMA s
! 2BP01 cannot drop schema "s" because it is not empty

> DROP SCHEMA s CASCADE
DROP SCHEMA

> SELECT a FROM t
a

> CREATE DATABASE d
CREATE DATABASE

> CREATE DATABASE d
! 42P04 database "d" already exists

> CREATE TABLE d.public.t (other int)
CREATE TABLE

> SELECT * FROM d.public.t
other

> DROP DATABASE d CASCADE
DROP DATABASE

> CREATE ROLE ann LOGIN PASSWORD 'secret'
CREATE ROLE

> ALTER TABLE t OWNER TO ann
ALTER TABLE

> DROP ROLE ann
! 2BP01 role "ann" cannot be dropped because some objects depend on it

> CREATE ROLE ann
! 42710 role "ann" already exists
