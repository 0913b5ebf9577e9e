# Times of the timeline: which there are, and where they meet numbers and dates
> SELECT '0005'::mz_timestamp AS t, ' 9223372036854775807 '::mz_timestamp AS last
t|last
5|9223372036854775807

> SELECT '9223372036854775808'::mz_timestamp
! 22003 value "9223372036854775808" is out of range for type mz_timestamp

> SELECT '18446744073709551615'::mz_timestamp
! 22003 value "18446744073709551615" is out of range for type mz_timestamp

> SELECT '²'::mz_timestamp
! 22P02 invalid input syntax for type mz_timestamp: "²"

> SELECT '--1'::mz_timestamp
! 22P02 invalid input syntax for type mz_timestamp: "--1"

> SELECT (-1)::mz_timestamp
! 22003 mz_timestamp out of range

> SELECT '-9223372036854775809'::mz_timestamp
! 22003 value "-9223372036854775809" is out of range for type mz_timestamp

> SELECT '-infinity'::timestamptz::mz_timestamp::text::mz_timestamp AS first, '1969-12-31 23:59:59Z'::timestamptz::mz_timestamp::text::mz_timestamp AS before
first|before
-9223372036854775808|-1000

> SELECT mz_now() - 'infinity'::timestamptz < interval '1 day' AS never_leaves, mz_now() - '-infinity'::timestamptz < interval '1 day' AS gone
never_leaves|gone
t|f

> SELECT mz_now() - interval '9000 years' AS back, mz_now() + interval '9000 years' AS on, mz_now() - interval '9000 years' < '0001-01-01' AS less
back|on|less
-infinity|infinity|t

> SELECT 'at ' || '5'::mz_timestamp AS a, '5'::mz_timestamp || '!' AS b, concat('x', '5'::mz_timestamp, 1) AS c, format('%s', '5'::mz_timestamp) AS f, quote_literal('5'::mz_timestamp) AS q
a|b|c|f|q
at 5|5!|x51|5|'5'

> SELECT to_jsonb('5'::mz_timestamp) AS j, jsonb_build_object('at', '5'::mz_timestamp) AS o, jsonb_build_array('5'::mz_timestamp, NULL) AS a
j|o|a
5|{"at": 5}|[5, null]

> SELECT pg_typeof(ARRAY[mz_now(), 5]) AS a, (ARRAY[mz_now(), 5])[2] AS e, mz_now() > ANY (ARRAY[mz_now() - 1, 5]) AS later, mz_now()::date > '2020-01-01' AS d
a|e|later|d
bigint[]|5|t|t

> CREATE TABLE t (k int, at mz_timestamp, n bigint, s smallint, d numeric, z timestamptz, a bigint[])
CREATE TABLE

> INSERT INTO t (at) VALUES ('18446744073709551615')
! 22003 value "18446744073709551615" is out of range for type mz_timestamp

> INSERT INTO t (at) VALUES (18446744073709551615)
! 22003 mz_timestamp out of range

> INSERT INTO t VALUES (1, 5, 5, 5, 5, '1970-01-01 00:00:00.005Z', '{4,5}'), (2, 7, 8, 9, 10, '1970-01-01 00:00:01Z', '{NULL,8}')
INSERT 0 2

> INSERT INTO t VALUES (3, '9223372036854775807', NULL, NULL, NULL, NULL, NULL)
INSERT 0 1

> SELECT k, at IN (5, 6) AS i, at IN (n, s, d) AS cols, at IN (z) AS z, at NOT IN (7) AS no FROM t ORDER BY k
k|i|cols|z|no
1|t|t|t|t
2|f|f|f|f
3|f|NULL|NULL|t

> SELECT k, 5 IN (at, 6) AS i, n IN (at) AS n, at IN ('5', '8') AS q FROM t ORDER BY k
k|i|n|q
1|t|t|t
2|f|f|f
3|f|NULL|f

> SELECT k, at = ANY (ARRAY[5, 6]) AS l, at = ANY (a) AS c, at <> ALL (a) AS no, at = ANY ('{5,6}') AS q, at < ANY (a) AS less FROM t ORDER BY k
k|l|c|no|q|less
1|t|t|f|t|f
2|f|NULL|NULL|f|t
3|f|NULL|NULL|f|NULL

> SELECT at IN (SELECT n FROM t) AS i FROM t WHERE k = 1
i
t

> SELECT k, COALESCE(n, at) AS c, GREATEST(at, n, 6) AS g, LEAST(n, at) AS l, NULLIF(at, 5) AS x, NULLIF(5, at) AS y FROM t ORDER BY k
k|c|g|l|x|y
1|5|6|5|NULL|NULL
2|8|8|7|7|5
3|9223372036854775807|9223372036854775807|9223372036854775807|9223372036854775807|5

