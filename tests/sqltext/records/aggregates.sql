# Aggregates: each one, DISTINCT, FILTER, ORDER BY inside
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

> SELECT count(*) FROM e
count:int8
7

> SELECT count(pay), count(dept), count(active) FROM e
count:int8|count:int8|count:int8
6|6|5

> SELECT count(DISTINCT dept), count(DISTINCT pay), count(DISTINCT active) FROM e
count:int8|count:int8|count:int8
3|5|2

% everview-only
> SELECT count(DISTINCT (dept, active)) FROM e
! 0A000 tuple ((dept, active)) is not supported

> SELECT count(1), count(NULL) FROM e
count:int8|count:int8
7|0

> SELECT sum(id), sum(dept) FROM e
sum:int8|sum:int8
28|13

> SELECT sum(pay), sum(pay * 2), sum(-pay) FROM e
sum:numeric|sum:numeric|sum:numeric
2601.75|5203.50|-2601.75

> SELECT sum(amount), sum(DISTINCT amount) FROM sale
sum:int8|sum:int8
420|260

> SELECT sum(budget) FROM dept
sum:numeric
6300

> SELECT sum(id::smallint), sum(id::double precision), sum(id::real) FROM e
sum:int8|sum:float8|sum:float4
28|28|28

> SELECT sum(amount) FROM sale WHERE false
sum:int8
NULL

> SELECT avg(id), avg(pay) FROM e
avg:numeric|avg:numeric
4.0000000000000000|433.6250000000000000

> SELECT avg(amount), avg(DISTINCT amount) FROM sale
avg:numeric|avg:numeric
52.5000000000000000|52.0000000000000000

> SELECT avg(budget) FROM dept
avg:numeric
2100.0000000000000000

> SELECT avg(id::double precision), avg(id::numeric(8,3)) FROM e
avg:float8|avg:numeric
4|4.0000000000000000

> SELECT min(id), max(id), min(name), max(name) FROM e
min:int4|max:int4|min:text|max:text
1|7|Ann|Fay

> SELECT min(pay), max(pay), min(hired), max(hired) FROM e
min:numeric|max:numeric|min:date|max:date
300.50|700.25|2019-12-31|2022-02-02

> SELECT min(day), max(kind) FROM sale
min:date|max:text
2024-01-01|c

> SELECT min(amount) FROM sale WHERE false
min:int4
NULL

> SELECT bool_and(active), bool_or(active), every(active) FROM e
bool_and:bool|bool_or:bool|every:bool
f|t|f

> SELECT bool_and(pay > 0), bool_or(pay > 700) FROM e
bool_and:bool|bool_or:bool
t|t

> SELECT bool_and(active) FROM e WHERE active IS NULL
bool_and:bool
NULL

> SELECT string_agg(name, ',' ORDER BY id) FROM e
string_agg:text
Ann,Bob,Cid,Dee,Eve,Fay,Ann

> SELECT string_agg(name, ',' ORDER BY name DESC, id) FROM e
string_agg:text
Fay,Eve,Dee,Cid,Bob,Ann,Ann

> SELECT string_agg(DISTINCT name, ',' ORDER BY name) FROM e
string_agg:text
Ann,Bob,Cid,Dee,Eve,Fay

> SELECT string_agg(kind, '' ORDER BY id) FROM sale
string_agg:text
abbbcaaa

> SELECT string_agg(name, NULL ORDER BY id) FROM e
string_agg:text
AnnBobCidDeeEveFayAnn

> SELECT string_agg(name, id::text ORDER BY id) FROM e
string_agg:text
Ann2Bob3Cid4Dee5Eve6Fay7Ann

> SELECT string_agg(name, ',') FROM e WHERE false
string_agg:text
NULL

> SELECT array_agg(id ORDER BY pay, id) FROM e
array_agg:int4[]
{2,6,3,7,1,5,4}

> SELECT array_agg(pay ORDER BY id) FROM e WHERE id < 3
array_agg:numeric[]
{500.00,300.50}

> SELECT array_agg(dept ORDER BY dept NULLS FIRST, id) FROM e
array_agg:int4[]
{NULL,1,1,2,2,2,5}

