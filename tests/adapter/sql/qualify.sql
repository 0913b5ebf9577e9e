# QUALIFY: rows by the values of window functions
> CREATE TABLE readings (k text, at int, v int)
CREATE TABLE

> INSERT INTO readings VALUES ('x', 1, 10), ('x', 2, 20), ('y', 5, 50), ('y', 7, 70), ('z', 9, 90)
INSERT 0 5

> SELECT k, v FROM readings QUALIFY row_number() OVER (PARTITION BY k ORDER BY at DESC) = 1 ORDER BY k
k|v
x|20
y|70
z|90

# Outputs may be called by their names, columns of the tables come first
> SELECT k, at, rank() OVER (ORDER BY at) AS r FROM readings QUALIFY r BETWEEN 2 AND 3 AND v < 50 ORDER BY r
k|at|r
x|2|2

> SELECT k, v AS at FROM readings QUALIFY at = 9
k|at
z|90

# It comes behind WHERE, GROUP BY and HAVING, and before DISTINCT and LIMIT
> SELECT k, sum(v) AS s FROM readings WHERE at > 1 GROUP BY k HAVING sum(v) > 20 QUALIFY rank() OVER (ORDER BY sum(v) DESC) = 1
k|s
y|120

> SELECT DISTINCT k FROM readings WINDOW w AS (ORDER BY at) QUALIFY row_number() OVER w <= 3 ORDER BY k LIMIT 2
k
x
y

> SELECT k FROM readings QUALIFY max(at) OVER (PARTITION BY k) > (SELECT avg(at) FROM readings) AND at IN (SELECT 9)
k
z

> SELECT k FROM readings QUALIFY row_number() OVER (ORDER BY at)
! 42804 argument of QUALIFY must be type boolean, not type bigint

> SELECT k FROM readings QUALIFY nothing = 1
! 42703 column "nothing" does not exist

# In views
> CREATE MATERIALIZED VIEW latest AS SELECT k, at, v FROM readings QUALIFY row_number() OVER (PARTITION BY k ORDER BY at DESC) = 1
CREATE MATERIALIZED VIEW

> SELECT * FROM latest ORDER BY k
k|at|v
x|2|20
y|7|70
z|9|90

> INSERT INTO readings VALUES ('x', 3, 30), ('w', 0, 0)
INSERT 0 2

> DELETE FROM readings WHERE at = 7
DELETE 1

> SELECT * FROM latest ORDER BY k
k|at|v
w|0|0
x|3|30
y|5|50
z|9|90

> CREATE VIEW seconds AS SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY at) AS n FROM readings QUALIFY n = 2
CREATE VIEW

> SELECT * FROM seconds
k|v|n
x|20|2
