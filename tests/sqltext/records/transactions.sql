# Transaction blocks, prepared statements, cursors, settings
% no-view

> CREATE TABLE t (a int)
CREATE TABLE

> BEGIN
BEGIN

> INSERT INTO t VALUES (1)
INSERT 0 1

> INSERT INTO t VALUES (2)
INSERT 0 1

> COMMIT
COMMIT

> SELECT count(*) FROM t
count:int8
2

> BEGIN
BEGIN

> INSERT INTO t VALUES (3)
INSERT 0 1

> ROLLBACK
ROLLBACK

> SELECT count(*) FROM t
count:int8
2

> START TRANSACTION
START TRANSACTION

> INSERT INTO t VALUES (4)
INSERT 0 1

> END
COMMIT

> SELECT a FROM t ORDER BY a
a:int4
1
2
4

> BEGIN
BEGIN

> SELECT nope
! 42703 column "nope" does not exist

> SELECT 1
! 25P02 current transaction is aborted, commands ignored until end of transaction block

> COMMIT
ROLLBACK

> SELECT count(*) FROM t
count:int8
3

> BEGIN
BEGIN

> INSERT INTO t VALUES ('x')
! 22P02 invalid input syntax for type integer: "x"

> INSERT INTO t VALUES (5)
! 25P02 current transaction is aborted, commands ignored until end of transaction block

> ROLLBACK
ROLLBACK

> SELECT count(*) FROM t
count:int8
3

> BEGIN TRANSACTION
BEGIN

> SELECT count(*) FROM t
count:int8
3

> SELECT sum(a) FROM t
sum:int8
7

> COMMIT WORK
COMMIT

> BEGIN READ ONLY
BEGIN

> SELECT max(a) FROM t
max:int4
4

> INSERT INTO t VALUES (9)
! 25006 in a read-only transaction

> ROLLBACK
ROLLBACK

> BEGIN
BEGIN

> ABORT
ROLLBACK

> SELECT count(*) FROM t
count:int8
3

> INSERT INTO t VALUES (10); INSERT INTO t VALUES (11)
INSERT 0 1

> SELECT count(*) FROM t
count:int8
5

> INSERT INTO t VALUES (12); SELECT 1 / 0
! 22012 division by zero

> SELECT count(*) FROM t
count:int8
5

@other
> INSERT INTO t VALUES (20)
INSERT 0 1

@main
> SELECT max(a) FROM t
max:int4
20

> BEGIN
BEGIN

> SELECT count(*) FROM t
count:int8
6

> COMMIT
COMMIT

@other
> DELETE FROM t WHERE a = 20
DELETE 1

@main
> SELECT max(a) FROM t
max:int4
11

> PREPARE one AS SELECT $1::int + 1
PREPARE

> EXECUTE one(41)
?column?:int4
42

> EXECUTE one('2')
?column?:int4
3

> EXECUTE one
! 42601 wrong number of parameters for prepared statement "one"

> EXECUTE one(1, 2)
! 42601 wrong number of parameters for prepared statement "one"

> PREPARE one AS SELECT 2
! 42P05 prepared statement "one" already exists

> PREPARE ins(int) AS INSERT INTO t VALUES ($1)
PREPARE

> EXECUTE ins(30)
INSERT 0 1

> PREPARE q(int, text) AS SELECT a, $2 AS label FROM t WHERE a > $1 ORDER BY a
PREPARE

> EXECUTE q(3, 'big')
a:int4|label:text
4|big
10|big
11|big
30|big

> EXECUTE q('x', 'y')
! 22P02 invalid input syntax for type integer: "x"

> DEALLOCATE one
DEALLOCATE

> EXECUTE one(1)
! 26000 prepared statement "one" does not exist

> DEALLOCATE ALL
DEALLOCATE ALL

> EXECUTE ins(1)
! 26000 prepared statement "ins" does not exist

> BEGIN
BEGIN

> DECLARE c CURSOR FOR SELECT a FROM t ORDER BY a
DECLARE CURSOR

> FETCH 2 FROM c
a:int4
1
2

> FETCH c
a:int4
4

> FETCH FORWARD 1 FROM c
a:int4
10

> FETCH ALL FROM c
a:int4
11
30

> FETCH 1 FROM c
a:int4

> CLOSE c
CLOSE CURSOR

> FETCH 1 FROM c
! 34000 cursor "c" does not exist

> ROLLBACK
ROLLBACK

> DECLARE c CURSOR FOR SELECT 1
! 25P01 DECLARE CURSOR can only be used in transaction blocks

> SET application_name = 'records'
SET

> SHOW application_name
application_name:text
records

> RESET application_name
RESET

> BEGIN
BEGIN

> SET LOCAL application_name = 'inside'
SET

> SHOW application_name
application_name:text
inside

> COMMIT
COMMIT

> SET statement_timeout = 'nope'
! 22023 invalid value for parameter "statement_timeout": "nope"

> SELECT timestamptz '2024-07-01 12:00:00+00'
timestamptz:timestamptz
2024-07-01 12:00:00+00

> SHOW standard_conforming_strings
standard_conforming_strings:text
on

> DISCARD ALL
DISCARD ALL
