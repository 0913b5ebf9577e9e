# VALUES, WITH, table functions, aliases
> CREATE TABLE e (id int, dept int, boss int, name text, pay numeric(8,2), hired date, active boolean)
CREATE TABLE

> CREATE TABLE dept (id int, name text, city text, budget bigint)
CREATE TABLE

> CREATE TABLE sale (id int, emp int, amount int, day date, kind text)
CREATE TABLE

> CREATE TABLE nothing (a int, b text)
CREATE TABLE

> INSERT INTO dept VALUES (1, 'Sales', 'Oslo', 1000), (2, 'IT', 'Rome', 5000), (3, 'HR', NULL, NULL), (9, 'Old', 'Rome', 1)
INSERT 0 4

> INSERT INTO e VALUES (1, 1, NULL, 'Ann', 500.00, '2020-01-01', true), (2, 1, 1, 'Bob', 300.50, '2021-05-05', true), (3, 2, 1, 'Cid', 300.50, NULL, false), (4, NULL, 2, 'Dee', NULL, '2019-12-31', NULL), (20, 9, 20, 'Zed', 1.00, '2000-01-01', false)
INSERT 0 5

> INSERT INTO sale VALUES (1, 1, 100, '2024-01-01', 'a'), (2, 1, 50, '2024-01-02', 'b'), (3, 2, 70, '2024-01-02', 'a'), (4, 20, 5, '2024-01-09', 'z'), (4, 20, 5, '2024-01-09', 'z')
INSERT 0 5

% changes
> INSERT INTO e VALUES (5, 2, 3, 'Eve', 700.25, '2022-02-02', true), (6, 5, 5, 'Fay', 300.50, '2022-02-02', NULL), (7, 2, 3, 'Ann', 450.00, '2020-06-15', true)
INSERT 0 3

> INSERT INTO sale VALUES (5, 3, NULL, '2024-01-03', 'b'), (6, 5, 100, '2024-01-03', 'c'), (7, 5, 30, NULL, 'a'), (8, NULL, 10, '2024-01-05', NULL), (9, 5, 30, '2024-01-04', 'a'), (9, 5, 30, '2024-01-04', 'a')
INSERT 0 6

> UPDATE e SET pay = pay + 50, dept = 2 WHERE id = 3
UPDATE 1

> UPDATE sale SET kind = 'b' WHERE id = 3
UPDATE 1

> DELETE FROM e WHERE id = 20
DELETE 1

> DELETE FROM sale WHERE id = 4
DELETE 2

> DELETE FROM dept WHERE id = 9
DELETE 1

> INSERT INTO dept VALUES (4, 'Ops', 'Oslo', 300)
INSERT 0 1

> VALUES (1)
column1:int4
1

> VALUES (1, 'a'), (2, 'b'), (3, NULL)
column1:int4|column2:text
1|a
2|b
3|NULL

> VALUES (1), (2.5), (NULL)
column1:numeric
1
2.5
NULL

> VALUES (1, 2), (3, 4) ORDER BY 1 DESC
column1:int4|column2:int4
3|4
1|2

> VALUES (3), (1), (2) ORDER BY column1 LIMIT 2
column1:int4
1
2

> SELECT * FROM (VALUES (1, 'x'), (2, 'y')) AS v
column1:int4|column2:text
1|x
2|y

> SELECT column1 + 1, column2 FROM (VALUES (1, 'x'), (2, 'y')) AS v
?column?:int4|column2:text
2|x
3|y

> SELECT v.a, v.b FROM (VALUES (1, 'x'), (2, 'y')) AS v(a, b)
a:int4|b:text
1|x
2|y

> SELECT a + b FROM (VALUES (1, 2), (3, 4.5)) AS v(a, b)
?column?:numeric
3
7.5

> SELECT count(*), sum(a) FROM (VALUES (1), (1), (2)) AS v(a)
count:int8|sum:int8
3|4

> TABLE dept
id:int4|name:text|city:text|budget:int8
1|Sales|Oslo|1000
2|IT|Rome|5000
3|HR|NULL|NULL
4|Ops|Oslo|300

> TABLE nothing
a:int4|b:text

> SELECT * FROM dept
id:int4|name:text|city:text|budget:int8
1|Sales|Oslo|1000
2|IT|Rome|5000
3|HR|NULL|NULL
4|Ops|Oslo|300

