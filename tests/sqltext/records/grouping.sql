# GROUP BY, HAVING, ROLLUP, CUBE, GROUPING SETS
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

> SELECT dept, count(*) FROM e GROUP BY dept
dept:int4|count:int8
NULL|1
5|1
2|3
1|2

> SELECT dept, active, count(*) FROM e GROUP BY dept, active
dept:int4|active:bool|count:int8
NULL|NULL|1
1|t|2
2|f|1
2|t|2
5|NULL|1

> SELECT dept AS d, sum(pay) FROM e GROUP BY d
d:int4|sum:numeric
NULL|NULL
5|300.50
2|1500.75
1|800.50

> SELECT dept, sum(pay) FROM e GROUP BY 1
dept:int4|sum:numeric
NULL|NULL
5|300.50
2|1500.75
1|800.50

> SELECT dept % 2, count(*) FROM e GROUP BY dept % 2
?column?:int4|count:int8
NULL|1
0|3
1|3

> SELECT dept + 1 AS next, max(name) FROM e GROUP BY dept + 1
next:int4|max:text
NULL|Dee
3|Eve
6|Fay
2|Bob

> SELECT count(*) FROM e GROUP BY dept
count:int8
1
1
3
2

> SELECT dept FROM e GROUP BY dept
dept:int4
NULL
5
2
1

> SELECT extract(year FROM hired) AS y, count(*), avg(pay) FROM e GROUP BY y
y:numeric|count:int8|avg:numeric
NULL|1|350.5000000000000000
2022|2|500.3750000000000000
2019|1|NULL
2021|1|300.5000000000000000
2020|2|475.0000000000000000

> SELECT left(name, 1), count(*) FROM e GROUP BY left(name, 1)
left:text|count:int8
B|1
C|1
D|1
E|1
F|1
A|2

> SELECT upper(kind), sum(amount) FROM sale GROUP BY upper(kind)
upper:text|sum:int8
NULL|10
B|120
C|100
A|190

> SELECT kind, day, count(*) FROM sale GROUP BY kind, day
kind:text|day:date|count:int8
NULL|2024-01-05|1
b|2024-01-02|2
a|2024-01-01|1
c|2024-01-03|1
a|NULL|1
a|2024-01-04|2
b|2024-01-03|1

> SELECT kind, count(*) FROM sale WHERE amount > 20 GROUP BY kind
kind:text|count:int8
a|4
b|2
c|1

> SELECT kind, count(*) FROM sale GROUP BY kind HAVING count(*) > 1
kind:text|count:int8
a|4
b|3

> SELECT kind, sum(amount) FROM sale GROUP BY kind HAVING sum(amount) > 50 AND kind <> 'c'
kind:text|sum:int8
a|190
b|120

> SELECT kind FROM sale GROUP BY kind HAVING max(amount) > 60
kind:text
a
b
c

> SELECT kind FROM sale GROUP BY kind HAVING count(amount) < count(*)
kind:text
b

> SELECT kind FROM sale GROUP BY kind HAVING bool_and(amount > 10)
kind:text
a
b
c

> SELECT kind, count(*) FROM sale GROUP BY kind HAVING kind IS NULL
kind:text|count:int8
NULL|1

> SELECT count(*) FROM e HAVING count(*) > 3
count:int8
7

> SELECT count(*) FROM e HAVING count(*) > 300
count:int8

> SELECT 1 FROM e HAVING count(*) > 0
?column?:int4
1

> SELECT count(*) FROM nothing
count:int8
0

> SELECT count(*), sum(a), max(b), avg(a) FROM nothing
count:int8|sum:int8|max:text|avg:numeric
0|NULL|NULL|NULL

> SELECT a, count(*) FROM nothing GROUP BY a
a:int4|count:int8

> SELECT count(*) FROM nothing GROUP BY ()
count:int8
0

> SELECT count(*) FROM e GROUP BY ()
count:int8
7

> SELECT dept, count(*) FROM e GROUP BY dept ORDER BY count(*) DESC, dept
dept:int4|count:int8
2|3
1|2
5|1
NULL|1

> SELECT dept, count(*) AS n FROM e GROUP BY dept ORDER BY n, dept NULLS FIRST
dept:int4|n:int8
NULL|1
5|1
1|2
2|3

> SELECT dept, sum(pay) FROM e GROUP BY dept ORDER BY sum(pay) DESC NULLS LAST LIMIT 2
dept:int4|sum:numeric
2|1500.75
1|800.50

> SELECT dept FROM e GROUP BY dept ORDER BY max(pay) NULLS FIRST, dept
dept:int4
NULL
5
1
2

