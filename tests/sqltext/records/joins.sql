# Joins of all kinds
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

> SELECT e.name, dept.name FROM e JOIN dept ON e.dept = dept.id
name:text|name:text
Ann|Sales
Bob|Sales
Eve|IT
Ann|IT
Cid|IT

> SELECT e.name, dept.name FROM e INNER JOIN dept ON dept.id = e.dept WHERE dept.city = 'Rome'
name:text|name:text
Eve|IT
Ann|IT
Cid|IT

> SELECT e.name, d.name FROM e, dept d WHERE e.dept = d.id
name:text|name:text
Ann|Sales
Bob|Sales
Eve|IT
Ann|IT
Cid|IT

> SELECT e.name, d.name FROM e, dept d WHERE e.dept = d.id AND e.pay > 400
name:text|name:text
Ann|Sales
Ann|IT
Eve|IT

> SELECT e.name, d.name FROM e LEFT JOIN dept d ON e.dept = d.id
name:text|name:text
Ann|Sales
Bob|Sales
Dee|NULL
Eve|IT
Fay|NULL
Ann|IT
Cid|IT

> SELECT e.name, d.name FROM e LEFT OUTER JOIN dept d ON e.dept = d.id AND d.city = 'Rome'
name:text|name:text
Ann|NULL
Bob|NULL
Dee|NULL
Eve|IT
Fay|NULL
Ann|IT
Cid|IT

> SELECT e.name, d.name FROM e LEFT JOIN dept d ON e.dept = d.id AND e.active
name:text|name:text
Ann|Sales
Bob|Sales
Dee|NULL
Eve|IT
Fay|NULL
Ann|IT
Cid|NULL

> SELECT e.name, d.name FROM e LEFT JOIN dept d ON e.dept = d.id WHERE d.id IS NULL
name:text|name:text
Dee|NULL
Fay|NULL

> SELECT e.name, d.name FROM e LEFT JOIN dept d ON e.dept = d.id WHERE d.city = 'Rome'
name:text|name:text
Eve|IT
Ann|IT
Cid|IT

> SELECT e.name, d.name FROM e RIGHT JOIN dept d ON e.dept = d.id
name:text|name:text
Ann|Sales
Bob|Sales
Eve|IT
Ann|IT
Cid|IT
NULL|Ops
NULL|HR

> SELECT e.name, d.name FROM e RIGHT JOIN dept d ON e.dept = d.id AND e.pay > 400
name:text|name:text
Ann|Sales
Ann|IT
Eve|IT
NULL|HR
NULL|Ops

> SELECT e.name, d.name FROM e RIGHT JOIN dept d ON e.dept = d.id WHERE e.id IS NULL
name:text|name:text
NULL|Ops
NULL|HR

> SELECT e.name, d.name FROM e FULL JOIN dept d ON e.dept = d.id
name:text|name:text
Ann|Sales
Bob|Sales
Dee|NULL
Eve|IT
Fay|NULL
Ann|IT
Cid|IT
NULL|Ops
NULL|HR

> SELECT e.name, d.name FROM e FULL OUTER JOIN dept d ON e.dept = d.id AND e.active
name:text|name:text
Ann|Sales
Bob|Sales
Dee|NULL
Eve|IT
Fay|NULL
Ann|IT
Cid|NULL
NULL|Ops
NULL|HR

> SELECT e.name, d.name FROM e FULL JOIN dept d ON e.dept = d.id WHERE e.id IS NULL OR d.id IS NULL
name:text|name:text
Dee|NULL
Fay|NULL
NULL|Ops
NULL|HR

> SELECT e.id, d.id FROM e CROSS JOIN dept d WHERE e.id < 3
id:int4|id:int4
1|1
2|1
1|2
2|2
1|3
2|3
1|4
2|4

> SELECT count(*) FROM e CROSS JOIN dept
count:int8
28

> SELECT count(*) FROM e, dept, sale
count:int8
252

