# EXPLAIN of plans
> CREATE TABLE t (a int, b text)
CREATE TABLE

> CREATE VIEW v AS SELECT b, count(*) AS n FROM t GROUP BY b
CREATE VIEW

> EXPLAIN SELECT a FROM t WHERE b = 'x'
Plan
Project #2
  Map #2 = #0
    Filter eq(#1, 'x')
      Get everview.public.t
Engine: rows, in the server

> EXPLAIN MAINTAINED PLAN FOR SELECT * FROM v
?

> EXPLAIN RAW PLAN FOR SELECT 1
?

> EXPLAIN INSERT INTO t SELECT 1, 'x'
?

> EXPLAIN CREATE MATERIALIZED VIEW m AS SELECT * FROM v
?

> EXPLAIN ANALYZE SELECT 1
! 0A000 EXPLAIN ANALYZE is not supported

> EXPLAIN DROP TABLE t
! 0A000 EXPLAIN of this statement is not supported

> EXPLAIN TIMESTAMP FOR SELECT * FROM v
?

> SELECT a, unnest(ARRAY[1, 2]) AS u FROM (VALUES (1), (2)) AS x (a) ORDER BY 1, 2
a|u
1|1
1|2
2|1
2|2

> SELECT generate_series(1, 3) AS g ORDER BY 1
g
1
2
3

> SELECT unnest(ARRAY['a', 'b']) AS u, generate_subscripts(ARRAY['a', 'b'], 1) AS i ORDER BY 2
u|i
a|1
b|2

> SELECT generate_series(1, 2), unnest(ARRAY[2])
! 0A000 several set-returning functions in a select list is not supported
