# UNION, INTERSECT, EXCEPT
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

> SELECT id FROM e UNION SELECT id FROM dept
id:int4
2
3
5
4
6
7
1

> SELECT id FROM e UNION ALL SELECT id FROM dept
id:int4
1
2
4
5
6
7
3
1
2
3
4

> SELECT id FROM e INTERSECT SELECT id FROM dept
id:int4
3
4
2
1

> SELECT id FROM e INTERSECT ALL SELECT id FROM dept
id:int4
3
4
2
1

> SELECT id FROM e EXCEPT SELECT id FROM dept
id:int4
5
6
7

> SELECT id FROM e EXCEPT ALL SELECT id FROM dept
id:int4
5
6
7

> SELECT dept FROM e UNION SELECT id FROM dept
dept:int4
NULL
2
3
5
4
1

> SELECT dept FROM e INTERSECT SELECT id FROM dept
dept:int4
2
1

> SELECT dept FROM e INTERSECT ALL SELECT dept FROM e WHERE id > 2
dept:int4
NULL
5
2
2
2

> SELECT dept FROM e EXCEPT SELECT id FROM dept
dept:int4
NULL
5

> SELECT dept FROM e EXCEPT ALL SELECT id FROM dept
dept:int4
NULL
5
2
2
1

> SELECT dept FROM e EXCEPT ALL SELECT dept FROM e WHERE id IN (3, 4)
dept:int4
5
2
2
1
1

> SELECT id FROM dept EXCEPT SELECT dept FROM e
id:int4
3
4

> SELECT kind FROM sale UNION SELECT name FROM dept
kind:text
NULL
a
b
c
HR
IT
Ops
Sales

> SELECT kind FROM sale UNION ALL SELECT NULL
kind:text
a
b
b
c
a
NULL
a
a
b
NULL

> SELECT kind FROM sale EXCEPT SELECT NULL
kind:text
a
b
c

> SELECT kind FROM sale EXCEPT ALL SELECT 'a'
kind:text
NULL
a
a
a
b
b
b
c

> SELECT kind FROM sale INTERSECT SELECT 'a'
kind:text
a

> SELECT emp, amount FROM sale UNION SELECT id, 30 FROM e
emp:int4|amount:int4
7|30
NULL|10
5|30
3|30
5|100
1|30
3|NULL
2|30
1|50
6|30
1|100
2|70
4|30

> SELECT emp, amount FROM sale INTERSECT SELECT 5, 30
emp:int4|amount:int4
5|30

> SELECT emp, kind FROM sale EXCEPT SELECT 5, 'a'
emp:int4|kind:text
NULL|NULL
1|a
1|b
3|b
2|b
5|c

> SELECT id FROM e UNION SELECT id FROM dept UNION SELECT id FROM sale
id:int4
2
5
4
6
9
3
8
7
1

> SELECT id FROM e UNION ALL SELECT id FROM dept UNION ALL SELECT id FROM sale
id:int4
1
2
4
5
6
7
3
1
2
3
4
1
2
5
6
7
8
9
9
3

> SELECT id FROM e UNION ALL SELECT id FROM dept EXCEPT SELECT 1
id:int4
2
3
5
4
6
7

> SELECT id FROM e EXCEPT (SELECT id FROM dept EXCEPT SELECT 1)
id:int4
5
6
7
1

> SELECT id FROM e UNION SELECT id FROM dept INTERSECT SELECT id FROM sale
id:int4
2
3
5
4
6
7
1

> (SELECT id FROM e UNION SELECT id FROM dept) INTERSECT SELECT id FROM sale
id:int4
3
5
6
2
7
1

> SELECT id FROM e WHERE active UNION SELECT id FROM e WHERE NOT active
id:int4
2
3
5
7
1

> SELECT id FROM e UNION SELECT id FROM dept ORDER BY id
id:int4
1
2
3
4
5
6
7

> SELECT id FROM e UNION ALL SELECT id FROM dept ORDER BY 1 DESC LIMIT 3
id:int4
7
6
5

> SELECT id FROM e UNION SELECT id FROM dept ORDER BY id LIMIT 2 OFFSET 1
id:int4
2
3

