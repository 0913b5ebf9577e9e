# Tables: definitions, defaults, NOT NULL, types
> CREATE TABLE t (a int NOT NULL, b text DEFAULT 'none', c numeric(10,2), d varchar(3))
CREATE TABLE

> CREATE TABLE t (a int)
! 42P07 relation "t" already exists

> CREATE TABLE IF NOT EXISTS t (a int)
CREATE TABLE

> INSERT INTO t VALUES (1, 'one', 1.5, 'abc'), (2, DEFAULT, NULL, NULL)
INSERT 0 2

> INSERT INTO t (c, a) VALUES (3, 3)
INSERT 0 1

> SELECT * FROM t ORDER BY a
a|b|c|d
1|one|1.50|abc
2|none|NULL|NULL
3|none|3.00|NULL

> INSERT INTO t (b) VALUES ('x')
! 23502 null value in column "a" of relation "t" violates not-null constraint

> INSERT INTO t (a, d) VALUES (4, 'abcd')
! 22001 value too long for type character varying(3)

> INSERT INTO t (a, d) VALUES (4, 'abc  ')
INSERT 0 1

> INSERT INTO t (a) VALUES ('four')
! 22P02 invalid input syntax for type integer: "four"

> INSERT INTO t (a) VALUES (true)
! 42804 column "a" is of type integer but expression is of type boolean

> INSERT INTO t (nope) VALUES (1)
! 42703 column "nope" of the table does not exist

> INSERT INTO t VALUES (1, 'x', 2, 'y', 5)
! 42601 INSERT has more expressions than target columns

> INSERT INTO t (a, a) VALUES (1, 2)
! 42701 column "a" specified more than once

> INSERT INTO nope VALUES (1)
! 42P01 relation "nope" does not exist

> INSERT INTO t (a, b) SELECT a + 10, upper(b) FROM t WHERE a < 3
INSERT 0 2

> SELECT a, b FROM t WHERE a > 10 ORDER BY a
a|b
11|ONE
12|NONE

> INSERT INTO t (a) VALUES (20), (20) RETURNING a, b, a * 2 AS twice
a|b|twice
20|none|40
20|none|40

> UPDATE t SET c = a + 0.005, b = b || '!' WHERE a = 1 RETURNING *
a|b|c|d
1|one!|1.01|abc

> UPDATE t SET a = NULL WHERE a = 1
! 23502 null value in column "a" of relation "t" violates not-null constraint

> UPDATE t SET b = DEFAULT, (a, c) = (5, 6) WHERE a = 4 RETURNING a, b, c
a|b|c
5|none|6.00

> UPDATE t SET a = 1, a = 2
! 42601 multiple assignments to same column "a"

> DELETE t
! 42601 the name of a table was expected

> UPDATE t SET b = (SELECT max(b) FROM t AS o WHERE o.a < t.a) WHERE a = 3 RETURNING b
b
one!

> DELETE FROM t WHERE a = 20 RETURNING a
a
20
20

> DELETE FROM t AS x USING t AS y WHERE x.a = y.a - 1 RETURNING x.a
a
1
2
11

> DELETE FROM t
DELETE 3

> SELECT count(*) FROM t
count
0

> INSERT INTO t DEFAULT VALUES
! 23502 null value in column "a" of relation "t" violates not-null constraint

> CREATE TABLE k (a int PRIMARY KEY)
! 0A000 a PRIMARY KEY constraint is not supported

> CREATE TABLE k (a int, UNIQUE (a))
! 0A000 a UNIQUE constraint is not supported

> CREATE TABLE k (a int REFERENCES t)
! 0A000 a FOREIGN KEY constraint is not supported

> CREATE TABLE k (a nonsense)
! 42704 type "nonsense" does not exist

> CREATE TABLE k (a int, a text)
! 42701 column "a" specified more than once

> CREATE TABLE k (a int DEFAULT 'x')
! 22P02 invalid input syntax for type integer: "x"

> INSERT INTO t VALUES (1, 'x', 1, 'y') ON CONFLICT DO NOTHING
! 0A000 ON CONFLICT is not supported

> CREATE TABLE all_types (b boolean, i2 smallint, i8 bigint, f4 real, f8 double precision, ba bytea,
    da date, ti time, ts timestamp, tz timestamptz, iv interval, u uuid, j jsonb, arr int[], ch char(4))
CREATE TABLE

> INSERT INTO all_types VALUES (true, 1, 2, 1.5, 2.5, '\x01ff', '2024-02-29', '12:34:56.5', '2024-01-01 10:00',
    '2024-01-01 10:00+02', '1 day 02:00', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', '{"b": 1, "a": [1, 2]}', '{1,NULL,3}', 'ab')
INSERT 0 1

> SELECT * FROM all_types
b|i2|i8|f4|f8|ba|da|ti|ts|tz|iv|u|j|arr|ch
t|1|2|1.5|2.5|\x01ff|2024-02-29|12:34:56.5|2024-01-01 10:00:00|2024-01-01 08:00:00+00|1 day 02:00:00|a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11|{"a": [1, 2], "b": 1}|{1,NULL,3}|ab  

> TRUNCATE all_types
TRUNCATE TABLE

> SELECT count(*) FROM all_types
count
0

> INSERT INTO all_types (i8) SELECT (mz_now() > 1000000)::int
INSERT 0 1

> SELECT i8 FROM all_types
i8
1