> SELECT pg_typeof(COALESCE(n, at)) AS c, pg_typeof(CASE WHEN k = 1 THEN 1 ELSE at END) AS w, pg_typeof(NULLIF(5, at)) AS x FROM t WHERE k = 1
c|w|x
mz_timestamp|mz_timestamp|mz_timestamp

> SELECT k, CASE WHEN k = 1 THEN at WHEN k = 2 THEN z ELSE d END AS w FROM t ORDER BY k
k|w
1|5
2|1000
3|NULL

> SELECT at FROM t UNION SELECT n FROM t UNION ALL SELECT date '1970-01-02' ORDER BY 1
at
5
7
8
86400000
9223372036854775807
NULL

> SELECT * FROM (VALUES (1), (mz_now()), (2)) AS v (x) WHERE x IN (1, 2) ORDER BY x
x
1
2

> SELECT COALESCE(at, -1) AS c FROM t WHERE k = 1
c
5

> SELECT GREATEST(at, -1) AS c FROM t WHERE k = 1
! 22003 mz_timestamp out of range

> SELECT at IN (5, 'x') FROM t
! 22P02 invalid input syntax for type mz_timestamp: "x"

> SELECT k, COALESCE(at, 1.5::float8) AS c, at < 7::real AS l, at::float8 AS f, at IN (5::float8, 6) AS i FROM t WHERE k < 3 ORDER BY k
k|c|l|f|i
1|5|t|5|t
2|7|f|7|f

> SELECT COALESCE(at, 1.5::float8, now()) FROM t
! 42804 COALESCE types double precision and timestamp with time zone cannot be matched

> SELECT at + 1.5::float8 FROM t
! 42883 operator does not exist: mz_timestamp + double precision

> SELECT mz_now() IN (5) AS i, mz_now() = ANY (ARRAY[5]) AS a, mz_now() NOT IN (NULL, 5) AS n, mz_now() IN (5::smallint) AS s
i|a|n|s
f|f|NULL|f

> CREATE MATERIALIZED VIEW v AS SELECT k, COALESCE(at, n) AS c, at IN (5, n) AS i, CASE WHEN k = 2 THEN s ELSE at END AS w FROM t
CREATE MATERIALIZED VIEW

> SELECT * FROM v ORDER BY k
k|c|i|w
1|5|t|5
2|7|f|9
3|9223372036854775807|NULL|9223372036854775807

> CREATE TABLE bounds (k int, f double precision, r real)
CREATE TABLE

> INSERT INTO bounds VALUES (1, 1e300, 1e30), (2, 'NaN', 'NaN'), (3, 'infinity', 'infinity'), (4, 1.5, 1.5), (5, '-infinity', '-infinity'), (6, NULL, NULL)
INSERT 0 6

> CREATE MATERIALIZED VIEW later AS SELECT k FROM bounds WHERE mz_now() < f AND mz_now()::numeric < r AND extract(epoch FROM mz_now()) < f
CREATE MATERIALIZED VIEW

> SELECT k FROM later ORDER BY k
k
1
2
3

> CREATE MATERIALIZED VIEW earlier AS SELECT k FROM bounds WHERE mz_now() NOT IN (f, r) AND f <= mz_now()::float8
CREATE MATERIALIZED VIEW

> SELECT k FROM earlier ORDER BY k
k
4
5

> CREATE TABLE others (k int, ms bigint)
CREATE TABLE

> INSERT INTO others VALUES (1, 5), (2, 7000000000000), (4, NULL)
INSERT 0 3

> CREATE MATERIALIZED VIEW some_later AS SELECT k FROM bounds WHERE mz_now() < ANY (SELECT ms FROM others) AND k < 3
CREATE MATERIALIZED VIEW

> CREATE MATERIALIZED VIEW all_earlier AS SELECT k FROM bounds b WHERE mz_now() > ALL (SELECT ms FROM others o WHERE o.k = b.k)
CREATE MATERIALIZED VIEW

> CREATE MATERIALIZED VIEW not_all AS SELECT k FROM bounds b WHERE k = 3 OR NOT mz_now() > ALL (SELECT ms FROM others o WHERE o.k = b.k)
CREATE MATERIALIZED VIEW

> SELECT 'some' AS v, k FROM some_later UNION ALL SELECT 'all', k FROM all_earlier UNION ALL SELECT 'not', k FROM not_all ORDER BY 1, 2
v|k
all|1
all|3
all|5
all|6
not|2
not|3
some|1
some|2

> CREATE MATERIALIZED VIEW v2 AS SELECT k FROM bounds WHERE (mz_now() < ALL (SELECT ms FROM others)) IS TRUE
! 0A000 mz_now() can stand only in comparisons that restrict a maintained query
