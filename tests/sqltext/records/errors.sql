# Statements that fail, each with its SQLSTATE and message
> CREATE TABLE t (a int, b text, c numeric(5,2), d date, j jsonb, x int[])
CREATE TABLE

> INSERT INTO t VALUES (1, 'x', 1.5, '2024-01-01', '{"k": 1}', '{1,2}'), (0, 'y', 2.5, '2024-01-02', '[1]', '{}')
INSERT 0 2

> CREATE TABLE u (a int, z text)
CREATE TABLE

> INSERT INTO u VALUES (1, 'p'), (1, 'q')
INSERT 0 2

# Names
> SELECT nope FROM t
! 42703 column "nope" does not exist

> SELECT t.nope FROM t
! 42703 column t.nope does not exist

> SELECT nope.a FROM t
! 42P01 missing FROM-clause entry for table "nope"

> SELECT x.a FROM t AS y
! 42P01 missing FROM-clause entry for table "x"

> SELECT a FROM t, u
! 42702 column reference "a" is ambiguous

> SELECT * FROM nope
! 42P01 relation "nope" does not exist

> SELECT * FROM nowhere.t
! 42P01 relation "nowhere.t" does not exist

> SELECT nope(1)
! 42883 function nope(integer) does not exist

> SELECT lower(1, 2)
! 42883 function lower(integer, integer) does not exist

> SELECT a FROM t ORDER BY nope
! 42703 column "nope" does not exist

> SELECT a FROM t GROUP BY nope
! 42703 column "nope" does not exist

> SELECT nope.* FROM t
! 42P01 missing FROM-clause entry for table "nope"

> SELECT t.a FROM t AS s
! 42P01 FROM-clause entry for table "t"

> SELECT 1 FROM t, t
! 42712 table name "t" specified more than once

> SELECT * FROM t JOIN u USING (nope)
! 42703 column "nope" specified in USING clause does not exist in left table

> SELECT * FROM t JOIN u USING (z)
! 42703 column "z" specified in USING clause does not exist in left table

> SELECT w.a FROM (SELECT a FROM t) v
! 42P01 missing FROM-clause entry for table "w"

# Types
> SELECT a + b FROM t
! 42883 operator does not exist: integer + text

> SELECT a || d FROM t WHERE a = b
! 42883 operator does not exist: integer

> SELECT b + 1 FROM t
! 42883 operator does not exist: text + integer

> SELECT d + d FROM t
! 42883 operator does not exist: date + date

> SELECT NOT a FROM t
! 42804 integer

> SELECT a AND true FROM t
! 42804 integer

> SELECT a FROM t WHERE a
! 42804 argument of WHERE must be type boolean, not type integer

> SELECT a FROM t WHERE b
! 42804 argument of WHERE must be type boolean, not type text

> SELECT CASE WHEN a THEN 1 END FROM t
! 42804 integer

> SELECT CASE WHEN true THEN 1 ELSE 'x' END
! 22P02 invalid input syntax for type integer: "x"

> SELECT coalesce(a, d) FROM t
! 42804 COALESCE types integer and date cannot be matched

> SELECT a FROM t UNION SELECT b FROM t
! 42804 UNION types integer and text cannot be matched

> SELECT a, b FROM t UNION SELECT a FROM t
! 42601 each UNION query must have the same number of columns

> SELECT a = d FROM t
! 42883 operator does not exist: integer = date

> SELECT sum(b) FROM t
! 42883 function sum(text) does not exist

> SELECT avg(d) FROM t
! 42883 function avg(date) does not exist

> SELECT length(a) FROM t
! 42883 function length(integer) does not exist

> SELECT ARRAY[1, 'x']
! 22P02 invalid input syntax for type integer: "x"

> SELECT ARRAY[a, d] FROM t
! 42804 ARRAY types integer and date cannot be matched

> SELECT x @> ARRAY['a'] FROM t
! 42883 operator does not exist: integer[] @> text[]

> SELECT a::date FROM t
! 42846 cannot cast type integer to date

> SELECT d::int FROM t
! 42846 cannot cast type date to integer

> SELECT true + 1
! 42883 operator does not exist: boolean + integer

> SELECT 1 IN ('a', 'b')
! 22P02 invalid input syntax for type integer: "a"

> SELECT date_trunc('month', a) FROM t
! 42883 function date_trunc(unknown, integer) does not exist

> SELECT extract(year FROM b) FROM t
! 42883 text) does not exist

> SELECT extract(nope FROM d) FROM t
! 22023 unit "nope" not recognized for type date

> SELECT a::nope FROM t
! 42704 type "nope" does not exist

