# Subqueries: scalar, EXISTS, IN, ANY, ALL, correlated and not
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

> SELECT name FROM e WHERE pay = (SELECT max(pay) FROM e)
name:text
Eve

> SELECT name FROM e WHERE pay > (SELECT avg(pay) FROM e)
name:text
Ann
Eve
Ann

> SELECT name, (SELECT max(pay) FROM e) - pay FROM e
name:text|?column?:numeric
Ann|200.25
Bob|399.75
Dee|NULL
Eve|0.00
Fay|399.75
Ann|250.25
Cid|349.75

> SELECT name, pay / (SELECT sum(pay) FROM e) FROM e
name:text|?column?:numeric
Ann|0.19217834150091284712
Bob|0.11549918324204862112
Dee|NULL
Eve|0.26914576727202844239
Fay|0.11549918324204862112
Ann|0.17296050735082156241
Cid|0.13471701739213990583

> SELECT (SELECT count(*) FROM e), (SELECT count(*) FROM sale)
count:int8|count:int8
7|9

> SELECT name, (SELECT d.name FROM dept d WHERE d.id = e.dept) FROM e
name:text|name:text
Ann|Sales
Bob|Sales
Dee|NULL
Eve|IT
Fay|NULL
Ann|IT
Cid|IT

> SELECT name, (SELECT count(*) FROM sale WHERE emp = e.id) FROM e
name:text|count:int8
Ann|2
Bob|1
Dee|0
Eve|4
Fay|0
Ann|0
Cid|1

> SELECT name, (SELECT sum(amount) FROM sale WHERE emp = e.id) FROM e
name:text|sum:int8
Ann|150
Bob|70
Dee|NULL
Eve|190
Fay|NULL
Ann|NULL
Cid|NULL

> SELECT name, (SELECT max(day) FROM sale WHERE emp = e.id AND amount > 40) FROM e
name:text|max:date
Ann|2024-01-02
Bob|2024-01-02
Dee|NULL
Eve|2024-01-03
Fay|NULL
Ann|NULL
Cid|NULL

> SELECT name, coalesce((SELECT sum(amount) FROM sale WHERE emp = e.id), 0) FROM e
name:text|coalesce:int8
Ann|150
Bob|70
Dee|0
Eve|190
Fay|0
Ann|0
Cid|0

> SELECT name, (SELECT name FROM e b WHERE b.id = e.boss) FROM e
name:text|name:text
Ann|NULL
Bob|Ann
Dee|Bob
Eve|Cid
Fay|Eve
Ann|Cid
Cid|Ann

> SELECT name, (SELECT count(*) FROM e o WHERE o.pay > e.pay) + 1 AS rank FROM e
name:text|rank:int8
Ann|2
Bob|5
Dee|1
Eve|1
Fay|5
Ann|3
Cid|4

> SELECT name, (SELECT string_agg(kind, ',' ORDER BY kind) FROM sale WHERE emp = e.id) FROM e
name:text|string_agg:text
Ann|a,b
Bob|b
Dee|NULL
Eve|a,a,a,c
Fay|NULL
Ann|NULL
Cid|b

> SELECT name, (SELECT kind FROM sale WHERE emp = e.id ORDER BY amount DESC NULLS LAST, id LIMIT 1) FROM e
name:text|kind:text
Ann|a
Bob|b
Dee|NULL
Eve|c
Fay|NULL
Ann|NULL
Cid|b

> SELECT name, (SELECT amount FROM sale WHERE emp = e.id ORDER BY day, id OFFSET 1 LIMIT 1) FROM e
name:text|amount:int4
Ann|50
Bob|NULL
Dee|NULL
Eve|30
Fay|NULL
Ann|NULL
Cid|NULL

> SELECT name FROM e WHERE (SELECT count(*) FROM sale WHERE emp = e.id) > 1
name:text
Ann
Eve

> SELECT name FROM e WHERE (SELECT sum(amount) FROM sale WHERE emp = e.id) IS NULL
name:text
Dee
Fay
Ann
Cid

> SELECT name FROM e WHERE pay > (SELECT avg(pay) FROM e o WHERE o.dept = e.dept)
name:text
Ann
Eve

> SELECT name FROM e WHERE pay >= (SELECT max(pay) FROM e o WHERE o.dept IS NOT DISTINCT FROM e.dept)
name:text
Ann
Eve
Fay

> SELECT name FROM e WHERE EXISTS (SELECT 1 FROM sale WHERE emp = e.id)
name:text
Ann
Bob
Eve
Cid

> SELECT name FROM e WHERE NOT EXISTS (SELECT 1 FROM sale WHERE emp = e.id)
name:text
Dee
Fay
Ann

> SELECT name FROM e WHERE EXISTS (SELECT * FROM sale WHERE emp = e.id AND amount > e.id * 20)
name:text
Ann
Bob