> SELECT e.name, b.name AS boss FROM e JOIN e b ON e.boss = b.id
name:text|boss:text
Bob|Ann
Dee|Bob
Eve|Cid
Fay|Eve
Ann|Cid
Cid|Ann

> SELECT e.name, b.name AS boss FROM e LEFT JOIN e b ON e.boss = b.id
name:text|boss:text
Ann|NULL
Bob|Ann
Dee|Bob
Eve|Cid
Fay|Eve
Ann|Cid
Cid|Ann

> SELECT e.name, b.name, c.name FROM e LEFT JOIN e b ON e.boss = b.id LEFT JOIN e c ON b.boss = c.id
name:text|name:text|name:text
Eve|Cid|Ann
Dee|Bob|Ann
Ann|Cid|Ann
Fay|Eve|Cid
Ann|NULL|NULL
Bob|Ann|NULL
Cid|Ann|NULL

> SELECT a.name, b.name FROM e a JOIN e b ON a.pay = b.pay AND a.id < b.id
name:text|name:text
Bob|Fay

> SELECT a.id, b.id FROM e a JOIN e b ON a.pay < b.pay
id:int4|id:int4
1|5
2|1
2|5
2|7
2|3
6|1
6|5
6|7
6|3
7|1
7|5
3|1
3|5
3|7

> SELECT a.id, b.id FROM e a JOIN e b ON a.id + 1 = b.id
id:int4|id:int4
1|2
2|3
3|4
4|5
5|6
6|7

> SELECT a.id, b.id FROM e a LEFT JOIN e b ON a.pay < b.pay AND a.dept = b.dept
id:int4|id:int4
1|NULL
2|1
4|NULL
5|NULL
6|NULL
7|5
3|7
3|5

> SELECT a.id, b.id FROM e a JOIN e b ON a.dept = b.dept AND a.id <> b.id
id:int4|id:int4
1|2
2|1
5|3
5|7
7|3
7|5
3|7
3|5

> SELECT a.id, b.id FROM e a JOIN e b ON a.dept IS NOT DISTINCT FROM b.dept
id:int4|id:int4
1|1
1|2
2|1
2|2
4|4
5|5
5|7
5|3
6|6
7|5
7|7
7|3
3|5
3|7
3|3

> SELECT e.name, s.amount FROM e JOIN sale s ON s.emp = e.id
name:text|amount:int4
Ann|100
Ann|50
Bob|70
Cid|NULL
Eve|100
Eve|30
Eve|30
Eve|30

> SELECT e.name, s.amount, s.kind FROM e LEFT JOIN sale s ON s.emp = e.id
name:text|amount:int4|kind:text
Ann|100|a
Ann|50|b
Bob|70|b
Cid|NULL|b
Dee|NULL|NULL
Eve|100|c
Eve|30|a
Eve|30|a
Eve|30|a
Fay|NULL|NULL
Ann|NULL|NULL

> SELECT e.name, s.amount FROM e LEFT JOIN sale s ON s.emp = e.id AND s.amount > 50
name:text|amount:int4
Ann|100
Bob|70
Dee|NULL
Eve|100
Fay|NULL
Ann|NULL
Cid|NULL

> SELECT e.name, d.name, s.amount FROM e JOIN dept d ON e.dept = d.id JOIN sale s ON s.emp = e.id
name:text|name:text|amount:int4
Ann|Sales|100
Ann|Sales|50
Bob|Sales|70
Cid|IT|NULL
Eve|IT|100
Eve|IT|30
Eve|IT|30
Eve|IT|30

> SELECT e.name, d.name, s.amount FROM e LEFT JOIN dept d ON e.dept = d.id LEFT JOIN sale s ON s.emp = e.id
name:text|name:text|amount:int4
Ann|Sales|100
Ann|Sales|50
Bob|Sales|70
Cid|IT|NULL
Dee|NULL|NULL
Eve|IT|100
Eve|IT|30
Eve|IT|30
Eve|IT|30
Fay|NULL|NULL
Ann|IT|NULL

