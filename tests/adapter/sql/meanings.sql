# What is written has its meaning or is refused by name. Clusters: there is one.
> CREATE TABLE t (a int, b text COLLATE "C")
CREATE TABLE

> INSERT INTO t VALUES (2, 'x'), (1, 'y')
INSERT 0 2

> CREATE MATERIALIZED VIEW v IN CLUSTER nope AS SELECT a FROM t
! 42704 cluster "nope" does not exist

> CREATE MATERIALIZED VIEW v IN CLUSTER default AS SELECT a FROM t
CREATE MATERIALIZED VIEW

> CREATE MATERIALIZED VIEW w IN CLUSTER "default" AS SELECT a FROM t
CREATE MATERIALIZED VIEW

> CREATE MATERIALIZED VIEW r REPLACING v IN CLUSTER nope AS SELECT a FROM t
! 42704 cluster "nope" does not exist

> CREATE INDEX i IN CLUSTER "DEFAULT" ON t (a)
! 42704 cluster "DEFAULT" does not exist

> CREATE DEFAULT INDEX IN CLUSTER nope ON t
! 42704 cluster "nope" does not exist

> CREATE SOURCE s IN CLUSTER nope FROM LOAD GENERATOR COUNTER
! 42704 cluster "nope" does not exist

> CREATE SINK s IN CLUSTER nope FROM t INTO sqlite (path 'x')
! 42704 cluster "nope" does not exist

> SET cluster = 'nope'
! 42704 cluster "nope" does not exist

> SELECT set_config('cluster', 'nope', false)
! 42704 cluster "nope" does not exist

> SET cluster = default
SET

> SET cluster = 'default'
SET

> SET LOCAL cluster TO "default"
SET

# Options
> CREATE VIEW p WITH (RETAIN HISTORY FOR '1h') AS SELECT a FROM t
! 0A000 RETAIN HISTORY of a view that is not materialized is not supported

> CREATE VIEW p WITH (security_barrier) AS SELECT a FROM t
! 22023 a view has no option SECURITY_BARRIER

> CREATE VIEW p IN CLUSTER default AS SELECT a FROM t
! 42601 syntax error at or near "IN"

> CREATE INDEX i ON t (a) WITH (fillfactor = 70)
! 22023 an index has no option FILLFACTOR

> CREATE INDEX i ON t USING gin (a)
! 42704 access method "gin" does not exist

> CREATE INDEX i ON t USING btree (a)
CREATE INDEX

> CREATE TABLE u (a int) WITH (fillfactor = 70)
! 22023 unknown option FILLFACTOR

> CREATE TABLE u (a int) WITH (RETAIN HISTORY FOR '1h', RETAIN HISTORY FOR '2h')
! 42601 option RETAIN HISTORY specified more than once

> CREATE TABLE u (a int NOT NULL NULL)
! 42601 syntax error at or near "NULL"

> CREATE TABLE u (a int DEFAULT 1 NOT NULL DEFAULT 2)
! 42601 syntax error at or near "DEFAULT"

> CREATE TABLE u (a text COLLATE "de_DE")
! 0A000 the collation "de_DE" is not supported

> CREATE SOURCE s FROM LOAD GENERATOR COUNTER (TICK INTERVAL '1s', TICK INTERVAL '2s')
! 42601 option TICK INTERVAL specified more than once

> COPY t TO STDOUT (FORMAT csv, FORMAT text)
! 42601 option FORMAT specified more than once

> SUBSCRIBE t WITH (SNAPSHOT) WITH (PROGRESS)
! 42601 syntax error at or near "WITH"

> SUBSCRIBE t WITH (SNAPSHOT, SNAPSHOT = false)
! 42601 option SNAPSHOT specified more than once

> SUBSCRIBE t AS OF 5 UP TO 6 AS OF 7
! 42601 syntax error at or near "AS"

> SUBSCRIBE t ENVELOPE UPSERT (KEY (a)) ENVELOPE DEBEZIUM (KEY (a))
! 42601 syntax error at or near "ENVELOPE"

> CREATE SINK s FROM t INTO sqlite (path 'x') WITH (join) WITH (splits 2)
! 42601 syntax error at or near "WITH"

> CREATE ROLE maker CREATEDB
! 0A000 the attribute CREATEDB is not supported

> CREATE ROLE maker NOCREATEDB NOCREATEROLE
CREATE ROLE

> CREATE SCHEMA theirs AUTHORIZATION maker
CREATE SCHEMA

> SELECT r.name FROM mz_schemas s JOIN mz_roles r ON r.id = s.owner_id WHERE s.name = 'theirs'
name
maker

> CREATE SCHEMA theirs2 AUTHORIZATION nobody
! 42704 role "nobody" does not exist

> DROP INDEX i ON t
! 42601 syntax error at or near "ON"

