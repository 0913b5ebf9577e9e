# ORDER BY, LIMIT, OFFSET, DISTINCT, DISTINCT ON
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

> SELECT id FROM e ORDER BY id
id:int4
1
2
3
4
5
6
7

> SELECT id FROM e ORDER BY id DESC
id:int4
7
6
5
4
3
2
1

> SELECT id, pay FROM e ORDER BY pay, id
id:int4|pay:numeric
2|300.50
6|300.50
3|350.50
7|450.00
1|500.00
5|700.25
4|NULL

> SELECT id, pay FROM e ORDER BY pay DESC, id
id:int4|pay:numeric
4|NULL
5|700.25
1|500.00
7|450.00
3|350.50
2|300.50
6|300.50

> SELECT id, pay FROM e ORDER BY pay NULLS FIRST, id
id:int4|pay:numeric
4|NULL
2|300.50
6|300.50
3|350.50
7|450.00
1|500.00
5|700.25

> SELECT id, pay FROM e ORDER BY pay DESC NULLS LAST, id
id:int4|pay:numeric
5|700.25
1|500.00
7|450.00
3|350.50
2|300.50
6|300.50
4|NULL

> SELECT id, pay FROM e ORDER BY 2 DESC NULLS LAST, 1
id:int4|pay:numeric
5|700.25
1|500.00
7|450.00
3|350.50
2|300.50
6|300.50
4|NULL

> SELECT id, name AS n FROM e ORDER BY n, id
id:int4|n:text
1|Ann
7|Ann
2|Bob
3|Cid
4|Dee
5|Eve
6|Fay

> SELECT id FROM e ORDER BY name DESC, id DESC
id:int4
6
5
4
3
2
7
1

> SELECT id FROM e ORDER BY dept, pay DESC NULLS LAST, id
id:int4
1
2
5
7
3
6
4

> SELECT id FROM e ORDER BY pay * -1, id
id:int4
5
1
7
3
2
6
4

> SELECT id FROM e ORDER BY length(name), name, id
id:int4
1
7
2
3
4
5
6

> SELECT id FROM e ORDER BY active, id
id:int4
3
1
2
5
7
4
6

> SELECT id FROM e ORDER BY active DESC NULLS LAST, id
id:int4
1
2
5
7
3
4
6

> SELECT id FROM e ORDER BY hired DESC NULLS LAST, id
id:int4
5
6
2
7
1
4
3

> SELECT id FROM e ORDER BY id % 3, id
id:int4
3
6
1
4
7
2
5

> SELECT id FROM e ORDER BY CASE WHEN dept = 2 THEN 0 ELSE 1 END, id
id:int4
3
5
7
1
2
4
6

> SELECT id FROM e ORDER BY dept IS NULL, dept, id
id:int4
1
2
3
5
7
6
4

> SELECT id AS pay, pay AS p FROM e ORDER BY pay
pay:int4|p:numeric
1|500.00
2|300.50
3|350.50
4|NULL
5|700.25
6|300.50
7|450.00

> SELECT id FROM e ORDER BY id LIMIT 3
id:int4
1
2
3

> SELECT id FROM e ORDER BY id LIMIT 3 OFFSET 2
id:int4
3
4
5

> SELECT id FROM e ORDER BY id OFFSET 5
id:int4
6
7

> SELECT id FROM e ORDER BY id LIMIT 0
id:int4

> SELECT id FROM e ORDER BY id LIMIT ALL
id:int4
1
2
3
4
5
6
7

> SELECT id FROM e ORDER BY id LIMIT NULL
id:int4
1
2
3
4
5
6
7

> SELECT id FROM e ORDER BY id OFFSET 100
id:int4

> SELECT id FROM e ORDER BY id FETCH FIRST 2 ROWS ONLY
id:int4
1
2

> SELECT id FROM e ORDER BY id OFFSET 1 ROWS FETCH NEXT 2 ROWS ONLY
id:int4
2
3

> SELECT id FROM e ORDER BY id FETCH FIRST ROW ONLY
id:int4
1

> SELECT dept FROM e ORDER BY dept FETCH FIRST 2 ROWS WITH TIES
dept:int4
1
1

> SELECT id FROM e ORDER BY id LIMIT 1 + 1
id:int4
1
2

> SELECT id FROM e ORDER BY pay DESC NULLS LAST, id LIMIT 2
id:int4
5
1

> SELECT id FROM e WHERE dept = 2 ORDER BY pay DESC, id LIMIT 1
id:int4
5

> SELECT x.id FROM (SELECT id FROM e ORDER BY id LIMIT 4) x ORDER BY x.id DESC LIMIT 2
id:int4
4
3

> SELECT sum(id) FROM (SELECT id FROM e ORDER BY pay DESC NULLS LAST, id LIMIT 3) x
sum:int8
13

> SELECT sum(id) FROM (SELECT id FROM e ORDER BY id OFFSET 2) x
sum:int8
25

> SELECT count(*) FROM (SELECT 1 FROM e LIMIT 2) x
count:int8
2