> SELECT e.name, d.name, s.amount FROM e LEFT JOIN dept d ON e.dept = d.id JOIN sale s ON s.emp = e.id
name:text|name:text|amount:int4
Ann|Sales|100
Ann|Sales|50
Bob|Sales|70
Cid|IT|NULL
Eve|IT|100
Eve|IT|30
Eve|IT|30
Eve|IT|30

> SELECT e.name, d.name, s.amount FROM e JOIN sale s ON s.emp = e.id RIGHT JOIN dept d ON e.dept = d.id
name:text|name:text|amount:int4
Ann|Sales|100
Ann|Sales|50
Bob|Sales|70
Cid|IT|NULL
Eve|IT|100
Eve|IT|30
Eve|IT|30
Eve|IT|30
NULL|HR|NULL
NULL|Ops|NULL

> SELECT e.name, d.name, s.id FROM sale s FULL JOIN e ON s.emp = e.id FULL JOIN dept d ON e.dept = d.id
name:text|name:text|id:int4
Ann|Sales|2
Ann|Sales|1
Bob|Sales|3
Eve|IT|7
Eve|IT|9
Eve|IT|9
Ann|IT|NULL
Cid|IT|5
Eve|IT|6
NULL|HR|NULL
NULL|Ops|NULL
Fay|NULL|NULL
NULL|NULL|8
Dee|NULL|NULL

> SELECT e.name, x.name, x.amount FROM e LEFT JOIN (dept d JOIN sale s ON s.id = d.id) AS x(did, name, city, budget, sid, emp, amount, day, kind) ON x.did = e.dept
name:text|name:text|amount:int4
Ann|Sales|100
Bob|Sales|100
Eve|IT|50
Ann|IT|50
Cid|IT|50
Fay|NULL|NULL
Dee|NULL|NULL

> SELECT e.id, d.name, s.id FROM e LEFT JOIN (dept d JOIN sale s ON s.id = d.id) ON d.id = e.dept
id:int4|name:text|id:int4
1|Sales|1
2|Sales|1
5|IT|2
7|IT|2
3|IT|2
6|NULL|NULL
4|NULL|NULL

> SELECT e.id, d.name, s.id FROM (e JOIN dept d ON d.id = e.dept) LEFT JOIN sale s ON s.emp = e.id
id:int4|name:text|id:int4
1|Sales|1
1|Sales|2
2|Sales|3
3|IT|5
5|IT|6
5|IT|7
5|IT|9
5|IT|9
7|IT|NULL

> SELECT * FROM e JOIN dept USING (id)
id:int4|dept:int4|boss:int4|name:text|pay:numeric|hired:date|active:bool|name:text|city:text|budget:int8
1|1|NULL|Ann|500.00|2020-01-01|t|Sales|Oslo|1000
2|1|1|Bob|300.50|2021-05-05|t|IT|Rome|5000
4|NULL|2|Dee|NULL|2019-12-31|NULL|Ops|Oslo|300
3|2|1|Cid|350.50|NULL|f|HR|NULL|NULL

> SELECT id, e.name, dept.name FROM e JOIN dept USING (id)
id:int4|name:text|name:text
1|Ann|Sales
2|Bob|IT
4|Dee|Ops
3|Cid|HR

> SELECT id, name, e.dept, dept.city FROM e JOIN dept USING (id, name)
id:int4|name:text|dept:int4|city:text

> SELECT id, e.id, dept.id FROM e LEFT JOIN dept USING (id)
id:int4|id:int4|id:int4
1|1|1
2|2|2
4|4|4
5|5|NULL
6|6|NULL
7|7|NULL
3|3|3

> SELECT id, e.id, dept.id FROM e RIGHT JOIN dept USING (id)
id:int4|id:int4|id:int4
1|1|1
2|2|2
4|4|4
3|3|3

