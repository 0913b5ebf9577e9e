# infinity and -infinity of dates and timestamps
> SELECT 'infinity'::date AS d, ' -Infinity '::timestamp AS t, '+infinity'::timestamptz AS z, '- infinity'::timestamp(3) AS p
d|t|z|p
infinity|-infinity|infinity|-infinity

> SELECT 'inf'::date
! 22007 invalid input syntax for type date: "inf"

> CREATE TABLE t (k int, d date, t timestamp, z timestamptz)
CREATE TABLE

> INSERT INTO t VALUES (1, 'infinity', 'infinity', 'infinity'), (2, '-infinity', '-infinity', '-infinity'), (3, '2020-02-29', '2020-02-29 12:00', '2020-02-29 12:00Z'), (4, NULL, NULL, NULL), (5, '9999-12-31', '9999-12-31 23:59:59.999999', '9999-12-31 23:59:59.999999Z'), (6, 'infinity', '-infinity', 'infinity')
INSERT 0 6

> SELECT * FROM t ORDER BY z, d, t, k
k|d|t|z
2|-infinity|-infinity|-infinity
3|2020-02-29|2020-02-29 12:00:00|2020-02-29 12:00:00+00
5|9999-12-31|9999-12-31 23:59:59.999999|9999-12-31 23:59:59.999999+00
6|infinity|-infinity|infinity
1|infinity|infinity|infinity
4|NULL|NULL|NULL

> SELECT k FROM t ORDER BY d DESC NULLS LAST, k LIMIT 2
k
1
6

> SELECT max(d) AS a, min(d) AS b, max(t) AS c, min(t) AS d, max(z) AS e, min(z) AS f, count(DISTINCT z) AS n FROM t
a|b|c|d|e|f|n
infinity|-infinity|infinity|-infinity|infinity|-infinity|4

> SELECT d, count(*) FROM t GROUP BY d ORDER BY d
d|count
-infinity|1
2020-02-29|1
9999-12-31|1
infinity|2
NULL|1

> SELECT k FROM t WHERE d = 'infinity' AND z IN ('infinity', '2020-01-01') AND t > '-infinity' ORDER BY k
k
1

> SELECT a.k, b.k AS other FROM t a JOIN t b ON a.z = b.z AND a.d = b.z::date WHERE a.k < b.k
k|other
1|6

> SELECT k, d < '9999-12-31' AS l, d = t AS e, t = z AS f, isfinite(d) AS i FROM t ORDER BY k
k|l|e|f|i
1|f|t|t|f
2|t|t|t|f
3|t|f|t|t
4|NULL|NULL|NULL|NULL
5|f|f|t|t
6|f|f|f|f

> SELECT d + 5 AS a, d - 5 AS b, t + interval '1 month' AS c, z - interval '1 day' AS e, d + time '10:00' AS f, d + interval '1 year' AS g FROM t WHERE k = 6
a|b|c|e|f|g
infinity|infinity|-infinity|infinity|infinity|infinity

> SELECT d - date '2020-01-01' FROM t WHERE k = 1
! 22008 cannot subtract infinite dates

> SELECT t - timestamp '2020-01-01' FROM t WHERE k = 1
! 22008 cannot subtract infinite timestamps

> SELECT age(t, '2020-01-01') FROM t WHERE k = 1
! 22008 cannot subtract infinite timestamps

> SELECT extract(day FROM t) AS a, date_part('epoch', t) AS b, date_part('year', d) AS c, extract(dow FROM d) AS e FROM t WHERE k = 6
a|b|c|e
NULL|-Infinity|Infinity|NULL

> SELECT extract(year FROM d) FROM t WHERE k = 6
! 22003 numeric field overflow: the field of an infinite date or timestamp is infinite

> SELECT date_part(f, t) FROM t, (VALUES ('day')) AS v (f) WHERE k = 6
! 22008 fields of -infinity can be extracted only by names that are literals

> SELECT date_trunc('month', z) AS a, date_bin('1 day', t, '2001-01-01') AS b, to_char(t, 'YYYY') AS c, z AT TIME ZONE 'Europe/Berlin' AS e, t::time AS f FROM t WHERE k = 6
a|b|c|e|f
infinity|-infinity|NULL|infinity|NULL

> SELECT z::text AS a, to_jsonb(d) AS b, jsonb_build_object('t', t) AS c, ARRAY[d, NULL] AS e, to_timestamp('Infinity') AS f FROM t WHERE k = 6
a|b|c|e|f
infinity|"infinity"|{"t": "-infinity"}|{infinity,NULL}|infinity

> SELECT * FROM generate_series(timestamp '2020-01-01', 'infinity', '1 day')
! 22023 generate_series has no end where its start or stop value is infinite

> SELECT count(*) AS n FROM generate_series(timestamp 'infinity', '2020-01-01', '1 day')
n
0

> SELECT k, z::mz_timestamp AS m, z::mz_timestamp::timestamptz AS back FROM t WHERE k IN (1, 2, 3) ORDER BY k
k|m|back
1|9223372036854775807|infinity
2|-9223372036854775808|-infinity
3|1582977600000|2020-02-29 12:00:00+00

> SELECT k, count(*) OVER (ORDER BY t RANGE BETWEEN '1 day' PRECEDING AND interval '1 day' FOLLOWING) AS n FROM t WHERE k <> 5 ORDER BY k
k|n
1|1
2|2
3|1
4|1
6|2

> CREATE MATERIALIZED VIEW v AS SELECT d, max(t) AS t, min(z) AS z, count(*) AS n FROM t GROUP BY d
CREATE MATERIALIZED VIEW

> SELECT * FROM v ORDER BY d
d|t|z|n
-infinity|-infinity|-infinity|1
2020-02-29|2020-02-29 12:00:00|2020-02-29 12:00:00+00|1
9999-12-31|9999-12-31 23:59:59.999999|9999-12-31 23:59:59.999999+00|1
infinity|infinity|infinity|2
NULL|NULL|NULL|1

> CREATE INDEX byd ON t (d)
CREATE INDEX

> SELECT k FROM t WHERE d = 'infinity' ORDER BY k
k
1
6

> CREATE MATERIALIZED VIEW valid AS SELECT k FROM t WHERE mz_now() < z AND mz_now() >= t
CREATE MATERIALIZED VIEW

> SELECT k FROM valid ORDER BY k
k
6

> UPDATE t SET t = '-infinity' WHERE k = 1
UPDATE 1

> SELECT k FROM valid ORDER BY k
k
1
6

> SELECT k FROM t WHERE mz_now() < z AND mz_now() >= t ORDER BY k
k
1
6

> DELETE FROM t WHERE d = 'infinity'
DELETE 2

> SELECT max(d) AS d FROM v
d
9999-12-31

> SELECT k FROM valid
k

> CREATE TABLE u (d date DEFAULT 'infinity', k int)
CREATE TABLE

> INSERT INTO u (k) VALUES (1)
INSERT 0 1

> SELECT * FROM u
d|k
infinity|1