> SELECT DISTINCT dept FROM e
dept:int4
NULL
5
2
1

> SELECT DISTINCT dept, active FROM e
dept:int4|active:bool
NULL|NULL
1|t
2|f
2|t
5|NULL

> SELECT DISTINCT pay FROM e
pay:numeric
NULL
500.00
300.50
350.50
450.00
700.25

> SELECT DISTINCT name FROM e ORDER BY name
name:text
Ann
Bob
Cid
Dee
Eve
Fay

> SELECT DISTINCT dept FROM e ORDER BY dept DESC NULLS LAST LIMIT 2
dept:int4
5
2

> SELECT DISTINCT dept + 1 FROM e
?column?:int4
NULL
3
6
2

> SELECT DISTINCT * FROM sale
id:int4|emp:int4|amount:int4|day:date|kind:text
3|2|70|2024-01-02|b
8|NULL|10|2024-01-05|NULL
9|5|30|2024-01-04|a
2|1|50|2024-01-02|b
6|5|100|2024-01-03|c
5|3|NULL|2024-01-03|b
1|1|100|2024-01-01|a
7|5|30|NULL|a

> SELECT DISTINCT kind, amount > 40 FROM sale
kind:text|?column?:bool
b|NULL
c|t
a|t
b|t
NULL|f
a|f

> SELECT DISTINCT 1 FROM e
?column?:int4
1

> SELECT DISTINCT d.city FROM dept d JOIN e ON e.dept = d.id
city:text
Rome
Oslo

> SELECT ALL dept FROM e
dept:int4
1
1
NULL
2
5
2
2

> SELECT count(*) FROM (SELECT DISTINCT kind FROM sale) x
count:int8
4

> SELECT DISTINCT ON (dept) dept, id FROM e ORDER BY dept, id
dept:int4|id:int4
1|1
2|3
5|6
NULL|4

> SELECT DISTINCT ON (dept) dept, name, pay FROM e ORDER BY dept, pay DESC NULLS LAST, id
dept:int4|name:text|pay:numeric
1|Ann|500.00
2|Eve|700.25
5|Fay|300.50
NULL|Dee|NULL

> SELECT DISTINCT ON (kind) kind, amount FROM sale ORDER BY kind, amount DESC NULLS LAST, id
kind:text|amount:int4
a|100
b|70
c|100
NULL|10

> SELECT DISTINCT ON (kind, emp) kind, emp, day FROM sale ORDER BY kind, emp, day DESC NULLS LAST, id
kind:text|emp:int4|day:date
a|1|2024-01-01
a|5|2024-01-04
b|1|2024-01-02
b|2|2024-01-02
b|3|2024-01-03
c|5|2024-01-03
NULL|NULL|2024-01-05

> SELECT DISTINCT ON (dept IS NULL) dept IS NULL, id FROM e ORDER BY dept IS NULL, id DESC
?column?:bool|id:int4
f|7
t|4

> SELECT DISTINCT ON (1) dept, id FROM e ORDER BY 1, 2
dept:int4|id:int4
1|1
2|3
5|6
NULL|4

> SELECT DISTINCT ON (dept) id FROM e ORDER BY dept DESC NULLS LAST, id LIMIT 2
id:int4
6
3

> SELECT x.dept, x.id FROM (SELECT DISTINCT ON (dept) dept, id FROM e ORDER BY dept, id DESC) x
dept:int4|id:int4
1|2
2|7
5|6
NULL|4

> SELECT emp, amount FROM sale ORDER BY amount DESC NULLS LAST, emp, id LIMIT 4
emp:int4|amount:int4
1|100
5|100
2|70
1|50

> SELECT emp, sum(amount) FROM sale GROUP BY emp ORDER BY sum(amount) DESC NULLS LAST, emp LIMIT 2
emp:int4|sum:int8
5|190
1|150

> SELECT emp FROM sale GROUP BY emp ORDER BY count(*) DESC, emp NULLS FIRST
emp:int4
5
1
NULL
2
3

> SELECT name FROM e UNION SELECT name FROM dept ORDER BY name LIMIT 4
name:text
Ann
Bob
Cid
Dee

> SELECT id, row_number() OVER (ORDER BY id DESC) AS n FROM e ORDER BY n LIMIT 2
id:int4|n:int8
7|1
6|2

> SELECT kind FROM sale ORDER BY kind NULLS FIRST, id
kind:text
NULL
a
a
a
a
b
b
b
c

> SELECT kind FROM sale ORDER BY kind DESC, id
kind:text
NULL
c
b
b
b
a
a
a
a

> SELECT 1 ORDER BY 1
?column?:int4
1

> SELECT 1 LIMIT 1
?column?:int4
1

> SELECT id FROM nothing, e ORDER BY id LIMIT 1
id:int4

> SELECT a FROM nothing ORDER BY b LIMIT 5 OFFSET 1
a:int4

> SELECT e.id, d.name FROM e JOIN dept d ON d.id = e.dept ORDER BY d.name, e.id LIMIT 3
id:int4|name:text
3|IT
5|IT
7|IT