> SELECT id, e.id, dept.id FROM e FULL JOIN dept USING (id)
id:int4|id:int4|id:int4
1|1|1
2|2|2
4|4|4
5|5|NULL
6|6|NULL
7|7|NULL
3|3|3

> SELECT * FROM dept NATURAL JOIN (SELECT id, name FROM e) x
id:int4|name:text|city:text|budget:int8

> SELECT * FROM (SELECT id, city FROM dept) a NATURAL LEFT JOIN (SELECT id, pay FROM e) b
id:int4|city:text|pay:numeric
1|Oslo|500.00
2|Rome|300.50
4|Oslo|NULL
3|NULL|350.50

> SELECT id, count(*) FROM e FULL JOIN dept USING (id) GROUP BY id
id:int4|count:int8
2|1
5|1
4|1
6|1
3|1
7|1
1|1

> SELECT e.name FROM e JOIN nothing ON e.id = nothing.a
name:text

> SELECT e.name, nothing.b FROM e LEFT JOIN nothing ON e.id = nothing.a
name:text|b:text
Ann|NULL
Bob|NULL
Cid|NULL
Dee|NULL
Eve|NULL
Fay|NULL
Ann|NULL

> SELECT e.name, nothing.b FROM nothing FULL JOIN e ON e.id = nothing.a
name:text|b:text
Ann|NULL
Bob|NULL
Cid|NULL
Dee|NULL
Eve|NULL
Fay|NULL
Ann|NULL

> SELECT e.name FROM e JOIN dept d ON true WHERE d.id = 1
name:text
Ann
Bob
Dee
Eve
Fay
Ann
Cid

> SELECT e.name, d.id FROM e LEFT JOIN dept d ON false
name:text|id:int4
Ann|NULL
Bob|NULL
Dee|NULL
Eve|NULL
Fay|NULL
Ann|NULL
Cid|NULL

> SELECT e.name, d.id FROM e JOIN dept d ON e.dept = d.id AND 1 = 1
name:text|id:int4
Ann|1
Bob|1
Eve|2
Ann|2
Cid|2

> SELECT e.id, d.id FROM e FULL JOIN dept d ON e.dept = d.id AND d.budget > 500
id:int4|id:int4
1|1
2|1
4|NULL
5|2
6|NULL
7|2
3|2
NULL|4
NULL|3

> SELECT e.id, d.id FROM e LEFT JOIN dept d ON e.dept = d.id AND e.pay::int > d.budget
id:int4|id:int4
1|NULL
2|NULL
4|NULL
5|NULL
6|NULL
7|NULL
3|NULL

> SELECT e.id, d.id FROM e LEFT JOIN dept d ON e.pay > d.budget
id:int4|id:int4
1|4
2|4
4|NULL
5|4
6|4
7|4
3|4

> SELECT e.id, d.id FROM e JOIN dept d ON e.dept + 1 = d.id * 2
id:int4|id:int4
1|1
2|1
6|3

> SELECT e.id, d.id FROM e JOIN dept d ON upper(e.name) < d.name
id:int4|id:int4
1|1
1|2
1|3
1|4
2|1
2|2
2|3
2|4
4|1
4|2
4|3
4|4
5|1
5|2
5|3
5|4
6|1
6|2
6|3
6|4
7|1
7|2
7|3
7|4
3|1
3|2
3|3
3|4

> SELECT e.id, d.id FROM e JOIN dept d ON e.dept = d.id OR e.id = d.id
id:int4|id:int4
1|1
2|1
2|2
4|4
5|2
7|2
3|2
3|3

> SELECT e.id, d.id FROM e LEFT JOIN dept d ON e.dept = d.id OR e.id = d.id
id:int4|id:int4
1|1
2|1
2|2
4|4
5|2
6|NULL
7|2
3|2
3|3

> SELECT e.id, s.id FROM e JOIN sale s ON s.emp = e.id AND s.day > e.hired
id:int4|id:int4
1|1
1|2
2|3
5|6
5|9
5|9