> SELECT -b FROM t
! 42883 operator does not exist: - text

> SELECT j + 1 FROM t
! 42883 operator does not exist: jsonb + integer

> SELECT max(j) FROM t
! 42883 function max(jsonb) does not exist

# Values
> SELECT 1 / 0
! 22012 division by zero

> SELECT 1 / a FROM t
! 22012 division by zero

> SELECT a FROM t WHERE 1 / a > 0
! 22012 division by zero

> SELECT 1 % a FROM t
! 22012 division by zero

> SELECT 1.5 / a FROM t
! 22012 division by zero

> SELECT 1.0::double precision / a FROM t
! 22012 division by zero

> SELECT 'x'::int
! 22P02 invalid input syntax for type integer: "x"

> SELECT b::int FROM t
! 22P02 invalid input syntax for type integer: "x"

> SELECT '12a'::bigint
! 22P02 invalid input syntax for type bigint: "12a"

> SELECT ''::int
! 22P02 invalid input syntax for type integer: ""

> SELECT '99999999999'::int
! 22003 value "99999999999" is out of range for type integer

> SELECT 2147483647 + 1
! 22003 integer out of range

> SELECT a + 2147483647 FROM t
! 22003 integer out of range

> SELECT a * 4000000000 * 4000000000 FROM t
! 22003 bigint out of range

> SELECT 9223372036854775807 + a FROM t
! 22003 bigint out of range

> SELECT (a + 32767)::smallint FROM t
! 22003 smallint out of range

> SELECT (a + 3000000000)::int FROM t
! 22003 integer out of range

> SELECT -(-32768)::smallint
! 22003 smallint out of range

> SELECT 1e10::int
! 22003 integer out of range

> SELECT 'nan'::double precision::int
! 22003 integer out of range

> SELECT 'x'::numeric
! 22P02 invalid input syntax for type numeric: "x"

> SELECT 1000::numeric(5,2)
! 22003 numeric field overflow

> SELECT (c * 1000)::numeric(5,2) FROM t
! 22003 numeric field overflow

> SELECT 'maybe'::boolean
! 22P02 invalid input syntax for type boolean: "maybe"

> SELECT b::boolean FROM t
! 22P02 invalid input syntax for type boolean: "x"

> SELECT '2024-13-01'::date
! 22008 date/time field value out of range: "2024-13-01"

> SELECT '2024-02-30'::date
! 22008 date/time field value out of range: "2024-02-30"

> SELECT 'nope'::date
! 22007 invalid input syntax for type date: "nope"

> SELECT b::date FROM t
! 22007 invalid input syntax for type date: "x"

> SELECT '25:00'::time
! 22008 date/time field value out of range: "25:00"

> SELECT 'x'::timestamp
! 22007 invalid input syntax for type timestamp: "x"

> SELECT 'x'::interval
! 22007 invalid input syntax for type interval: "x"

> SELECT 'x'::uuid
! 22P02 invalid input syntax for type uuid: "x"

> SELECT '{'::jsonb
! 22P02 invalid input syntax for type json

> SELECT b::jsonb FROM t
! 22P02 invalid input syntax for type json

> SELECT '{1,2'::int[]
! 22P02 malformed array literal: "{1,2"

> SELECT '{a}'::int[]
! 22P02 invalid input syntax for type integer: "a"

> SELECT sqrt(-1)
! 2201F cannot take square root of a negative number

> SELECT ln(0)
! 2201E cannot take logarithm of zero

> SELECT ln(a) FROM t
! 2201E cannot take logarithm of zero

> SELECT sqrt(a - 2) FROM t
! 2201F cannot take square root of a negative number

> SELECT power(0, -1)
! 2201F zero raised to a negative power is undefined

> SELECT chr(0)
! 54000 null character not permitted

> SELECT chr(-1)
! 22023 character number must be positive

> SELECT left(b, 1)::int FROM t
! 22P02 invalid input syntax for type integer: "x"

> SELECT substring(b, 1, -1) FROM t
! 22011 negative substring length not allowed

> SELECT split_part(b, ',', 0) FROM t
! 22023 field position must not be zero

> SELECT repeat(b, 2) FROM t LIMIT -1
! 2201W LIMIT must not be negative

> SELECT a FROM t OFFSET -1
! 2201X OFFSET must not be negative

> SELECT make_date(2024, 13, 1)
! 22008 date field value out of range: 2024-13-01

> SELECT date_trunc('nope', d::timestamp) FROM t
! 22023 unit "nope" not recognized for type timestamp without time zone

