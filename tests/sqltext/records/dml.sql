# INSERT, UPDATE, DELETE, RETURNING, defaults
> CREATE TABLE p (id int NOT NULL, name text DEFAULT 'none', price numeric(8,2) DEFAULT 1.5, at date, tags text[])
CREATE TABLE

> CREATE TABLE q (id int, n bigint)
CREATE TABLE

> INSERT INTO p VALUES (1, 'one', 10, '2024-01-01', '{a,b}')
INSERT 0 1

> INSERT INTO p (id) VALUES (2)
INSERT 0 1

> INSERT INTO p (id, name) VALUES (3, 'three'), (4, DEFAULT), (5, NULL)
INSERT 0 3

> INSERT INTO p VALUES (6, DEFAULT, DEFAULT, DEFAULT, DEFAULT)
INSERT 0 1

> INSERT INTO p (price, id) VALUES (2.345, 7)
INSERT 0 1

> SELECT * FROM p ORDER BY id
id:int4|name:text|price:numeric|at:date|tags:text[]
1|one|10.00|2024-01-01|{a,b}
2|none|1.50|NULL|NULL
3|three|1.50|NULL|NULL
4|none|1.50|NULL|NULL
5|NULL|1.50|NULL|NULL
6|none|1.50|NULL|NULL
7|none|2.35|NULL|NULL

> INSERT INTO p DEFAULT VALUES
! 23502 null value in column "id" of relation "p" violates not-null constraint

> INSERT INTO q DEFAULT VALUES
INSERT 0 1

> INSERT INTO p (name) VALUES ('x')
! 23502 null value in column "id" of relation "p" violates not-null constraint

> INSERT INTO p VALUES (NULL)
! 23502 null value in column "id" of relation "p" violates not-null constraint

> INSERT INTO q SELECT id, id * 10 FROM p WHERE id < 4
INSERT 0 3

> SELECT id, n FROM q ORDER BY id
id:int4|n:int8
1|10
2|20
3|30
NULL|NULL

> INSERT INTO q (n) SELECT count(*) FROM p
INSERT 0 1

> INSERT INTO q VALUES (10, 1), (10, 1)
INSERT 0 2

> SELECT id, n, count(*) FROM q GROUP BY id, n ORDER BY id, n
id:int4|n:int8|count:int8
1|10|1
2|20|1
3|30|1
10|1|2
NULL|7|1
NULL|NULL|1

> INSERT INTO q SELECT * FROM generate_series(20, 22) AS g, (VALUES (1)) AS v
INSERT 0 3

> SELECT * FROM q WHERE id >= 20 ORDER BY id
id:int4|n:int8
20|1
21|1
22|1

> INSERT INTO q VALUES (30, 1) RETURNING *
id:int4|n:int8
30|1

> INSERT INTO q VALUES (31, 1), (32, 2) RETURNING id + n AS total, id
total:int8|id:int4
32|31
34|32

> INSERT INTO q (id) VALUES (33) RETURNING n IS NULL
?column?:bool
t

> INSERT INTO q WITH x AS (SELECT 40 AS i) SELECT i, i FROM x RETURNING id
id:int4
40

> INSERT INTO q VALUES ('41', '2') RETURNING id
id:int4
41

> INSERT INTO q VALUES (1.6, 2.4) RETURNING id, n
id:int4|n:int8
2|2

> INSERT INTO q TABLE q
INSERT 0 17

> SELECT count(*) FROM q
count:int8
34

> DELETE FROM q WHERE id >= 30
DELETE 12

> SELECT count(*) FROM q
count:int8
22

> UPDATE q SET n = n + 1 WHERE id = 10
UPDATE 4

> SELECT * FROM q WHERE id = 10
id:int4|n:int8
10|2
10|2
10|2
10|2

> UPDATE q SET n = 0 WHERE id IS NULL
UPDATE 4

> UPDATE q SET n = n
UPDATE 22

> UPDATE q SET id = id + 100, n = id WHERE id < 4 RETURNING id, n
id:int4|n:int8
101|1
102|2
103|3
102|2
101|1
102|2
103|3
102|2

> UPDATE q SET (id, n) = (id - 100, 7) WHERE id = 101 RETURNING *
id:int4|n:int8
1|7
1|7

> UPDATE q SET n = DEFAULT WHERE id = 1 RETURNING n
n:int8
NULL
NULL

> UPDATE q SET n = (SELECT max(price) FROM p) WHERE id = 1 RETURNING n
n:int8
10
10