# EXPLAIN
> EXPLAIN (ANALYZE) SELECT 1
! 0A000 EXPLAIN (ANALYZE) is not supported

> EXPLAIN (ANALYZE false, COSTS off, FORMAT text) SELECT 1
Plan
Constant (1)
Engine: rows, in the server

> EXPLAIN (FORMAT json) SELECT 1
! 0A000 EXPLAIN of a plan AS JSON is not supported

> EXPLAIN PLAN WITH (arity) FOR SELECT 1
! 22023 EXPLAIN has no option ARITY

> EXPLAIN PLAN AS TEXT FOR SELECT 1
Plan
Constant (1)
Engine: rows, in the server

> EXPLAIN TIMESTAMP AS XML FOR SELECT 1
! 42601 syntax error at or near "XML"

# AS OF
> SELECT name FROM mz_objects AS OF 5
! 0A000 AS OF is not supported for relations of the system

> SELECT t.a FROM t JOIN pg_class c ON c.oid = t.a AS OF 5
! 0A000 AS OF is not supported for relations of the system

> EXPLAIN TIMESTAMP FOR SELECT name FROM mz_objects AS OF 5
! 0A000 AS OF is not supported for relations of the system

> SELECT a, b FROM t AS OF AT LEAST 0 ORDER BY a LIMIT 1
a|b
1|y

> SELECT a, b FROM t ORDER BY a LIMIT 1 AS OF AT LEAST 0
a|b
1|y

> SELECT a FROM t AS OF AT LEAST 0 WHERE a = 1
! 42601 syntax error at or near "WHERE"

# Settings
> SET extra_float_digits = 0
! 22023 invalid value for parameter "extra_float_digits": "0"

> SET DateStyle = 'ISO, DMY'
! 22023 invalid value for parameter "DateStyle": "ISO, DMY"

> SET DateStyle = 'ISO, MDY'
SET

> SET jit = on
! 22023 invalid value for parameter "jit": "on"

> SET jit = off
SET

> SET default_table_access_method = columnar
! 22023 invalid value for parameter "default_table_access_method": "columnar"

> SET client_min_messages = loud
! 22023 invalid value for parameter "client_min_messages": "loud"

> SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY
SET

> INSERT INTO t VALUES (3, 'z')
! 25006 cannot write in a read-only transaction

> SHOW transaction_isolation
transaction_isolation
strict serializable

> SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE READ WRITE
SET

> INSERT INTO t VALUES (3, 'z')
INSERT 0 1

> SHOW transaction_isolation
transaction_isolation
serializable

# EXPLAIN says whether an index serves a query
> CREATE TABLE served (k int, v text)
CREATE TABLE

> CREATE INDEX served_k ON served (k)
CREATE INDEX

> EXPLAIN SELECT k, v FROM served WHERE k = 1 -- order by nothing: the lines come as they are
Plan
Project #2, #3
  Map #2 = #0, #3 = #1
    Filter eq(#0, 1)
      Get everview.public.served
Used indexes:
  everview.public.served_k
Engine: rows, in the server

> EXPLAIN SELECT k, v FROM served WHERE v = 'a' -- order by nothing
Plan
Project #2, #3
  Map #2 = #0, #3 = #1
    Filter eq(#1, 'a')
      Get everview.public.served
Engine: rows, in the server

> UPDATE served SET k[1] = 2
! 0A000 an assignment to a part of a value is not supported

> UPDATE served SET other.k = 2
! 42601 SET takes the name of a column of the table

# Rows that occur too often to be told one by one are counted all the same
> CREATE TABLE often (a int)
CREATE TABLE

> INSERT INTO often SELECT 1 FROM generate_series(1, 100000)
INSERT 0 100000

> SELECT count(*), count(x.a) FROM often x, often y, often z
count|count
1000000000000000|1000000000000000

> SELECT count(*) FROM often x, often y, often z, often q
! 22003 bigint out of range

# Adjacent strings, a collation of PostgreSQL's own, and the dimension of an array
> SELECT E'first'
  'second' AS s
s
firstsecond

> SELECT 'a' COLLATE pg_catalog."default" AS a
a
a

> SELECT 'a' COLLATE nosuch."C"
! 0A000 collation "nosuch.C" is not supported

> SELECT unnest(ARRAY[7, 8]) AS v, generate_subscripts(ARRAY[7, 8], 1) AS place
v|place
7|1
8|2

> SELECT unnest(ARRAY[7, 8]) AS v, generate_subscripts(ARRAY[7, 8], 2) AS place
v|place
7|NULL
8|NULL

> SELECT unnest(ARRAY[7, 8]), generate_subscripts(ARRAY[7, 8], 1, true)
! 0A000 several set-returning functions in a select list is not supported