> SELECT name FROM e WHERE EXISTS (SELECT 1 FROM nothing)
name:text

> SELECT name FROM e WHERE NOT EXISTS (SELECT 1 FROM nothing)
name:text
Ann
Bob
Dee
Eve
Fay
Ann
Cid

> SELECT name FROM e WHERE EXISTS (SELECT 1 FROM sale WHERE emp = e.id) AND NOT EXISTS (SELECT 1 FROM sale WHERE emp = e.id AND kind = 'c')
name:text
Ann
Bob
Cid

> SELECT name FROM e WHERE EXISTS (SELECT 1 FROM sale WHERE emp = e.id) OR active
name:text
Ann
Bob
Eve
Ann
Cid

> SELECT name, EXISTS (SELECT 1 FROM sale WHERE emp = e.id) AS sells FROM e
name:text|sells:bool
Ann|t
Bob|t
Dee|f
Eve|t
Fay|f
Ann|f
Cid|t

> SELECT name, NOT EXISTS (SELECT 1 FROM e o WHERE o.boss = e.id) AS leaf FROM e
name:text|leaf:bool
Ann|f
Bob|f
Dee|t
Eve|f
Fay|t
Ann|t
Cid|f

> SELECT name FROM e WHERE EXISTS (SELECT 1 FROM sale s WHERE s.emp = e.id AND EXISTS (SELECT 1 FROM dept d WHERE d.id = e.dept AND d.budget > s.amount))
name:text
Ann
Bob
Eve

> SELECT name FROM dept d WHERE EXISTS (SELECT 1 FROM e WHERE e.dept = d.id AND e.id IN (SELECT emp FROM sale))
name:text
Sales
IT

> SELECT name FROM e WHERE id IN (SELECT emp FROM sale)
name:text
Ann
Bob
Eve
Cid

> SELECT name FROM e WHERE id NOT IN (SELECT emp FROM sale)
name:text

> SELECT name FROM e WHERE id NOT IN (SELECT emp FROM sale WHERE emp IS NOT NULL)
name:text
Dee
Fay
Ann

> SELECT name FROM e WHERE dept IN (SELECT id FROM dept WHERE city = 'Rome')
name:text
Eve
Ann
Cid

> SELECT name FROM e WHERE dept NOT IN (SELECT id FROM dept WHERE city = 'Rome')
name:text
Ann
Bob
Fay

> SELECT name FROM e WHERE dept NOT IN (SELECT a FROM nothing)
name:text
Ann
Bob
Dee
Eve
Fay
Ann
Cid

> SELECT name FROM e WHERE dept IN (SELECT a FROM nothing)
name:text

> SELECT name, dept IN (SELECT id FROM dept) FROM e
name:text|?column?:bool
Ann|t
Bob|t
Dee|NULL
Eve|t
Fay|f
Ann|t
Cid|t

> SELECT name, dept NOT IN (SELECT id FROM dept WHERE city IS NOT NULL) FROM e
name:text|?column?:bool
Ann|f
Bob|f
Dee|NULL
Eve|f
Fay|t
Ann|f
Cid|f

> SELECT name, id IN (SELECT emp FROM sale) FROM e
name:text|?column?:bool
Ann|t
Bob|t
Dee|NULL
Eve|t
Fay|NULL
Ann|NULL
Cid|t

> SELECT name, id NOT IN (SELECT emp FROM sale) FROM e
name:text|?column?:bool
Ann|f
Bob|f
Dee|NULL
Eve|f
Fay|NULL
Ann|NULL
Cid|f

> SELECT name, dept IN (SELECT a FROM nothing), NULL IN (SELECT a FROM nothing) FROM e
name:text|?column?:bool|?column?:bool
Ann|f|f
Bob|f|f
Dee|f|f
Eve|f|f
Fay|f|f
Ann|f|f
Cid|f|f

> SELECT name FROM e WHERE (id, dept) IN (SELECT emp, 2 FROM sale)
name:text
Cid
Eve

> SELECT name FROM e WHERE (dept, active) IN (SELECT dept, active FROM e o WHERE o.id <> e.id)
name:text
Ann
Bob
Eve
Ann

> SELECT name FROM e WHERE (dept, name) NOT IN (SELECT id, name FROM dept)
name:text
Ann
Bob
Dee
Eve
Fay
Ann
Cid

> SELECT name FROM e WHERE id IN (SELECT emp FROM sale WHERE amount > e.id * 10)
name:text
Ann
Bob
Eve

> SELECT name FROM e WHERE id NOT IN (SELECT boss FROM e o WHERE o.dept = e.dept AND boss IS NOT NULL)
name:text
Bob
Dee
Eve
Fay
Ann