% everview-only
> UPDATE q SET n = p.id FROM p WHERE p.id = q.id RETURNING q.id, q.n, p.name
! 42P01 missing FROM-clause entry for table "p"

> UPDATE q AS x SET n = x.n + 1 WHERE x.id = 102 RETURNING x.n
n:int8
3
3
3
3

> UPDATE q SET n = 5 WHERE false
UPDATE 0

> UPDATE q SET n = 5 WHERE NULL
UPDATE 0

> UPDATE p SET price = price * 1.1, name = upper(name) WHERE id IN (SELECT id FROM q) RETURNING id, name, price
id:int4|name:text|price:numeric
1|ONE|11.00

> UPDATE p SET at = date '2024-02-01' + id WHERE at IS NULL
UPDATE 6

> UPDATE p SET tags = array_append(tags, 'new') WHERE id <= 2 RETURNING id, tags
id:int4|tags:text[]
1|{a,b,new}
2|{new}

> UPDATE p SET id = NULL WHERE id = 1
! 23502 null value in column "id" of relation "p" violates not-null constraint

> UPDATE p SET price = 1 / (id - 3)
! 22012 division by zero

> SELECT id, name, price, at, tags FROM p ORDER BY id
id:int4|name:text|price:numeric|at:date|tags:text[]
1|ONE|11.00|2024-01-01|{a,b,new}
2|none|1.50|2024-02-03|{new}
3|three|1.50|2024-02-04|NULL
4|none|1.50|2024-02-05|NULL
5|NULL|1.50|2024-02-06|NULL
6|none|1.50|2024-02-07|NULL
7|none|2.35|2024-02-08|NULL

> DELETE FROM p WHERE id = 7 RETURNING *
id:int4|name:text|price:numeric|at:date|tags:text[]
7|none|2.35|2024-02-08|NULL

> DELETE FROM p WHERE id = 700 RETURNING *
id:int4|name:text|price:numeric|at:date|tags:text[]

> DELETE FROM p USING q WHERE p.id = q.id RETURNING p.id
id:int4
1

> DELETE FROM p AS x WHERE x.id = 6
DELETE 1

> DELETE FROM p WHERE id IN (SELECT max(id) FROM p)
DELETE 1

> DELETE FROM p WHERE EXISTS (SELECT 1 FROM q WHERE q.id = p.id + 100)
DELETE 2

> SELECT id FROM p ORDER BY id
id:int4
4

> DELETE FROM q WHERE n IS NULL
DELETE 0

> SELECT id, n FROM q ORDER BY id, n
id:int4|n:int8
1|10
1|10
10|2
10|2
10|2
10|2
20|1
20|1
21|1
21|1
22|1
22|1
102|3
102|3
102|3
102|3
103|3
103|3
NULL|0
NULL|0
NULL|0
NULL|0

> TRUNCATE q
TRUNCATE TABLE

> SELECT count(*) FROM q
count:int8
0

> TRUNCATE TABLE p, q
TRUNCATE TABLE

> SELECT count(*) FROM p
count:int8
0

> DELETE FROM p
DELETE 0

> INSERT INTO q SELECT 1, 2 WHERE false
INSERT 0 0

> INSERT INTO q VALUES (1, 1); INSERT INTO q VALUES (2, 2)
INSERT 0 1

> INSERT INTO q VALUES (1, 1); SELECT sum(n) FROM q
sum:numeric
4

> SELECT sum(n) FROM q
sum:numeric
4

> INSERT INTO q VALUES (3, 3); SELECT 1 / 0
! 22012 division by zero

> SELECT count(*) FROM q
count:int8
3

> CREATE TABLE big (n int, s text)
CREATE TABLE

> INSERT INTO big SELECT g, 's' || g FROM generate_series(1, 500) AS g
INSERT 0 500

> SELECT count(*), sum(n), min(s), max(n) FROM big
count:int8|sum:int8|min:text|max:int4
500|125250|s1|500

> UPDATE big SET s = s || '!' WHERE n % 10 = 0
UPDATE 50

> SELECT count(*) FROM big WHERE s LIKE '%!'
count:int8
50

> DELETE FROM big WHERE n > 100
DELETE 400

> SELECT count(*), sum(n) FROM big
count:int8|sum:int8
100|5050

> SELECT n % 7 AS m, count(*) FROM big GROUP BY m ORDER BY m
m:int4|count:int8
0|14
1|15
2|15
3|14
4|14
5|14
6|14

