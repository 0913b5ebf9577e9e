# Tables, views, schemas: definitions and what they refuse
> CREATE TABLE a (x int NOT NULL, y text DEFAULT 'd')
CREATE TABLE

> CREATE TABLE IF NOT EXISTS a (z int)
CREATE TABLE

> CREATE TABLE a (z int)
! 42P07 relation "a" already exists

> CREATE TABLE "Mixed Case" ("A b" int, "select" text)
CREATE TABLE

> INSERT INTO "Mixed Case" VALUES (1, 'x')
INSERT 0 1

> SELECT "A b", "select" FROM "Mixed Case"
A b:int4|select:text
1|x

> SELECT * FROM Mixed
! 42P01 relation "mixed" does not exist

% everview-only
> CREATE TABLE empty ()
! 0A000 a table without columns is not supported

> CREATE VIEW v AS SELECT x, y || '!' AS z FROM a
CREATE VIEW

> INSERT INTO a VALUES (1, 'p'), (2, DEFAULT)
INSERT 0 2

> SELECT * FROM v ORDER BY x
x:int4|z:text
1|p!
2|d!

> CREATE VIEW v AS SELECT 1
! 42P07 relation "v" already exists

> CREATE OR REPLACE VIEW v AS SELECT x, y || '?' AS z FROM a
CREATE VIEW

> SELECT * FROM v ORDER BY x
x:int4|z:text
1|p?
2|d?

> CREATE VIEW w AS SELECT z, count(*) AS n FROM v GROUP BY z
CREATE VIEW

> SELECT * FROM w ORDER BY z
z:text|n:int8
d?|1
p?|1

> CREATE VIEW named (one, two) AS SELECT x, y FROM a
CREATE VIEW

> SELECT one, two FROM named ORDER BY one
one:int4|two:text
1|p
2|d

> CREATE VIEW wrong (one, two, three) AS SELECT x, y FROM a
! 42601 CREATE VIEW specifies more column names than columns

> CREATE VIEW broken AS SELECT nope FROM a
! 42703 column "nope" does not exist

> CREATE VIEW twice AS SELECT x, x FROM a
! 42701 column "x" specified more than once

> DROP TABLE a
! 2BP01 because other objects depend on it

> DROP VIEW v
! 2BP01 because other objects depend on it

> DROP VIEW w
DROP VIEW

> DROP TABLE nope
! 42P01 "nope" does not exist

> DROP TABLE IF EXISTS nope
DROP TABLE

> DROP VIEW IF EXISTS nope
DROP VIEW

> DROP TABLE v
! 42809 "v" is not a table

> DROP VIEW a
! 42809 "a" is not a view

% everview-only
> INSERT INTO v VALUES (1, 'x')
! 42809 cannot write to view "v"

% everview-only
> DELETE FROM v
! 42809 cannot write to view "v"

> ALTER TABLE a RENAME TO b
ALTER TABLE

> SELECT * FROM b ORDER BY x
x:int4|y:text
1|p
2|d

> SELECT * FROM a
! 42P01 relation "a" does not exist

> SELECT * FROM v ORDER BY x
x:int4|z:text
1|p?
2|d?

> CREATE TABLE r (x int, y text)
CREATE TABLE

> INSERT INTO r VALUES (1, 'p')
INSERT 0 1

> ALTER TABLE r RENAME COLUMN y TO label
ALTER TABLE

> SELECT label FROM r ORDER BY x
label:text
p

> ALTER TABLE r RENAME COLUMN nope TO other
! 42703 does not exist

> ALTER TABLE r RENAME COLUMN x TO label
! 42701 column "label" of relation "r" already exists

> ALTER TABLE nope RENAME TO c
! 42P01 relation "nope" does not exist

> ALTER VIEW named RENAME TO renamed
ALTER VIEW

> SELECT count(*) FROM renamed
count:int8
2

> CREATE SCHEMA extra
CREATE SCHEMA

> CREATE SCHEMA extra
! 42P06 schema "extra" already exists

> CREATE SCHEMA IF NOT EXISTS extra
CREATE SCHEMA

> CREATE TABLE extra.t (n int)
CREATE TABLE

> INSERT INTO extra.t VALUES (5)
INSERT 0 1

> SELECT * FROM extra.t
n:int4
5

> SELECT t.n FROM extra.t
n:int4
5

> SELECT extra.t.n FROM extra.t
n:int4
5

> SELECT * FROM t
! 42P01 relation "t" does not exist

> CREATE TABLE nowhere.t (n int)
! 3F000 schema "nowhere" does not exist

> CREATE VIEW extra.v AS SELECT n + 1 AS m FROM extra.t
CREATE VIEW

> SELECT m FROM extra.v
m:int4
6

> SET search_path = extra
SET

> SELECT * FROM t
n:int4
5

> CREATE TABLE here (n int)
CREATE TABLE

> SELECT count(*) FROM extra.here
count:int8
0

> DROP SCHEMA extra
! 2BP01 cannot drop schema

> DROP SCHEMA extra CASCADE
DROP SCHEMA

> SELECT * FROM extra.t
! 42P01 relation "extra.t" does not exist

> DROP SCHEMA nope
! 3F000 schema "nope" does not exist

> DROP SCHEMA IF EXISTS nope
DROP SCHEMA