> SELECT e.id, s.id FROM e JOIN sale s ON s.amount BETWEEN e.id * 10 AND e.id * 20
id:int4|id:int4
5|1
6|1
7|1
4|2
5|2
3|2
5|6
6|6
7|6
2|7
3|7
1|8
2|9
3|9
2|9
3|9
4|3
5|3
6|3
7|3

> SELECT d.name, count(e.id) FROM dept d LEFT JOIN e ON e.dept = d.id GROUP BY d.name
name:text|count:int8
Ops|0
Sales|2
IT|3
HR|0

> SELECT d.name, count(*), sum(e.pay), max(s.amount) FROM dept d JOIN e ON e.dept = d.id LEFT JOIN sale s ON s.emp = e.id GROUP BY d.name
name:text|count:int8|sum:numeric|max:int4
Sales|3|1300.50|100
IT|6|3601.50|100

> SELECT d.city, sum(s.amount) FROM sale s JOIN e ON s.emp = e.id JOIN dept d ON e.dept = d.id GROUP BY d.city
city:text|sum:int8
Rome|190
Oslo|220

> SELECT e.name, coalesce(sum(s.amount), 0) AS total FROM e LEFT JOIN sale s ON s.emp = e.id GROUP BY e.id, e.name
name:text|total:int8
Eve|190
Cid|0
Dee|0
Ann|0
Ann|150
Bob|70
Fay|0

> SELECT a.kind, count(*) FROM sale a JOIN sale b ON a.kind = b.kind GROUP BY a.kind
kind:text|count:int8
a|16
b|9
c|1

> SELECT a.id, b.id, c.id FROM sale a JOIN sale b ON a.emp = b.emp JOIN sale c ON b.emp = c.emp WHERE a.id < b.id AND b.id <= c.id
id:int4|id:int4|id:int4
1|2|2
6|7|7
6|7|9
6|7|9
6|9|9
6|9|9
6|9|9
6|9|9
7|9|9
7|9|9
7|9|9
7|9|9

> SELECT e.name, s.total FROM e JOIN (SELECT emp, sum(amount) AS total FROM sale GROUP BY emp) s ON s.emp = e.id
name:text|total:int8
Ann|150
Bob|70
Eve|190
Cid|NULL

> SELECT e.name, s.n FROM e LEFT JOIN (SELECT emp, count(*) AS n FROM sale GROUP BY emp) s ON s.emp = e.id
name:text|n:int8
Ann|2
Bob|1
Dee|NULL
Eve|4
Fay|NULL
Ann|NULL
Cid|1

> SELECT d.name, t.name FROM dept d LEFT JOIN (SELECT DISTINCT ON (dept) dept, name FROM e ORDER BY dept, pay DESC NULLS LAST, id) t ON t.dept = d.id
name:text|name:text
Sales|Ann
IT|Eve
HR|NULL
Ops|NULL

> SELECT a.n, b.n FROM (SELECT id AS n FROM e WHERE active) a FULL JOIN (SELECT id AS n FROM e WHERE NOT active) b ON a.n = b.n
n:int4|n:int4
1|NULL
2|NULL
5|NULL
7|NULL
NULL|3

> SELECT e.*, d.city FROM e JOIN dept d ON d.id = e.dept WHERE e.id = 5
id:int4|dept:int4|boss:int4|name:text|pay:numeric|hired:date|active:bool|city:text
5|2|3|Eve|700.25|2022-02-02|t|Rome

> SELECT d.*, e.name FROM e JOIN dept d ON d.id = e.dept ORDER BY e.id LIMIT 3
id:int4|name:text|city:text|budget:int8|name:text
1|Sales|Oslo|1000|Ann
1|Sales|Oslo|1000|Bob
2|IT|Rome|5000|Cid

> SELECT e.name AS who, d.name AS place FROM e JOIN dept d ON d.id = e.dept ORDER BY place, who, e.id
who:text|place:text
Ann|IT
Cid|IT
Eve|IT
Ann|Sales
Bob|Sales