> SELECT name FROM e WHERE id = ANY (SELECT emp FROM sale)
name:text
Ann
Bob
Eve
Cid

> SELECT name FROM e WHERE id <> ALL (SELECT emp FROM sale WHERE emp IS NOT NULL)
name:text
Dee
Fay
Ann

> SELECT name FROM e WHERE pay >= ALL (SELECT pay FROM e WHERE pay IS NOT NULL)
name:text
Eve

> SELECT name FROM e WHERE pay > ANY (SELECT pay FROM e)
name:text
Ann
Eve
Ann
Cid

> SELECT name FROM e WHERE pay < SOME (SELECT pay FROM e o WHERE o.dept = e.dept)
name:text
Bob
Ann
Cid

> SELECT name, pay > ALL (SELECT pay FROM e o WHERE o.dept = e.dept AND o.id <> e.id) FROM e
name:text|?column?:bool
Ann|t
Bob|f
Dee|t
Eve|t
Fay|t
Ann|f
Cid|f

> SELECT name, pay = ANY (SELECT pay FROM e o WHERE o.id <> e.id) FROM e
name:text|?column?:bool
Ann|NULL
Bob|t
Dee|NULL
Eve|NULL
Fay|t
Ann|NULL
Cid|NULL

> SELECT name, id > ALL (SELECT a FROM nothing), id > ANY (SELECT a FROM nothing) FROM e
name:text|?column?:bool|?column?:bool
Ann|t|f
Bob|t|f
Dee|t|f
Eve|t|f
Fay|t|f
Ann|t|f
Cid|t|f

> SELECT name, id > ALL (SELECT emp FROM sale) FROM e
name:text|?column?:bool
Ann|f
Bob|f
Dee|f
Eve|f
Fay|NULL
Ann|NULL
Cid|f

> SELECT name, id = ALL (SELECT emp FROM sale WHERE emp = e.id) FROM e
name:text|?column?:bool
Ann|t
Bob|t
Dee|t
Eve|t
Fay|t
Ann|t
Cid|t

> SELECT s.total FROM (SELECT emp, sum(amount) AS total FROM sale GROUP BY emp) s WHERE s.total > 60
total:int8
190
70
150

> SELECT avg(n) FROM (SELECT count(*) AS n FROM sale GROUP BY emp) x
avg:numeric
1.8000000000000000

> SELECT max(total) FROM (SELECT dept, sum(pay) AS total FROM e GROUP BY dept) x
max:numeric
1500.75

> SELECT x.name FROM (SELECT name, pay FROM e ORDER BY pay DESC NULLS LAST, id LIMIT 3) x WHERE x.pay < 600
name:text
Ann
Ann

> SELECT dept, count(*) FROM e WHERE id IN (SELECT emp FROM sale) GROUP BY dept
dept:int4|count:int8
2|2
1|2

> SELECT dept, sum(pay) FROM e GROUP BY dept HAVING sum(pay) > (SELECT avg(pay) FROM e)
dept:int4|sum:numeric
2|1500.75
1|800.50

> SELECT dept, max(pay) FROM e GROUP BY dept HAVING max(pay) = (SELECT max(pay) FROM e o WHERE o.dept = e.dept)
dept:int4|max:numeric
5|300.50
2|700.25
1|500.00

> SELECT dept, (SELECT d.name FROM dept d WHERE d.id = e.dept), count(*) FROM e GROUP BY dept
dept:int4|name:text|count:int8
NULL|NULL|1
5|NULL|1
2|IT|3
1|Sales|2

> SELECT sum((SELECT count(*) FROM sale WHERE emp = e.id)) FROM e
sum:numeric
8

> SELECT dept, sum((SELECT count(*) FROM sale WHERE emp = e.id)) FROM e GROUP BY dept
dept:int4|sum:numeric
1|3
2|5
5|0
NULL|0

> SELECT CASE WHEN EXISTS (SELECT 1 FROM sale WHERE emp = e.id) THEN 'yes' ELSE 'no' END, name FROM e
case:text|name:text
yes|Ann
yes|Bob
no|Dee
yes|Eve
no|Fay
no|Ann
yes|Cid

> SELECT name, CASE WHEN dept IN (SELECT id FROM dept WHERE budget > 900) THEN 1 ELSE 0 END FROM e
name:text|case:int4
Ann|1
Bob|1
Dee|0
Eve|1
Fay|0
Ann|1
Cid|1

> SELECT name FROM e ORDER BY (SELECT count(*) FROM sale WHERE emp = e.id) DESC, id
name:text
Eve
Ann
Bob
Cid
Dee
Fay
Ann

> SELECT name FROM e WHERE dept = (SELECT id FROM dept WHERE name = 'IT')
name:text
Eve
Ann
Cid

> SELECT name FROM e WHERE dept = (SELECT id FROM dept WHERE name = 'none')
name:text