> SELECT dept.* FROM dept
id:int4|name:text|city:text|budget:int8
1|Sales|Oslo|1000
2|IT|Rome|5000
3|HR|NULL|NULL
4|Ops|Oslo|300

> SELECT d.*, d.id AS again FROM dept d
id:int4|name:text|city:text|budget:int8|again:int4
1|Sales|Oslo|1000|1
2|IT|Rome|5000|2
3|HR|NULL|NULL|3
4|Ops|Oslo|300|4

> SELECT d.id, d.name FROM dept AS d
id:int4|name:text
1|Sales
2|IT
3|HR
4|Ops

> SELECT x, y FROM dept AS d(x, y)
x:int4|y:text
1|Sales
2|IT
3|HR
4|Ops

> SELECT d FROM generate_series(1, 3) d
d:int4
1
2
3

> SELECT 1 AS one, 2 AS "Two", 3 "three"
one:int4|Two:int4|three:int4
1|2|3

> SELECT id "ID", name AS "select" FROM dept
ID:int4|select:text
1|Sales
2|IT
3|HR
4|Ops

> SELECT 1 WHERE true
?column?:int4
1

> SELECT 1 WHERE false
?column?:int4

> SELECT 'x' AS a, 'x' AS a
a:text|a:text
x|x

> SELECT * FROM generate_series(1, 3)
generate_series:int4
1
2
3

> SELECT * FROM generate_series(1, 10, 3)
generate_series:int4
1
4
7
10

> SELECT * FROM generate_series(3, 1)
generate_series:int4

> SELECT * FROM generate_series(3, 1, -1)
generate_series:int4
3
2
1

> SELECT * FROM generate_series(1, 3) AS g(n)
n:int4
1
2
3

> SELECT * FROM generate_series(0.5, 2.5, 0.5) AS n
n:numeric
0.5
1.0
1.5
2.0
2.5

> SELECT * FROM generate_series(1::bigint, 2)
generate_series:int8
1
2

> SELECT n, n * n FROM generate_series(1, 3) AS n
n:int4|?column?:int4
1|1
2|4
3|9

> SELECT * FROM generate_series(NULL, 3)
generate_series:int4

> SELECT generate_series(1, 3)
generate_series:int4
1
2
3

> SELECT generate_series(1, 2), 'x'
generate_series:int4|?column?:text
1|x
2|x

> SELECT id, generate_series(1, id) FROM dept WHERE id < 3
id:int4|generate_series:int4
1|1
2|1
2|2

> SELECT * FROM generate_series(timestamp '2024-01-01', timestamp '2024-01-02', interval '8 hours') AS t
t:timestamp
2024-01-01 00:00:00
2024-01-01 08:00:00
2024-01-01 16:00:00
2024-01-02 00:00:00

> SELECT * FROM generate_series(date '2024-01-30', date '2024-02-02', interval '1 day') AS t
t:timestamptz
2024-01-30 00:00:00+00
2024-01-31 00:00:00+00
2024-02-01 00:00:00+00
2024-02-02 00:00:00+00

> SELECT * FROM unnest(ARRAY[1, 2, 3]) AS n
n:int4
1
2
3

> SELECT * FROM unnest(ARRAY['a', NULL]) AS n
n:text
a
NULL

> SELECT * FROM unnest(ARRAY[]::int[]) AS n
n:int4

> SELECT * FROM unnest(ARRAY['a', 'b']) WITH ORDINALITY
unnest:text|ordinality:int8
a|1
b|2

> SELECT * FROM generate_series(5, 6) WITH ORDINALITY AS g(n, o)
n:int4|o:int8
5|1
6|2

> SELECT * FROM jsonb_array_elements('[1, "a", null]') AS e(v)
v:jsonb
1
"a"
null

> SELECT * FROM jsonb_array_elements_text('[1, "a", null]') AS e(v)
v:text
1
a
NULL

> SELECT * FROM jsonb_each('{"a": 1, "b": [2]}')
key:text|value:jsonb
a|1
b|[2]

> SELECT * FROM jsonb_each_text('{"a": 1, "b": [2]}')
key:text|value:text
a|1
b|[2]