> SELECT dept, sum(pay) / count(*) AS mean FROM e GROUP BY dept
dept:int4|mean:numeric
NULL|NULL
5|300.5000000000000000
2|500.2500000000000000
1|400.2500000000000000

> SELECT dept, sum(pay * 2) - 1, count(*) * 10 FROM e GROUP BY dept
dept:int4|?column?:numeric|?column?:int8
NULL|NULL|10
5|600.00|10
2|3000.50|30
1|1600.00|20

> SELECT dept, max(pay) - min(pay) FROM e GROUP BY dept
dept:int4|?column?:numeric
NULL|NULL
5|0.00
2|349.75
1|199.50

> SELECT dept, CASE WHEN count(*) > 1 THEN 'many' ELSE 'one' END FROM e GROUP BY dept
dept:int4|case:text
NULL|one
5|one
2|many
1|many

> SELECT CASE WHEN pay > 400 THEN 'high' ELSE 'low' END AS level, count(*) FROM e GROUP BY level
level:text|count:int8
high|3
low|4

> SELECT coalesce(dept, 0) AS d, count(*) FROM e GROUP BY coalesce(dept, 0)
d:int4|count:int8
5|1
0|1
2|3
1|2

> SELECT active IS TRUE, count(*) FROM e GROUP BY active IS TRUE
?column?:bool|count:int8
f|3
t|4

> SELECT dept, dept * 2, count(*) FROM e GROUP BY dept
dept:int4|?column?:int4|count:int8
NULL|NULL|1
5|10|1
2|4|3
1|2|2

> SELECT dept, count(DISTINCT pay) FROM e GROUP BY dept
dept:int4|count:int8
1|2
2|3
5|1
NULL|0

> SELECT dept, count(DISTINCT pay), sum(DISTINCT pay), count(*) FROM e GROUP BY dept
dept:int4|count:int8|sum:numeric|count:int8
1|2|800.50|2
2|3|1500.75|3
5|1|300.50|1
NULL|0|NULL|1

> SELECT emp, min(day), max(day), max(day) - min(day) FROM sale GROUP BY emp
emp:int4|min:date|max:date|?column?:int4
NULL|2024-01-05|2024-01-05|0
3|2024-01-03|2024-01-03|0
5|2024-01-03|2024-01-04|1
2|2024-01-02|2024-01-02|0
1|2024-01-01|2024-01-02|1

> SELECT dept, count(*) FILTER (WHERE active), count(*) FILTER (WHERE NOT active) FROM e GROUP BY dept
dept:int4|count:int8|count:int8
NULL|0|0
5|0|0
2|2|1
1|2|0

> SELECT DISTINCT count(*) FROM e GROUP BY dept
count:int8
3
2
1

> SELECT DISTINCT dept, count(*) FROM e GROUP BY dept, active
dept:int4|count:int8
2|2
NULL|1
5|1
1|2
2|1

> SELECT sum(n) FROM (SELECT dept, count(*) AS n FROM e GROUP BY dept) x
sum:numeric
7

> SELECT n, count(*) FROM (SELECT dept, count(*) AS n FROM e GROUP BY dept) x GROUP BY n
n:int8|count:int8
3|1
2|1
1|2

> SELECT city, count(*) FROM dept JOIN e ON e.dept = dept.id GROUP BY city
city:text|count:int8
Rome|3
Oslo|2

> SELECT d.name, e.active, sum(e.pay) FROM dept d LEFT JOIN e ON e.dept = d.id GROUP BY d.name, e.active
name:text|active:bool|sum:numeric
IT|f|350.50
IT|t|1150.25
Ops|NULL|NULL
Sales|t|800.50
HR|NULL|NULL

> SELECT dept, active, count(*) FROM e GROUP BY ROLLUP (dept, active)
dept:int4|active:bool|count:int8
NULL|NULL|7
NULL|NULL|1
1|t|2
2|f|1
2|t|2
5|NULL|1
NULL|NULL|1
5|NULL|1
2|NULL|3
1|NULL|2

> SELECT dept, active, sum(pay) FROM e GROUP BY ROLLUP (dept, active)
dept:int4|active:bool|sum:numeric
NULL|NULL|2601.75
NULL|NULL|NULL
1|t|800.50
2|f|350.50
2|t|1150.25
5|NULL|300.50
NULL|NULL|NULL
5|NULL|300.50
2|NULL|1500.75
1|NULL|800.50

> SELECT dept, count(*) FROM e GROUP BY ROLLUP (dept)
dept:int4|count:int8
NULL|7
NULL|1
5|1
2|3
1|2