> SELECT d::timestamp AT TIME ZONE 'Nowhere/Here' FROM t
! 22023 time zone "Nowhere/Here" not recognized

> SELECT to_timestamp('x', 'YYYY')
! 22007 invalid value "x" for "YYYY"

> SELECT generate_series(1, 3, 0)
! 22023 step size cannot equal zero

> SELECT * FROM generate_series(1, 3, 0)
! 22023 step size cannot equal zero

> SELECT b ~ '(' FROM t
! 2201B invalid regular expression:

> SELECT regexp_replace(b, '[', '') FROM t
! 2201B invalid regular expression:

> SELECT jsonb_array_length(j) FROM t
! 22023 cannot get array length of a non-array

> SELECT * FROM t, jsonb_array_elements(j)
! 22023 cannot extract elements from an object

> SELECT * FROM t, jsonb_object_keys(j)
! 22023 cannot call jsonb_object_keys on

> SELECT jsonb_build_object('a') FROM t
! 22023 argument list must have even number of elements

> SELECT jsonb_build_object(NULL, 1)
! 22023 must not be null

> SELECT (j -> 'k')::boolean FROM t WHERE a = 1
! 22023 cannot cast jsonb numeric to type boolean

> SELECT decode('zz', 'hex')
! 22023 invalid

> SELECT encode('a', 'nope')
! 22023 unrecognized encoding: "nope"

% not-on-spark
> SELECT format('%s') FROM t
! 22023 too few arguments for format()

> SELECT ntile(0) OVER () FROM t
! 22014 argument of ntile must be greater than zero

> SELECT nth_value(a, 0) OVER () FROM t
! 22016 argument of nth_value must be greater than zero

# Subqueries
> SELECT (SELECT a FROM t)
! 21000 more than one row returned by a subquery used as an expression

> SELECT (SELECT a, b FROM t)
! 42601 subquery must return only one column

> SELECT a FROM t WHERE a = (SELECT a FROM u)
! 21000 more than one row returned by a subquery used as an expression

> SELECT a, (SELECT z FROM u WHERE u.a = t.a) FROM t
! 21000 more than one row returned by a subquery used as an expression

> SELECT a FROM t WHERE a IN (SELECT a, z FROM u)
! 42601 subquery has too many columns

> SELECT a FROM t WHERE (a, b) IN (SELECT a FROM u)
! 42601 subquery has too few columns

> SELECT (1, 2) = (1, 2, 3)
! 42601 unequal number of entries in row expressions

# Grouping
> SELECT a, count(*) FROM t
! 42803 column "t.a" must appear in the GROUP BY clause or be used in an aggregate function

> SELECT a, b FROM t GROUP BY a
! 42803 column "t.b" must appear in the GROUP BY clause or be used in an aggregate function

> SELECT count(*) FROM t WHERE count(*) > 1
! 42803 aggregate functions are not allowed in WHERE

> SELECT sum(count(*)) FROM t
! 42803 aggregate function

> SELECT a FROM t GROUP BY a HAVING b = 'x'
! 42803 column "t.b" must appear in the GROUP BY clause or be used in an aggregate function

> SELECT a FROM t HAVING count(*) > 1
! 42803 column "t.a" must appear in the GROUP BY clause or be used in an aggregate function

> SELECT count(*) FROM t GROUP BY count(*)
! 42803 aggregate functions are not allowed in GROUP BY

> SELECT a FROM t GROUP BY 2
! 42P10 GROUP BY position 2 is not in select list

> SELECT a FROM t ORDER BY 2
! 42P10 ORDER BY position 2 is not in select list

> SELECT DISTINCT a FROM t ORDER BY b
! 42P10 for SELECT DISTINCT, ORDER BY expressions must appear in select list

> SELECT DISTINCT ON (a) a, b FROM t ORDER BY b
! 42P10 SELECT DISTINCT ON expressions must match initial ORDER BY expressions

> SELECT grouping(b) FROM t GROUP BY a
! 42803 arguments to GROUPING must be grouping expressions of

> SELECT * FROM t GROUP BY a
! 42803 column "t.b" must appear in the GROUP BY clause or be used in an aggregate function

> SELECT a FROM t ORDER BY count(*)
! 42803 column "t.a" must appear in the GROUP BY clause or be used in an aggregate function

> SELECT count(DISTINCT *) FROM t
! 42601 syntax error at or near "*"

> SELECT sum(a) FILTER (WHERE sum(a) > 1) FROM t
! 42803 aggregate functions are not allowed in

# Windows
> SELECT row_number() FROM t
! 42809 window function row_number requires an OVER clause