> SELECT (SELECT a FROM nothing), (SELECT max(a) FROM nothing), (SELECT count(a) FROM nothing)
a:int4|max:int4|count:int8
NULL|NULL|0

> SELECT name, (SELECT (SELECT max(amount) FROM sale s WHERE s.emp = e.id) + d.id FROM dept d WHERE d.id = e.dept) FROM e
name:text|?column?:int4
Ann|101
Bob|71
Dee|NULL
Eve|102
Fay|NULL
Ann|NULL
Cid|NULL

> SELECT name, (SELECT count(*) FROM sale s WHERE s.emp = e.id AND s.amount > (SELECT avg(amount) FROM sale t WHERE t.kind = s.kind)) FROM e
name:text|count:int8
Ann|1
Bob|1
Dee|0
Eve|0
Fay|0
Ann|0
Cid|0

> SELECT name, ARRAY(SELECT s.id FROM sale s WHERE s.emp = e.id ORDER BY s.id) FROM e
name:text|array:int4[]
Ann|{1,2}
Bob|{3}
Dee|{}
Eve|{6,7,9,9}
Fay|{}
Ann|{}
Cid|{5}

> SELECT e.id, d.id FROM e JOIN dept d ON e.dept = d.id AND d.budget > (SELECT avg(budget) FROM dept)
id:int4|id:int4
5|2
7|2
3|2

> SELECT e.id, d.id FROM e LEFT JOIN dept d ON e.dept = d.id AND EXISTS (SELECT 1 FROM sale WHERE emp = e.id)
id:int4|id:int4
1|1
2|1
4|NULL
5|2
6|NULL
7|NULL
3|2

> SELECT e.id FROM e LEFT JOIN dept d ON d.id = e.dept WHERE d.city IN (SELECT city FROM dept WHERE id = 4)
id:int4
1
2

> SELECT DISTINCT (SELECT d.city FROM dept d WHERE d.id = e.dept) FROM e
city:text
Oslo
Rome
NULL

> SELECT name FROM e WHERE 2 = (SELECT count(DISTINCT kind) FROM sale WHERE emp = e.id)
name:text
Ann
Eve

> SELECT name FROM e WHERE 'a' IN (SELECT kind FROM sale WHERE emp = e.id)
name:text
Ann
Eve

> SELECT name FROM e WHERE 'a' NOT IN (SELECT kind FROM sale WHERE emp = e.id)
name:text
Bob
Dee
Fay
Ann
Cid

> SELECT name FROM e WHERE NOT (id IN (SELECT emp FROM sale) AND active)
name:text
Cid

> SELECT name FROM e WHERE (SELECT bool_or(amount > 50) FROM sale WHERE emp = e.id)
name:text
Ann
Bob
Eve

> SELECT name FROM e WHERE (SELECT d.budget FROM dept d WHERE d.id = e.dept) BETWEEN 500 AND 2000
name:text
Ann
Bob

> SELECT d.name, (SELECT e.name FROM e WHERE e.dept = d.id ORDER BY e.pay DESC NULLS LAST, e.id LIMIT 1) FROM dept d
name:text|name:text
Sales|Ann
IT|Eve
HR|NULL
Ops|NULL

> SELECT d.name FROM dept d WHERE (SELECT sum(pay) FROM e WHERE e.dept = d.id) > 400
name:text
Sales
IT

> SELECT d.name FROM dept d WHERE 1 < ALL (SELECT e.id FROM e WHERE e.dept = d.id)
name:text
IT
HR
Ops

> SELECT x.id FROM sale x WHERE x.amount = (SELECT max(y.amount) FROM sale y WHERE y.kind = x.kind)
id:int4
1
6
3

> SELECT x.id FROM sale x WHERE NOT EXISTS (SELECT 1 FROM sale y WHERE y.emp = x.emp AND y.amount > x.amount)
id:int4
1
5
6
8
3

> SELECT x.emp, x.amount FROM sale x WHERE (x.emp, x.amount) IN (SELECT emp, max(amount) FROM sale GROUP BY emp)
emp:int4|amount:int4
1|100
5|100
2|70

> SELECT name FROM e WHERE id IN (SELECT emp FROM sale INTERSECT SELECT boss FROM e)
name:text
Ann
Bob
Eve
Cid

> SELECT name FROM e WHERE id IN (SELECT emp FROM sale UNION SELECT boss FROM e)
name:text
Ann
Bob
Eve
Cid

> SELECT name FROM e WHERE id IN (WITH big AS (SELECT emp FROM sale WHERE amount > 60) SELECT emp FROM big)
name:text
Ann
Bob
Eve

> SELECT name FROM e WHERE id IN (VALUES (1), (3), (NULL))
name:text
Ann
Cid