> (SELECT id FROM e ORDER BY id LIMIT 2) UNION ALL (SELECT id FROM dept ORDER BY id DESC LIMIT 2)
id:int4
1
2
4
3

> SELECT id AS n FROM e UNION SELECT budget FROM dept
n:int8
NULL
2
3
5
4
6
300
7
1
1000
5000

> SELECT id FROM e UNION SELECT pay FROM e
id:numeric
NULL
2
700.25
500.00
450.00
3
7
4
6
350.50
1
300.50
5

> SELECT 1 UNION SELECT 1.0
?column?:numeric
1

> SELECT 1 UNION ALL SELECT 2.5 UNION ALL SELECT NULL
?column?:numeric
1
2.5
NULL

> SELECT 'a' UNION SELECT 'b' UNION SELECT 'a'
?column?:text
b
a

> SELECT NULL UNION SELECT NULL
?column?:text
NULL

> SELECT 1, 'x' UNION SELECT 2, NULL
?column?:int4|?column?:text
1|x
2|NULL

> SELECT date '2024-01-01' UNION SELECT timestamp '2024-01-01 12:00'
date:timestamp
2024-01-01 00:00:00
2024-01-01 12:00:00

> SELECT ARRAY[1] UNION SELECT ARRAY[1] UNION SELECT ARRAY[2]
array:int4[]
{2}
{1}

> VALUES (1), (2), (2) UNION SELECT 2
column1:int4
1
2

> VALUES (1, 'a') UNION ALL VALUES (1, 'a'), (2, 'b')
column1:int4|column2:text
1|a
1|a
2|b

> VALUES (1), (2) EXCEPT VALUES (2)
column1:int4
1

> SELECT a FROM nothing UNION SELECT id FROM e WHERE id < 3
a:int4
2
1

> SELECT a FROM nothing INTERSECT SELECT id FROM e
a:int4

> SELECT id FROM e EXCEPT SELECT a FROM nothing
id:int4
3
5
4
6
2
7
1

> SELECT a FROM nothing EXCEPT SELECT id FROM e
a:int4

> SELECT count(*) FROM (SELECT id FROM e UNION SELECT id FROM sale) x
count:int8
9

> SELECT x.n, count(*) FROM (SELECT dept AS n FROM e UNION ALL SELECT id FROM dept) x GROUP BY x.n
n:int4|count:int8
NULL|1
3|1
5|1
4|1
2|4
1|3

> SELECT x.n FROM (SELECT dept AS n FROM e EXCEPT SELECT id FROM dept) x JOIN e ON e.dept = x.n
n:int4
5

> SELECT dept, count(*) FROM e GROUP BY dept UNION ALL SELECT NULL, count(*) FROM e
dept:int4|count:int8
NULL|1
5|1
2|3
1|2
NULL|7

> SELECT max(id) FROM e UNION SELECT max(id) FROM sale
max:int4
7
9

> SELECT DISTINCT dept FROM e UNION ALL SELECT DISTINCT id FROM dept
dept:int4
NULL
5
2
1
3
4
2
1

> SELECT id, name FROM e WHERE dept = 1 UNION SELECT id, name FROM e WHERE pay > 400
id:int4|name:text
5|Eve
7|Ann
1|Ann
2|Bob

> SELECT id FROM e WHERE id IN (SELECT emp FROM sale) EXCEPT SELECT boss FROM e
id:int4

> SELECT day FROM sale UNION SELECT hired FROM e
day:date
NULL
2024-01-02
2021-05-05
2024-01-01
2020-06-15
2020-01-01
2019-12-31
2022-02-02
2024-01-05
2024-01-04
2024-01-03

> SELECT active FROM e UNION SELECT NULL
active:bool
NULL
f
t

> SELECT id FROM sale EXCEPT ALL SELECT id FROM (SELECT DISTINCT id FROM sale) x
id:int4
9

> SELECT id FROM sale INTERSECT ALL SELECT id FROM sale
id:int4
9
9
3
5
6
2
7
1
8

> SELECT kind, amount FROM sale INTERSECT ALL SELECT kind, amount FROM sale WHERE emp = 5
kind:text|amount:int4
c|100
a|30
a|30
a|30