> SELECT a FROM t WHERE row_number() OVER () = 1
! 42P20 window functions are not allowed in WHERE

> SELECT sum(rank() OVER ()) FROM t
! 42803 aggregate function calls cannot contain window function calls

> SELECT rank() OVER w FROM t
! 42704 window "w" does not exist

> SELECT sum(a) OVER (ORDER BY a ROWS BETWEEN -1 PRECEDING AND CURRENT ROW) FROM t
! 22013 offset must not be negative

> SELECT sum(a) OVER (ORDER BY a, b RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t
! 42P20 RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column

> SELECT sum(a) OVER (w ORDER BY b) FROM t WINDOW w AS (ORDER BY a)
! 42P20 cannot override ORDER BY clause of window "w"

> SELECT sum(a) OVER (w PARTITION BY b) FROM t WINDOW w AS (ORDER BY a)
! 42P20 cannot override PARTITION BY clause of window "w"

# Syntax
> SELEC 1
! 42601 syntax error at or near "SELEC"

> SELECT FROM WHERE
! 42601 syntax error at or near "WHERE"

> SELECT 1 +
! 42601 syntax error at

> SELECT (1
! 42601 syntax error at

> SELECT 'abc
! 42601 unterminated quoted string

> SELECT * FROM
! 42601 syntax error at

> SELECT a FROM t WHERE
! 42601 syntax error at

> SELECT a b c FROM t
! 42601 syntax error at or near "c"

> SELECT 1a
! 42601 trailing junk after numeric literal at or near "1a"

> VALUES (1), (2, 3)
! 42601 VALUES lists must all be the same length

> SELECT * 
! 42601 SELECT * with no tables specified is not valid

> SELECT 1 LIMIT 'x'
! 22P02 invalid input syntax for type bigint: "x"

> WITH x AS (SELECT 1) SELECT * FROM y
! 42P01 relation "y" does not exist

> WITH x(a, b) AS (SELECT 1) SELECT * FROM x
! 42P10 WITH query "x" has 1 columns available but 2

> SELECT * FROM (VALUES (1)) AS v(a, b)
! 42P10 table "v" has 1 columns available but 2 columns specified

# Definitions and changes
> CREATE TABLE t (a int)
! 42P07 relation "t" already exists

> CREATE TABLE v (a int, a text)
! 42701 column "a" specified more than once

> CREATE TABLE v (a nope)
! 42704 type "nope" does not exist

> DROP TABLE nope
! 42P01 "nope" does not exist

> DROP VIEW t
! 42809 "t" is not a view

> INSERT INTO nope VALUES (1)
! 42P01 relation "nope" does not exist

> INSERT INTO t (nope) VALUES (1)
! 42703 column "nope" of

> INSERT INTO t (a) VALUES (1, 2)
! 42601 INSERT has more expressions than target columns

> INSERT INTO t (a, b) VALUES (1)
! 42601 INSERT has more target columns than expressions

> INSERT INTO t (a) VALUES ('x')
! 22P02 invalid input syntax for type integer: "x"

> INSERT INTO t (a) VALUES (true)
! 42804 column "a" is of type integer but expression is of type boolean

> INSERT INTO t (c) VALUES (12345)
! 22003 numeric field overflow

> INSERT INTO t (a, a) VALUES (1, 2)
! 42701 column "a" specified more than once

> UPDATE t SET nope = 1
! 42703 column "nope" of

> UPDATE t SET a = 'x'
! 22P02 invalid input syntax for type integer: "x"

> UPDATE t SET a = 1, a = 2
! 42601 multiple assignments to same column "a"

> UPDATE nope SET a = 1
! 42P01 relation "nope" does not exist

> UPDATE t SET a = 1 / a
! 22012 division by zero

> DELETE FROM nope
! 42P01 relation "nope" does not exist

> DELETE FROM t WHERE nope = 1
! 42703 column "nope" does not exist

> DELETE FROM t WHERE a
! 42804 argument of WHERE must be type boolean, not type integer

> SET nope = 1
! 42704 unrecognized configuration parameter "nope"

> SHOW nope
! 42704 unrecognized configuration parameter "nope"

> EXECUTE nope
! 26000 prepared statement "nope" does not exist

> DEALLOCATE nope
! 26000 prepared statement "nope" does not exist

> FETCH 1 FROM nope
! 34000 cursor "nope" does not exist

> CLOSE nope
! 34000 cursor "nope" does not exist

> COPY nope TO STDOUT
! 42P01 relation "nope" does not exist

> COPY t (nope) TO STDOUT
! 42703 does not exist

> SELECT count(*) FROM t
count:int8
2