> SELECT dept, active, count(*) FROM e GROUP BY CUBE (dept, active)
dept:int4|active:bool|count:int8
NULL|NULL|7
NULL|NULL|1
1|t|2
2|f|1
2|t|2
5|NULL|1
NULL|NULL|1
5|NULL|1
2|NULL|3
1|NULL|2
NULL|f|1
NULL|NULL|2
NULL|t|4

> SELECT kind, day, sum(amount) FROM sale GROUP BY CUBE (kind, day)
kind:text|day:date|sum:int8
NULL|NULL|420
NULL|2024-01-05|10
b|2024-01-02|120
a|2024-01-01|100
c|2024-01-03|100
a|NULL|30
a|2024-01-04|60
b|2024-01-03|NULL
NULL|NULL|10
a|NULL|190
b|NULL|120
c|NULL|100
NULL|NULL|30
NULL|2024-01-04|60
NULL|2024-01-05|10
NULL|2024-01-02|120
NULL|2024-01-01|100
NULL|2024-01-03|100

> SELECT dept, active, count(*) FROM e GROUP BY GROUPING SETS ((dept), (active))
dept:int4|active:bool|count:int8
NULL|NULL|1
5|NULL|1
2|NULL|3
1|NULL|2
NULL|f|1
NULL|NULL|2
NULL|t|4

> SELECT dept, active, count(*) FROM e GROUP BY GROUPING SETS ((dept, active), (dept), ())
dept:int4|active:bool|count:int8
NULL|NULL|7
NULL|NULL|1
1|t|2
2|f|1
2|t|2
5|NULL|1
NULL|NULL|1
5|NULL|1
2|NULL|3
1|NULL|2

> SELECT dept, count(*) FROM e GROUP BY GROUPING SETS ((dept), (dept))
dept:int4|count:int8
NULL|1
5|1
2|3
1|2
NULL|1
5|1
2|3
1|2

> SELECT dept, active, name, count(*) FROM e GROUP BY dept, ROLLUP (active, name)
dept:int4|active:bool|name:text|count:int8
1|t|Bob|1
5|NULL|Fay|1
1|t|Ann|1
2|f|Cid|1
NULL|NULL|Dee|1
2|t|Eve|1
2|t|Ann|1
NULL|NULL|NULL|1
1|t|NULL|2
2|f|NULL|1
2|t|NULL|2
5|NULL|NULL|1
NULL|NULL|NULL|1
5|NULL|NULL|1
2|NULL|NULL|3
1|NULL|NULL|2

> SELECT dept, active, count(*), grouping(dept), grouping(active) FROM e GROUP BY ROLLUP (dept, active)
dept:int4|active:bool|count:int8|grouping:int4|grouping:int4
NULL|NULL|7|1|1
NULL|NULL|1|0|0
1|t|2|0|0
2|f|1|0|0
2|t|2|0|0
5|NULL|1|0|0
NULL|NULL|1|0|1
5|NULL|1|0|1
2|NULL|3|0|1
1|NULL|2|0|1

> SELECT dept, active, count(*), grouping(dept, active) FROM e GROUP BY CUBE (dept, active)
dept:int4|active:bool|count:int8|grouping:int4
NULL|NULL|7|3
NULL|NULL|1|0
1|t|2|0
2|f|1|0
2|t|2|0
5|NULL|1|0
NULL|NULL|1|1
5|NULL|1|1
2|NULL|3|1
1|NULL|2|1
NULL|f|1|2
NULL|NULL|2|2
NULL|t|4|2

> SELECT dept, count(*) FROM e GROUP BY ROLLUP (dept) HAVING grouping(dept) = 1
dept:int4|count:int8
NULL|7

> SELECT dept, count(*) FROM e GROUP BY ROLLUP (dept) HAVING count(*) > 1
dept:int4|count:int8
NULL|7
2|3
1|2

> SELECT dept, count(*) FROM e GROUP BY ROLLUP (dept) ORDER BY grouping(dept), dept
dept:int4|count:int8
1|2
2|3
5|1
NULL|1
NULL|7

> SELECT CASE WHEN grouping(dept) = 1 THEN 'all' ELSE dept::text END AS d, sum(pay) FROM e GROUP BY ROLLUP (dept)
d:text|sum:numeric
all|2601.75
NULL|NULL
5|300.50
2|1500.75
1|800.50

> SELECT extract(month FROM day) AS m, kind, sum(amount) FROM sale GROUP BY ROLLUP (extract(month FROM day), kind)
m:numeric|kind:text|sum:int8
NULL|NULL|420
1|b|120
1|c|100
NULL|a|30
1|NULL|10
1|a|160
NULL|NULL|30
1|NULL|390