> SELECT array_agg(DISTINCT dept ORDER BY dept) FROM e
array_agg:int4[]
{1,2,5,NULL}

> SELECT array_agg(DISTINCT kind ORDER BY kind DESC) FROM sale
array_agg:text[]
{NULL,c,b,a}

> SELECT array_agg(id) FROM e WHERE false
array_agg:int4[]
NULL

> SELECT jsonb_agg(id ORDER BY id) FROM e
jsonb_agg:jsonb
[1, 2, 3, 4, 5, 6, 7]

> SELECT jsonb_agg(jsonb_build_object('n', name) ORDER BY id) FROM e WHERE dept = 1
jsonb_agg:jsonb
[{"n": "Ann"}, {"n": "Bob"}]

> SELECT jsonb_object_agg(name, id) FROM e WHERE id < 5
jsonb_object_agg:jsonb
{"Ann": 1, "Bob": 2, "Cid": 3, "Dee": 4}

> SELECT round(stddev(id), 10), variance(id) FROM e
round:numeric|variance:numeric
2.1602468995|4.6666666666666667

> SELECT round(stddev_pop(id), 10), var_pop(id), round(stddev_samp(id), 10), var_samp(id) FROM e
round:numeric|var_pop:numeric|round:numeric|var_samp:numeric
2.0000000000|4.0000000000000000|2.1602468995|4.6666666666666667

> SELECT stddev(id::double precision), var_pop(id::double precision) FROM e
stddev:float8|var_pop:float8
2.160246899469287|4

> SELECT stddev(amount), var_samp(amount) FROM sale WHERE id = 1
stddev:numeric|var_samp:numeric
NULL|NULL

> SELECT var_pop(amount) FROM sale WHERE id = 1
var_pop:numeric
0

> SELECT round(stddev(pay), 6), round(variance(pay), 6) FROM e
round:numeric|round:numeric
153.699036|23623.393750

> SELECT count(*) FILTER (WHERE dept = 2) FROM e
count:int8
3

> SELECT sum(pay) FILTER (WHERE active), sum(pay) FILTER (WHERE NOT active) FROM e
sum:numeric|sum:numeric
1950.75|350.50

> SELECT count(*) FILTER (WHERE false), sum(id) FILTER (WHERE false) FROM e
count:int8|sum:int8
0|NULL

> SELECT count(DISTINCT dept) FILTER (WHERE pay > 300) FROM e
count:int8
3

> SELECT string_agg(name, ',' ORDER BY id) FILTER (WHERE pay > 400) FROM e
string_agg:text
Ann,Eve,Ann

> SELECT array_agg(id ORDER BY id DESC) FILTER (WHERE dept IS NOT NULL) FROM e
array_agg:int4[]
{7,6,5,3,2,1}

> SELECT max(pay) FILTER (WHERE dept = 1), min(pay) FILTER (WHERE dept = 2) FROM e
max:numeric|min:numeric
500.00|350.50

> SELECT avg(pay) FILTER (WHERE dept = 2), avg(pay) FROM e
avg:numeric|avg:numeric
500.2500000000000000|433.6250000000000000

> SELECT dept, max(pay) FILTER (WHERE active) FROM e GROUP BY dept
dept:int4|max:numeric
NULL|NULL
5|NULL
2|700.25
1|500.00

> SELECT dept, string_agg(name, '/' ORDER BY pay DESC NULLS LAST, id) FROM e GROUP BY dept
dept:int4|string_agg:text
1|Ann/Bob
2|Eve/Ann/Cid
5|Fay
NULL|Dee

> SELECT kind, array_agg(amount ORDER BY amount DESC NULLS LAST, id) FROM sale GROUP BY kind
kind:text|array_agg:int4[]
a|{100,30,30,30}
b|{70,50,NULL}
c|{100}
NULL|{10}

> SELECT kind, sum(amount), avg(amount), min(amount), max(amount), count(amount) FROM sale GROUP BY kind
kind:text|sum:int8|avg:numeric|min:int4|max:int4|count:int8
NULL|10|10.0000000000000000|10|10|1
a|190|47.5000000000000000|30|100|4
b|120|60.0000000000000000|50|70|2
c|100|100.0000000000000000|100|100|1