> INSERT INTO big SELECT n + 1000, s FROM big WHERE n <= 3 RETURNING n
n:int4
1001
1002
1003

> CREATE TABLE kinds (i smallint, b bigint, f real, g double precision, c char(3), v varchar(5), y bytea, u uuid, t time, z timestamptz, l interval, k boolean)
CREATE TABLE

> INSERT INTO kinds VALUES (1, 2, 3.5, 4.25, 'a', 'abc', '\x01', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '10:00', '2024-01-01 00:00:00+02', '1 day', true)
INSERT 0 1

> INSERT INTO kinds (c, v) VALUES ('abcd', 'x')
! 22001 value too long for type character(3)

> INSERT INTO kinds (c, v) VALUES ('ab', 'toolong')
! 22001 value too long for type character varying(5)

> INSERT INTO kinds (c, v) VALUES ('ab  ', 'abcde  ')
INSERT 0 1

> INSERT INTO kinds (i) VALUES (40000)
! 22003 smallint out of range

> INSERT INTO kinds (i) VALUES (32767.4)
INSERT 0 1

> SELECT * FROM kinds ORDER BY b NULLS LAST, i NULLS LAST
i:int2|b:int8|f:float4|g:float8|c:bpchar|v:varchar|y:bytea|u:uuid|t:time|z:timestamptz|l:interval|k:bool
1|2|3.5|4.25|a \s|abc|\\x01|a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11|10:00:00|2023-12-31 22:00:00+00|1 day|t
32767|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL
NULL|NULL|NULL|NULL|ab\s|abcde|NULL|NULL|NULL|NULL|NULL|NULL

> SELECT c || '|', v || '|', length(v) FROM kinds WHERE v IS NOT NULL ORDER BY v
?column?:text|?column?:text|length:int4
a\||abc\||3
ab\||abcde\||5

> CREATE TABLE stock (item int, n int, price numeric(6,2))
CREATE TABLE

> CREATE TABLE news (item int, more int, price numeric(6,2))
CREATE TABLE

> CREATE TABLE factors (item int, f int)
CREATE TABLE

> INSERT INTO stock VALUES (1, 10, 1.5), (2, 20, 2.5), (2, 20, 2.5), (3, 30, NULL), (NULL, 40, 4.5)
INSERT 0 5

> INSERT INTO news VALUES (1, 1, 1.25), (2, 2, 2.25), (2, 2, 2.25), (5, 5, 5), (NULL, 4, 4)
INSERT 0 5

> INSERT INTO factors VALUES (1, 100), (2, 200), (3, 300)
INSERT 0 3

> UPDATE stock SET n = n + more, price = news.price FROM news WHERE news.item = stock.item RETURNING stock.item, n, stock.price
item:int4|n:int4|price:numeric
1|11|1.25
2|22|2.25
2|22|2.25

> UPDATE stock AS s SET n = s.n + more * f FROM news JOIN factors ON factors.item = news.item, (SELECT 2 AS two) AS x WHERE s.item = news.item AND f / 100 < two
UPDATE 1

> UPDATE stock SET (n, price) = (f, 0) FROM factors WHERE stock.item = factors.item AND stock.item = (SELECT max(item) FROM stock)
UPDATE 1

> UPDATE stock SET price = 7 FROM news WHERE stock.item IS NOT DISTINCT FROM news.item AND more = 4
UPDATE 1

> SELECT * FROM stock ORDER BY item
item:int4|n:int4|price:numeric
1|111|1.25
2|22|2.25
2|22|2.25
3|300|0.00
NULL|40|7.00

> UPDATE stock SET n = 0 FROM news WHERE item = 1
! 42702 column reference "item" is ambiguous

> UPDATE stock SET n = 0 FROM nope WHERE true
! 42P01 relation "nope" does not exist

> UPDATE stock SET n = 0 FROM stock WHERE true
! 42712 table name "stock" specified more than once

> UPDATE stock SET n = other.n FROM stock AS other WHERE other.item = stock.item - 1
UPDATE 3

> DELETE FROM stock USING news WHERE item = 1
! 42702 column reference "item" is ambiguous

> DELETE FROM stock USING news JOIN factors ON factors.item = news.item, (VALUES (2), (3)) AS v (w) WHERE stock.item = news.item AND w = factors.item RETURNING stock.item
item:int4
2
2

> SELECT * FROM stock ORDER BY item
item:int4|n:int4|price:numeric
1|111|1.25
3|22|0.00
NULL|40|7.00