> SELECT kind, count(*) FROM sale GROUP BY GROUPING SETS (kind, ())
kind:text|count:int8
NULL|9
NULL|1
a|4
b|3
c|1

> SELECT a, count(*) FROM nothing GROUP BY ROLLUP (a)
a:int4|count:int8
NULL|0

> SELECT a, b, count(*) FROM nothing GROUP BY CUBE (a, b)
a:int4|b:text|count:int8
NULL|NULL|0

> SELECT a, count(*) FROM nothing GROUP BY GROUPING SETS ((a))
a:int4|count:int8

> SELECT dept, active, count(*) FROM e GROUP BY ROLLUP ((dept, active))
dept:int4|active:bool|count:int8
NULL|NULL|7
NULL|NULL|1
1|t|2
2|f|1
2|t|2
5|NULL|1

> SELECT dept, active, sum(count(*)) OVER () FROM e GROUP BY dept, active
dept:int4|active:bool|sum:numeric
NULL|NULL|7
1|t|7
2|f|7
2|t|7
5|NULL|7

> SELECT dept, sum(pay), sum(sum(pay)) OVER (ORDER BY dept) FROM e GROUP BY dept
dept:int4|sum:numeric|sum:numeric
1|800.50|800.50
2|1500.75|2301.25
5|300.50|2601.75
NULL|NULL|2601.75

> SELECT dept, rank() OVER (ORDER BY count(*) DESC) FROM e GROUP BY dept
dept:int4|rank:int8
2|1
1|2
NULL|3
5|3

> SELECT emp, kind, sum(amount) FROM sale GROUP BY emp, kind HAVING sum(amount) >= ALL (SELECT sum(amount) FROM sale GROUP BY emp, kind HAVING sum(amount) IS NOT NULL)
emp:int4|kind:text|sum:int8
1|a|100
5|c|100

> SELECT e.dept, e.name, count(s.id) FROM e LEFT JOIN sale s ON s.emp = e.id GROUP BY e.dept, e.name ORDER BY 3 DESC, 1, 2
dept:int4|name:text|count:int8
2|Eve|4
1|Ann|2
1|Bob|1
2|Cid|1
2|Ann|0
5|Fay|0
NULL|Dee|0

> SELECT kind, array_agg(id ORDER BY id), string_agg(id::text, '+' ORDER BY id DESC) FROM sale GROUP BY kind
kind:text|array_agg:int4[]|string_agg:text
a|{1,7,9,9}|9+9+7+1
b|{2,3,5}|5+3+2
c|{6}|6
NULL|{8}|8

> SELECT day, count(*), sum(count(*)) OVER (ORDER BY day) FROM sale GROUP BY day
day:date|count:int8|sum:numeric
2024-01-01|1|1
2024-01-02|2|3
2024-01-03|2|5
2024-01-04|2|7
2024-01-05|1|8
NULL|1|9

> SELECT (dept IS NULL)::int AS missing, count(*) FROM e GROUP BY 1
missing:int4|count:int8
0|6
1|1

> SELECT pay, count(*) FROM e GROUP BY pay
pay:numeric|count:int8
NULL|1
500.00|1
300.50|2
350.50|1
450.00|1
700.25|1

> SELECT pay > 400, count(*) FROM e GROUP BY pay > 400
?column?:bool|count:int8
NULL|1
f|3
t|3

> SELECT hired, count(*) FROM e GROUP BY hired
hired:date|count:int8
NULL|1
2020-01-01|1
2020-06-15|1
2019-12-31|1
2022-02-02|2
2021-05-05|1

> SELECT 'all' AS label, count(*) FROM e GROUP BY label
label:text|count:int8
all|7

> SELECT dept, 'x', count(*) FROM e GROUP BY dept, 2
dept:int4|?column?:text|count:int8
NULL|x|1
5|x|1
2|x|3
1|x|2

# Aggregates compared with subqueries
> SELECT dept FROM e GROUP BY dept HAVING count(*) IN (SELECT id FROM dept)
dept:int4
NULL
5
2
1

> SELECT dept, count(*) = ANY (SELECT id FROM dept), max(pay) > ALL (SELECT pay FROM e WHERE dept = 1) FROM e GROUP BY dept
dept:int4|?column?:bool|?column?:bool
NULL|t|NULL
5|t|f
2|t|t
1|t|f

> SELECT kind, sum(amount) NOT IN (SELECT budget FROM dept) FROM sale GROUP BY kind
kind:text|?column?:bool
NULL|NULL
a|NULL
b|NULL
c|NULL

> SELECT id, row_number() OVER (ORDER BY id) IN (SELECT id FROM dept) FROM e
id:int4|?column?:bool
1|t
2|t
3|t
4|t
5|f
6|f
7|f