> SELECT * FROM jsonb_object_keys('{"a": 1, "b": [2]}') AS k
k:text
a
b

> SELECT * FROM string_to_table('a,b,c', ',') AS s
s:text
a
b
c

> SELECT * FROM regexp_split_to_table('a1b2c', '[0-9]') AS s
s:text
a
b
c

> SELECT * FROM regexp_matches('a1b2', '([a-z])([0-9])', 'g') AS m
m:text[]
{a,1}
{b,2}

> SELECT a.n, b.n FROM generate_series(1, 2) AS a(n), generate_series(1, 2) AS b(n)
n:int4|n:int4
1|1
1|2
2|1
2|2

> SELECT sum(n) FROM generate_series(1, 100) AS n
sum:int8
5050

> SELECT n FROM generate_series(1, 20) AS n WHERE n % 7 = 0
n:int4
7
14

> WITH x AS (SELECT 1 AS a) SELECT * FROM x
a:int4
1

> WITH x(a, b) AS (VALUES (1, 2), (3, 4)) SELECT a + b FROM x
?column?:int4
3
7

> WITH x AS (SELECT * FROM e WHERE active), y AS (SELECT dept, count(*) AS n FROM x GROUP BY dept) SELECT x.name, y.n FROM x JOIN y ON y.dept = x.dept
name:text|n:int8
Ann|2
Bob|2
Eve|2
Ann|2

> WITH x AS (SELECT id FROM e), y AS (SELECT id FROM x WHERE id > 2), z AS (SELECT id FROM y WHERE id < 6) SELECT * FROM z
id:int4
4
5
3

> WITH x AS (SELECT dept, sum(pay) AS s FROM e GROUP BY dept) SELECT a.dept, b.dept FROM x a JOIN x b ON a.s > b.s
dept:int4|dept:int4
2|5
2|1
1|5

> WITH x AS (SELECT max(pay) AS m FROM e) SELECT name FROM e, x WHERE pay = m
name:text
Eve

> WITH e AS (SELECT 1 AS id) SELECT * FROM e
id:int4
1

> WITH x AS MATERIALIZED (SELECT id FROM e) SELECT count(*) FROM x
count:int8
7

> WITH x AS NOT MATERIALIZED (SELECT id FROM e) SELECT count(*) FROM x
count:int8
7

> WITH x AS (SELECT 1 AS a UNION ALL SELECT 2) SELECT * FROM x UNION ALL SELECT a * 10 FROM x
a:int4
1
2
10
20

> WITH x AS (WITH y AS (SELECT 5 AS n) SELECT n + 1 AS m FROM y) SELECT m FROM x
m:int4
6

> SELECT * FROM (WITH x AS (SELECT id FROM dept) SELECT id FROM x WHERE id > 1) z
id:int4
2
3
4

> WITH unused AS (SELECT 1 / 0), x AS (SELECT 2 AS a) SELECT a FROM x
a:int4
2

> WITH x AS (SELECT id, boss FROM e) SELECT id FROM x WHERE boss IN (SELECT id FROM x WHERE boss IS NOT NULL)
id:int4
4
5
6
7

> WITH RECURSIVE x AS (SELECT 1 AS n) SELECT * FROM x
n:int4
1

> SELECT e.name FROM e AS e
name:text
Ann
Bob
Dee
Eve
Fay
Ann
Cid

> SELECT "e"."name" FROM "e" WHERE "e"."id" = 1
name:text
Ann

> SELECT E.NAME FROM E WHERE ID = 1
name:text
Ann

% everview-only
> SELECT (e).name FROM e WHERE id = 1
! 0A000 selecting a field of a composite value is not supported

> SELECT x.id FROM (SELECT * FROM (SELECT * FROM e) y WHERE id < 4) x WHERE x.id > 1
id:int4
2
3

> SELECT count(*) AS "how many" FROM e
how many:int8
7

> SELECT id AS a, id + 1 AS b FROM e ORDER BY a
a:int4|b:int4
1|2
2|3
3|4
4|5
5|6
6|7
7|8

> SELECT name, pay FROM e WHERE pay IS NOT NULL /* a comment */ AND id < 4 -- another
name:text|pay:numeric
Ann|500.00
Bob|300.50
Cid|350.50
