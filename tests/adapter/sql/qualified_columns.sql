# Columns that are written with the schema of their table
> CREATE TABLE t (x int, v text)
CREATE TABLE

> CREATE SCHEMA other
CREATE SCHEMA

> CREATE TABLE other.t (x int, w text)
CREATE TABLE

> INSERT INTO t VALUES (1, 'a'), (2, 'b')
INSERT 0 2

> INSERT INTO other.t VALUES (7, 'z')
INSERT 0 1

> SELECT public.t.x, everview.public.t.v FROM t WHERE public.t.x > 1
x|v
2|b

> SELECT public.t.* FROM t ORDER BY public.t.x DESC LIMIT 1
x|v
2|b

> SELECT nosuch.t.x FROM t
! 42P01 invalid reference to FROM-clause entry for table "t"

> SELECT nosuch.public.t.x FROM t
! 42P01 invalid reference to FROM-clause entry for table "t"

> SELECT nosuch.t.* FROM t
! 42P01 invalid reference to FROM-clause entry for table "t"

# An alias has no schema, and neither have queries
> SELECT public.a.x FROM t AS a
! 42P01 invalid reference to FROM-clause entry for table "a"

> SELECT public.t.x FROM t AS a
! 42P01 missing FROM-clause entry for table "t"

> SELECT public.t.x FROM (SELECT 1 AS x) AS t
! 42P01 invalid reference to FROM-clause entry for table "t"

# A table is hidden by one of the same schema only
> SELECT (SELECT public.t.x + t.x FROM other.t) AS s FROM public.t ORDER BY 1
s
8
9

> SELECT pg_catalog.pg_class.relname FROM pg_class WHERE pg_catalog.pg_class.relname = 'nothing'
relname

# Statements that change a table
> UPDATE t SET x = other.t.x
! 42P01 invalid reference to FROM-clause entry for table "t"

> UPDATE t SET x = public.t.x + 1 WHERE public.t.x = 2 RETURNING public.t.x, t.v
x|v
3|b

> DELETE FROM t WHERE nosuch.t.x = 99
! 42P01 invalid reference to FROM-clause entry for table "t"

> DELETE FROM t WHERE public.t.x = 99 RETURNING nosuch.t.x
! 42P01 invalid reference to FROM-clause entry for table "t"

> INSERT INTO t VALUES (5, 'e') RETURNING public.t.x
x
5

> INSERT INTO t AS n VALUES (6, 'f') RETURNING n.x
x
6

> INSERT INTO other.t AS n (x, w) VALUES (6, 'f')
INSERT 0 1

> INSERT INTO t AS n VALUES (6, 'f') RETURNING t.x
! 42P01 missing FROM-clause entry for table "t"

# Stored queries give each relation an alias, so columns are stored without schemas
> CREATE VIEW w AS SELECT nosuch.t.x FROM t
! 42P01 invalid reference to FROM-clause entry for table "t"

> CREATE VIEW w AS SELECT public.t.x, everview . public /* here */ . t . v FROM t WHERE public.t.x > 5
CREATE VIEW

> SELECT definition FROM pg_views WHERE viewname = 'w'
definition
SELECT t.x, t . v FROM everview.public.t AS t WHERE t.x > 5

> SELECT * FROM w
x|v
6|f

> CREATE MATERIALIZED VIEW m AS SELECT (SELECT public.t.x FROM other.t) FROM public.t
! 0A000 telling relations called "t" apart by schemas in a stored query is not supported

> CREATE MATERIALIZED VIEW m AS SELECT public.t.x, (SELECT count(*) FROM other.t AS o) AS c FROM public.t
CREATE MATERIALIZED VIEW

> CREATE INDEX i ON t (nosuch.t.x)
! 42P01 invalid reference to FROM-clause entry for table "t"
