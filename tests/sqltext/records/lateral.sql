# LATERAL and table functions of what stands to the left
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

> SELECT e.id, x.total FROM e, LATERAL (SELECT sum(amount) AS total FROM sale WHERE emp = e.id) x
id:int4|total:int8
1|150
2|70
4|NULL
5|190
6|NULL
7|NULL
3|NULL

> SELECT e.id, x.amount FROM e, LATERAL (SELECT amount FROM sale WHERE emp = e.id) x
id:int4|amount:int4
1|100
1|50
2|70
3|NULL
5|100
5|30
5|30
5|30

> SELECT e.id, x.amount FROM e CROSS JOIN LATERAL (SELECT amount FROM sale WHERE emp = e.id ORDER BY amount DESC NULLS LAST, id LIMIT 1) x
id:int4|amount:int4
1|100
2|70
5|100
3|NULL

> SELECT e.id, x.amount FROM e LEFT JOIN LATERAL (SELECT amount FROM sale WHERE emp = e.id ORDER BY amount, id LIMIT 1) x ON true
id:int4|amount:int4
1|50
2|70
4|NULL
5|30
6|NULL
7|NULL
3|NULL

> SELECT e.id, x.amount FROM e LEFT JOIN LATERAL (SELECT amount FROM sale WHERE emp = e.id) x ON x.amount > 50
id:int4|amount:int4
1|100
2|70
4|NULL
5|100
6|NULL
7|NULL
3|NULL

> SELECT e.id, x.n FROM e JOIN LATERAL (SELECT count(*) AS n FROM sale WHERE emp = e.id) x ON x.n > 0
id:int4|n:int8
1|2
2|1
5|4
3|1

> SELECT d.name, x.name, x.pay FROM dept d, LATERAL (SELECT name, pay FROM e WHERE e.dept = d.id ORDER BY pay DESC NULLS LAST, id LIMIT 2) x
name:text|name:text|pay:numeric
Sales|Ann|500.00
Sales|Bob|300.50
IT|Eve|700.25
IT|Ann|450.00

> SELECT d.name, x.avg FROM dept d LEFT JOIN LATERAL (SELECT avg(pay) FROM e WHERE e.dept = d.id) x ON true
name:text|avg:numeric
Sales|400.2500000000000000
IT|500.2500000000000000
HR|NULL
Ops|NULL

> SELECT d.id, x.id, y.id FROM dept d, LATERAL (SELECT id FROM e WHERE e.dept = d.id) x, LATERAL (SELECT id FROM sale WHERE emp = x.id) y
id:int4|id:int4|id:int4
1|1|1
1|1|2
1|2|3
2|3|5
2|5|6
2|5|7
2|5|9
2|5|9

> SELECT d.id, x.id, y.n FROM dept d, LATERAL (SELECT id FROM e WHERE e.dept = d.id) x, LATERAL (SELECT count(*) AS n FROM sale WHERE emp = x.id AND amount > d.id) y
id:int4|id:int4|n:int8
1|1|2
1|2|1
2|5|4
2|7|0
2|3|0

> SELECT e.id, x.v FROM e, LATERAL (VALUES (e.id), (e.dept)) AS x(v)
id:int4|v:int4
1|1
1|1
2|2
2|1
4|4
4|NULL
5|5
5|2
6|6
6|5
7|7
7|2
3|3
3|2

> SELECT e.id, x.k, x.v FROM e, LATERAL (VALUES ('id', e.id), ('boss', e.boss)) AS x(k, v) WHERE x.v IS NOT NULL
id:int4|k:text|v:int4
1|id|1
2|id|2
2|boss|1
4|id|4
4|boss|2
5|id|5
5|boss|3
6|id|6
6|boss|5
7|id|7
7|boss|3
3|id|3
3|boss|1

> SELECT e.id, x.twice FROM e, LATERAL (SELECT e.id * 2 AS twice) x
id:int4|twice:int4
1|2
2|4
4|8
5|10
6|12
7|14
3|6

> SELECT e.id, y.z FROM e, LATERAL (SELECT e.id * 2 AS t) x, LATERAL (SELECT x.t + 1 AS z) y
id:int4|z:int4
1|3
2|5
4|9
5|11
6|13
7|15
3|7

> SELECT e.id, g FROM e, generate_series(1, e.id) AS g WHERE e.id < 4
id:int4|g:int4
1|1
2|1
2|2
3|1
3|2
3|3

> SELECT e.id, g FROM e, LATERAL generate_series(e.id, e.dept) AS g
id:int4|g:int4
1|1