> SELECT kind, bool_or(amount > 60), bool_and(amount > 20) FROM sale GROUP BY kind
kind:text|bool_or:bool|bool_and:bool
NULL|f|f
a|t|t
b|t|t
c|t|t

> SELECT kind, count(DISTINCT emp), count(DISTINCT day) FROM sale GROUP BY kind
kind:text|count:int8|count:int8
a|2|2
b|3|2
c|1|1
NULL|0|1

> SELECT kind, round(stddev_pop(amount), 10), var_pop(amount) FROM sale GROUP BY kind
kind:text|round:numeric|var_pop:numeric
NULL|0.0000000000|0
a|30.3108891325|918.7500000000000000
b|10.0000000000|100.0000000000000000
c|0.0000000000|0

> SELECT emp, string_agg(DISTINCT kind, '' ORDER BY kind) FROM sale GROUP BY emp
emp:int4|string_agg:text
1|ab
2|b
3|b
5|ac
NULL|NULL

> SELECT emp, jsonb_agg(amount ORDER BY id) FROM sale GROUP BY emp
emp:int4|jsonb_agg:jsonb
1|[100, 50]
2|[70]
3|[null]
5|[100, 30, 30, 30]
NULL|[10]

> SELECT max(id) - min(id) + 1 - count(*) FROM sale
?column?:int8
0

> SELECT sum(CASE WHEN active THEN 1 ELSE 0 END) FROM e
sum:int8
4

> SELECT sum(CASE WHEN kind = 'a' THEN amount END), sum(CASE WHEN kind = 'b' THEN amount END) FROM sale
sum:int8|sum:int8
190|120

> SELECT count(CASE WHEN amount > 50 THEN 1 END) FROM sale
count:int8
3

> SELECT coalesce(sum(amount), 0), coalesce(max(kind), '?') FROM sale WHERE id > 100
coalesce:int8|coalesce:text
0|\?

> SELECT sum(amount) * 1.0 / count(*), sum(amount) / count(amount) FROM sale
?column?:numeric|?column?:int8
46.6666666666666667|52

> SELECT round(avg(pay), 2), round(avg(id), 3) FROM e
round:numeric|round:numeric
433.63|4.000

> SELECT sum(length(name)), max(length(name)), min(upper(name)) FROM e
sum:int8|max:int4|min:text
21|3|ANN

> SELECT max(greatest(id, dept)), min(least(id, dept)) FROM e
max:int4|min:int4
7|1

> SELECT sum(amount + 1), sum(amount) + count(amount) FROM sale
sum:int8|?column?:int8
428|428

> SELECT count(*), (SELECT count(*) FROM sale) FROM e
count:int8|count:int8
7|9

> SELECT sum(a) FROM (VALUES (1), (2), (NULL)) AS v(a)
sum:int8
3

> SELECT sum(a), avg(a) FROM (VALUES (1.5), (2.25)) AS v(a)
sum:numeric|avg:numeric
3.75|1.8750000000000000

> SELECT max(x), min(x) FROM (VALUES ('a'), ('b'), (NULL)) AS v(x)
max:text|min:text
b|a

> SELECT min(u), max(u) FROM (VALUES (interval '1 day'), (interval '25 hours')) AS v(u)
min:interval|max:interval
1 day|25:00:00

> SELECT sum(x), avg(x) FROM (VALUES (interval '1 day'), (interval '25 hours')) AS v(x)
sum:interval|avg:interval
1 day 25:00:00|24:30:00

> SELECT max(b), min(b) FROM (VALUES (ARRAY[1, 2]), (ARRAY[1, 3])) AS v(b)
max:int4[]|min:int4[]
{1,3}|{1,2}

> SELECT array_agg(x ORDER BY x) FROM (VALUES ('a'), (NULL), ('')) AS v(x)
array_agg:text[]
{"",a,NULL}

> SELECT mode() WITHIN GROUP (ORDER BY kind) FROM sale
mode:text
a

> SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY amount) FROM sale
percentile_disc:int4
30

> SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) FROM sale
percentile_cont:float8
40

> SELECT bit_and(x), bit_or(x), bit_xor(x), bit_or(x::smallint), bit_and(x::bigint) FROM (VALUES (6), (3), (NULL), (3)) AS v (x)
bit_and:int4|bit_or:int4|bit_xor:int4|bit_or:int2|bit_and:int8
2|7|6|7|2

> SELECT bit_and(x), any_value(x) FROM (SELECT 1 AS x WHERE false) AS v
bit_and:int4|any_value:int4
NULL|NULL

> SELECT any_value(x) FROM (VALUES (7), (7), (NULL)) AS v (x)
any_value:int4
7

> SELECT k, percentile_cont(0.25) WITHIN GROUP (ORDER BY x), percentile_cont(0.5) WITHIN GROUP (ORDER BY x DESC), percentile_disc(0.5) WITHIN GROUP (ORDER BY x), percentile_disc(0) WITHIN GROUP (ORDER BY x DESC), mode() WITHIN GROUP (ORDER BY x) FROM (VALUES ('a', 1), ('a', 4), ('a', 4), ('a', 2), ('a', NULL), ('b', 5), ('c', NULL)) AS v (k, x) GROUP BY k
k:text|percentile_cont:float8|percentile_cont:float8|percentile_disc:int4|percentile_disc:int4|mode:int4
a|1.75|3|2|4|4
b|5|5|5|5|5
c|NULL|NULL|NULL|NULL|NULL

> SELECT percentile_disc(0.4) WITHIN GROUP (ORDER BY s), mode() WITHIN GROUP (ORDER BY s DESC), mode() WITHIN GROUP (ORDER BY length(s)) FILTER (WHERE s <> 'b') FROM (VALUES ('b'), ('a'), ('ccc'), (NULL)) AS v (s)
percentile_disc:text|mode:text|mode:int4
b|ccc|1

> SELECT percentile_cont(1) WITHIN GROUP (ORDER BY x) AS top, count(*) FROM (VALUES (1.5), (2.5)) AS v (x)
top:float8|count:int8
2.5|2

> SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FROM (SELECT 1 AS x WHERE false) AS v
percentile_cont:float8
NULL

> SELECT percentile_cont(2) WITHIN GROUP (ORDER BY x) FROM (VALUES (1)) AS v (x)
! 22003 percentile value 2 is not between 0 and 1

> SELECT percentile_cont(0.5, x) FROM (VALUES (1)) AS v (x)
! 42809 WITHIN GROUP is required for ordered-set aggregate percentile_cont

> SELECT mode(x) FROM (VALUES (1)) AS v (x)
! 42809 WITHIN GROUP is required for ordered-set aggregate mode

% everview-only
> SELECT max(x) WITHIN GROUP (ORDER BY x) FROM (VALUES (1)) AS v (x)
! 42883 there is no ordered-set aggregate max

> SELECT dept, corr(pay, id), covar_pop(pay, id), covar_samp(pay, id), regr_count(pay, id), regr_avgx(pay, id), regr_avgy(pay, id) FROM e GROUP BY dept
dept:int4|corr:float8|covar_pop:float8|covar_samp:float8|regr_count:int8|regr_avgx:float8|regr_avgy:float8
NULL|NULL|NULL|NULL|0|NULL|NULL
5|NULL|0|NULL|1|6|300.5
2|0.27606928298943056|66.33333333333333|99.5|3|5|500.25
1|-1|-49.875|-99.75|2|1.5|400.25

> SELECT regr_slope(pay, id), regr_intercept(pay, id), regr_r2(pay, id), regr_sxx(pay, id), regr_syy(pay, id), regr_sxy(pay, id) FROM e
regr_slope:float8|regr_intercept:float8|regr_r2:float8|regr_sxx:float8|regr_syy:float8|regr_sxy:float8
7.133928571428571|405.0892857142857|0.012064331206796713|28|118116.96875|199.75

> SELECT regr_count(pay, id), regr_slope(pay, id) FROM e WHERE id < 0
regr_count:int8|regr_slope:float8
0|NULL