> SELECT e.id FROM e JOIN (VALUES (1), (5), (5), (99)) AS v(n) ON v.n = e.id
id:int4
1
5
5

> SELECT v.n, e.name FROM (VALUES (1, 'x'), (99, 'y')) AS v(n, s) LEFT JOIN e ON e.id = v.n
n:int4|name:text
1|Ann
99|NULL

> SELECT g, e.name FROM generate_series(1, 4) AS g LEFT JOIN e ON e.id = g
g:int4|name:text
1|Ann
2|Bob
4|Dee
3|Cid

> SELECT g, count(s.id) FROM generate_series(date '2024-01-01', date '2024-01-06', interval '1 day') AS g LEFT JOIN sale s ON s.day = g GROUP BY g
g:timestamptz|count:int8
2024-01-01 00:00:00+00|1
2024-01-02 00:00:00+00|2
2024-01-03 00:00:00+00|2
2024-01-04 00:00:00+00|2
2024-01-05 00:00:00+00|1
2024-01-06 00:00:00+00|0

> SELECT e.id, s.id FROM e JOIN sale s ON (e.id, e.dept) = (s.emp, 2)
id:int4|id:int4
3|5
5|6
5|7
5|9
5|9

> SELECT e.id FROM e JOIN sale s ON s.emp = e.id GROUP BY e.id HAVING count(*) > 1
id:int4
1
5

> SELECT DISTINCT e.dept, s.kind FROM e JOIN sale s ON s.emp = e.id
dept:int4|kind:text
1|b
2|b
2|c
2|a
1|a

> SELECT e.id, d.id, c.id FROM e LEFT JOIN dept d ON e.dept = d.id LEFT JOIN dept c ON c.city = d.city AND c.id <> d.id
id:int4|id:int4|id:int4
1|1|4
2|1|4
5|2|NULL
7|2|NULL
3|2|NULL
6|NULL|NULL
4|NULL|NULL

> SELECT x.id, y.id FROM sale x LEFT JOIN sale y ON y.emp = x.emp AND y.day < x.day
id:int4|id:int4
1|NULL
2|1
3|NULL
5|NULL
6|NULL
7|NULL
9|6
9|6
8|NULL

> SELECT x.id, x.amount - y.amount FROM sale x JOIN sale y ON y.id = x.id - 1
id:int4|?column?:int4
2|-50
3|20
6|NULL
7|-70
8|-20
9|20
9|20

> SELECT e.name FROM e JOIN sale ON emp = e.id WHERE kind = 'a' AND amount > 20
name:text
Ann
Eve
Eve
Eve

> SELECT count(*) FROM e a JOIN e b ON a.dept = b.dept JOIN e c ON c.dept = b.dept
count:int8
36

> SELECT count(*) FROM e a JOIN e b USING (dept) JOIN e c USING (dept)
count:int8
36

> SELECT dept, a.id, b.id FROM e a JOIN e b USING (dept) WHERE a.id < b.id
dept:int4|id:int4|id:int4
1|1|2
2|5|7
2|3|7
2|3|5

# A join under one name
> SELECT j.id, j.amount FROM (e JOIN sale USING (id)) AS j
id:int4|amount:int4
1|100
2|50
3|70
5|NULL
6|100
7|30

> SELECT * FROM (e JOIN sale USING (id)) AS j WHERE j.id < 3
id:int4|dept:int4|boss:int4|name:text|pay:numeric|hired:date|active:bool|emp:int4|amount:int4|day:date|kind:text
1|1|NULL|Ann|500.00|2020-01-01|t|1|100|2024-01-01|a
2|1|1|Bob|300.50|2021-05-05|t|1|50|2024-01-02|b

> SELECT a, b FROM (dept JOIN e USING (id)) AS j(a, b) WHERE a > 1
a:int4|b:text
2|IT
4|Ops
3|HR