> SELECT e.id, g FROM e LEFT JOIN generate_series(1, e.dept) AS g ON true
id:int4|g:int4
1|1
2|1
4|NULL
5|1
5|2
6|1
6|2
6|3
6|4
6|5
7|1
7|2
3|1
3|2

> SELECT e.id, g FROM e LEFT JOIN LATERAL generate_series(1, e.dept) AS g ON g > 1
id:int4|g:int4
1|NULL
2|NULL
4|NULL
5|2
6|2
6|3
6|4
6|5
7|2
3|2

> SELECT e.id, g.a, h.b FROM e, generate_series(1, 2) AS g(a), generate_series(g.a, 2) AS h(b) WHERE e.id < 3
id:int4|a:int4|b:int4
1|1|1
2|1|1
1|1|2
2|1|2
1|2|2
2|2|2

> SELECT e.name, w FROM e, regexp_split_to_table(e.name, '') AS w WHERE e.id < 3
name:text|w:text
Ann|A
Ann|n
Ann|n
Bob|B
Bob|o
Bob|b

> SELECT e.id, u FROM e, unnest(ARRAY[e.id, e.boss]) AS u
id:int4|u:int4
1|1
1|NULL
2|2
2|1
4|4
4|2
5|5
5|3
6|6
6|5
7|7
7|3
3|3
3|1

> SELECT e.id, x.* FROM e, LATERAL (SELECT min(day), max(day) FROM sale WHERE emp = e.id) x(first, last)
id:int4|first:date|last:date
1|2024-01-01|2024-01-02
2|2024-01-02|2024-01-02
4|NULL|NULL
5|2024-01-03|2024-01-04
6|NULL|NULL
7|NULL|NULL
3|2024-01-03|2024-01-03

> SELECT e.id, x.r FROM e, LATERAL (SELECT rank() OVER (ORDER BY amount DESC) AS r, id FROM sale WHERE emp = e.id) x WHERE x.r = 1
id:int4|r:int8
1|1
2|1
5|1
3|1

> SELECT e.id, x.d FROM e, LATERAL (SELECT DISTINCT kind AS d FROM sale WHERE emp = e.id) x
id:int4|d:text
1|a
1|b
2|b
5|a
5|c
3|b

> SELECT e.id, x.v FROM e, LATERAL (SELECT amount AS v FROM sale WHERE emp = e.id UNION SELECT e.dept) x
id:int4|v:int4
1|1
1|50
1|100
2|1
2|70
4|NULL
5|2
5|30
5|100
6|5
7|2
3|2
3|NULL

> SELECT e.id, x.v FROM e, LATERAL (SELECT amount AS v FROM sale WHERE emp = e.id EXCEPT SELECT 30) x
id:int4|v:int4
1|50
1|100
2|70
5|100
3|NULL

> SELECT e.id, x.kind, x.total FROM e, LATERAL (SELECT kind, sum(amount) AS total FROM sale WHERE emp = e.id GROUP BY kind) x
id:int4|kind:text|total:int8
1|a|100
1|b|50
2|b|70
5|a|90
5|c|100
3|b|NULL

> SELECT e.id, x.n FROM e, LATERAL (SELECT count(*) AS n FROM sale WHERE emp = e.id GROUP BY kind HAVING count(*) > 1) x
id:int4|n:int8
5|3

> SELECT e.id, x.o FROM e, LATERAL (SELECT o.id AS o FROM e o WHERE o.dept = e.dept AND o.id <> e.id AND EXISTS (SELECT 1 FROM sale WHERE emp = o.id)) x
id:int4|o:int4
1|2
2|1
5|3
7|3
7|5
3|5

> SELECT d.id, x.c FROM dept d LEFT JOIN LATERAL (SELECT count(*) AS c FROM e JOIN sale ON emp = e.id WHERE e.dept = d.id) x ON x.c > 1
id:int4|c:int8
1|3
2|5
3|NULL
4|NULL

> SELECT e.id, x.next FROM e LEFT JOIN LATERAL (SELECT min(o.id) AS next FROM e o WHERE o.id > e.id) x ON true
id:int4|next:int4
1|2
2|3
4|5
5|6
6|7
7|NULL
3|4

> SELECT e.id, x.running FROM e, LATERAL (SELECT sum(o.pay) AS running FROM e o WHERE o.id <= e.id) x
id:int4|running:numeric
1|500.00
2|800.50
4|1151.00
5|1851.25
6|2151.75
7|2601.75
3|1151.00
