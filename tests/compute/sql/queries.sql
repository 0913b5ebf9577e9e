-- Queries that mean the same here and in PostgreSQL; one each, separated by blank lines.
-- t(id int, k int, name text, price numeric(10,2), qty int, day date, flag bool), u(id int, k int, label text, amount bigint), empty(x int, y text)

SELECT 1 AS one, 'a' AS letter, NULL AS nothing, true AS yes, 1.50 AS price, 2147483648 AS big

SELECT * FROM t

SELECT t.* FROM t WHERE k = 1 ORDER BY id

SELECT id + 1, id * 2 - k, -id, id / 2, id % 3, price * qty, price + 1, qty::numeric / 4 FROM t WHERE id IS NOT NULL

SELECT name, upper(name), length(name), name || '!' FROM t WHERE name LIKE 'a%' OR name IS NULL

SELECT id FROM t WHERE k IN (1, 2, NULL)

SELECT id FROM t WHERE k NOT IN (1, 2)

SELECT id FROM t WHERE k NOT IN (1, NULL)

SELECT id FROM t WHERE k BETWEEN 1 AND 2 AND NOT flag

SELECT id, CASE WHEN k = 1 THEN 'one' WHEN k = 2 THEN 'two' ELSE 'many' END FROM t

SELECT id, CASE k WHEN 1 THEN 10 WHEN 2 THEN 2.5 END AS c FROM t

SELECT coalesce(name, 'none'), nullif(k, 1), greatest(k, qty, 2), least(k, qty) FROM t

SELECT DISTINCT k FROM t

SELECT DISTINCT k, flag FROM t

SELECT count(*), count(k), sum(qty), min(name), max(price), count(DISTINCT k) FROM t

SELECT count(*), sum(x), min(y) FROM empty

SELECT k, count(*), sum(price), max(day), bool_and(flag), bool_or(flag) FROM t GROUP BY k

SELECT k AS key, count(*) FROM t GROUP BY key HAVING count(*) > 1

SELECT k, qty % 2, count(*) FROM t GROUP BY 1, 2

SELECT k + 1, sum(qty) + max(k) FROM t GROUP BY k + 1

SELECT sum(qty) FILTER (WHERE flag), count(*) FILTER (WHERE k = 1) FROM t

SELECT k, sum(qty) FROM t GROUP BY k HAVING sum(qty) > (SELECT avg(qty) FROM t)

SELECT k, flag, count(*), grouping(k, flag) FROM t GROUP BY ROLLUP (k, flag)

SELECT k, flag, count(*), grouping(k), grouping(flag) FROM t GROUP BY CUBE (k, flag)

SELECT k, flag, sum(qty) FROM t GROUP BY GROUPING SETS ((k), (flag), ())

SELECT x, count(*) FROM empty GROUP BY ROLLUP (x)

SELECT t.id, u.label FROM t JOIN u ON t.k = u.k

SELECT t.id, u.label FROM t, u WHERE t.k = u.k AND u.amount > 10

SELECT t.id, u.id FROM t JOIN u ON t.k < u.k

SELECT t.id, u.id, u.label FROM t LEFT JOIN u ON t.k = u.k

SELECT t.id, u.id, u.label FROM t LEFT JOIN u ON t.k = u.k AND u.amount > 20

SELECT t.id, u.id FROM t RIGHT JOIN u ON t.k = u.k AND t.flag

SELECT t.id, u.id FROM t FULL JOIN u ON t.k = u.k AND t.id = u.id

SELECT t.id, u.id FROM t LEFT JOIN u ON t.k = u.k WHERE u.id IS NULL

SELECT t.id, u.id FROM t LEFT JOIN u ON t.qty > u.amount

SELECT id, label FROM t JOIN u USING (id)

SELECT * FROM t JOIN u USING (id, k)

SELECT * FROM t NATURAL JOIN u

SELECT id, k, t.name FROM t LEFT JOIN u USING (id, k)

SELECT id, t.id, u.id FROM t FULL JOIN u USING (id)

SELECT a.id, b.id FROM t a CROSS JOIN u b WHERE a.id < 3

SELECT a.id, b.id, c.id FROM t a JOIN t b ON a.k = b.k JOIN u c ON b.k = c.k AND a.id <> b.id

SELECT a.id, b.id, c.label FROM t a LEFT JOIN (t b JOIN u c ON b.k = c.k) ON a.id = b.id

SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k)

SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.amount > t.qty)

SELECT id FROM t WHERE k IN (SELECT k FROM u)

SELECT id FROM t WHERE k NOT IN (SELECT k FROM u)

SELECT id FROM t WHERE k NOT IN (SELECT k FROM u WHERE k IS NOT NULL)

SELECT id FROM t WHERE k NOT IN (SELECT x FROM empty)

SELECT id, k IN (SELECT k FROM u) AS found FROM t

SELECT id, k = ANY (SELECT k FROM u WHERE u.id > 2), k < ALL (SELECT k FROM u WHERE k IS NOT NULL) FROM t

SELECT id, qty > ALL (SELECT amount FROM u WHERE u.k = t.k) FROM t

SELECT id FROM t WHERE (k, id) IN (SELECT k, id FROM u)

SELECT id FROM t WHERE qty = (SELECT max(qty) FROM t)

SELECT id, (SELECT max(amount) FROM u WHERE u.k = t.k) FROM t

SELECT id, (SELECT count(*) FROM u WHERE u.k = t.k) FROM t

SELECT id, (SELECT label FROM u WHERE u.id = t.id AND u.k = t.k ORDER BY amount, label LIMIT 1) FROM t

SELECT id FROM t a WHERE qty > (SELECT avg(qty) FROM t b WHERE b.k = a.k)

SELECT id, (SELECT sum(amount) FROM u WHERE u.k = t.k AND u.amount > (SELECT avg(qty) FROM t t2 WHERE t2.k = t.k)) FROM t

SELECT k, (SELECT count(*) FROM u WHERE u.k = t.k) FROM t GROUP BY k

SELECT id, EXISTS (SELECT 1 FROM u WHERE u.k = t.k) AS e FROM t

SELECT t.id, s.label FROM t, LATERAL (SELECT label FROM u WHERE u.k = t.k ORDER BY label, id LIMIT 2) s

SELECT t.id, s.c FROM t LEFT JOIN LATERAL (SELECT count(*) AS c FROM u WHERE u.k = t.k) s ON true

SELECT t.id, s.m FROM t LEFT JOIN LATERAL (SELECT amount AS m FROM u WHERE u.k = t.k AND u.amount > 25) s ON s.m < 60

SELECT a.id, s.x FROM t a, LATERAL (SELECT b.id AS x FROM t b WHERE b.k = a.k AND EXISTS (SELECT 1 FROM u WHERE u.id = b.id AND u.k = a.k)) s

SELECT t.id, g FROM t, generate_series(1, t.k) g

SELECT g.n, g.n * 2 FROM generate_series(1, 5, 2) AS g(n)

SELECT id, v FROM t, unnest(ARRAY[t.id, t.k]) AS v

SELECT id FROM t UNION SELECT k FROM u

SELECT k FROM t UNION ALL SELECT k FROM u

SELECT k FROM t INTERSECT SELECT k FROM u

SELECT k FROM t INTERSECT ALL SELECT k FROM u

SELECT k FROM t EXCEPT SELECT k FROM u

SELECT k FROM t EXCEPT ALL SELECT k FROM u WHERE k = 1

SELECT 1 AS a UNION ALL SELECT 2.5 UNION ALL SELECT NULL

SELECT id FROM t UNION SELECT k FROM u EXCEPT SELECT 1 ORDER BY 1 LIMIT 3

VALUES (1, 'a'), (2, NULL), (3, 'c')

SELECT v.a + 1, v.b FROM (VALUES (1, 'x'), (2, 'y')) AS v(a, b)

WITH a AS (SELECT k, sum(qty) AS s FROM t GROUP BY k), b(m) AS (SELECT max(s) FROM a) SELECT a.k, a.s FROM a, b WHERE a.s = b.m

WITH a AS (SELECT * FROM t WHERE flag) SELECT x.id, y.id FROM a x JOIN a y ON x.k = y.k

SELECT id FROM t ORDER BY price DESC NULLS LAST, id LIMIT 3

SELECT id, qty FROM t ORDER BY qty DESC, id LIMIT 2 OFFSET 1

SELECT s.id FROM (SELECT id, qty FROM t ORDER BY qty, id LIMIT 4) s WHERE s.qty > 1

SELECT DISTINCT ON (k) k, id, qty FROM t ORDER BY k, qty DESC, id

SELECT id, k, row_number() OVER (PARTITION BY k ORDER BY qty, id) FROM t

SELECT id, rank() OVER (ORDER BY qty), dense_rank() OVER (ORDER BY qty), count(*) OVER () FROM t

SELECT id, sum(qty) OVER (PARTITION BY k ORDER BY id), sum(qty) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM t

SELECT id, lag(qty) OVER (ORDER BY id), lead(qty, 2, 0) OVER (ORDER BY id), first_value(id) OVER (PARTITION BY k ORDER BY id) FROM t

SELECT k, sum(qty), rank() OVER (ORDER BY sum(qty) DESC, k) FROM t GROUP BY k

SELECT id, avg(qty) OVER w, max(id) OVER w FROM t WINDOW w AS (PARTITION BY flag)

SELECT * FROM (SELECT id, k, row_number() OVER (PARTITION BY k ORDER BY qty DESC, id) AS rn FROM t) r WHERE rn <= 1

SELECT day + 1, day + interval '1 month', extract(year FROM day), date_trunc('month', day), day - date '2024-01-01' FROM t WHERE day IS NOT NULL

SELECT id FROM t WHERE day >= date '2024-02-01' AND day < date '2024-02-01' + interval '2 months'

SELECT cast(id AS text) || ':' || qty::text, '12'::int + 1, 3.7::int, 'true'::boolean FROM t

SELECT string_agg(name, ',' ORDER BY name, id), array_agg(k ORDER BY id) FROM t

SELECT k, string_agg(DISTINCT name, ',' ORDER BY name) FROM t GROUP BY k

SELECT k, array_agg(id ORDER BY id DESC) FILTER (WHERE flag) FROM t GROUP BY k

SELECT substring(name FROM 1 FOR 2), trim(both 'a' FROM name), position('b' IN name), replace(name, 'a', 'x') FROM t

SELECT id IS DISTINCT FROM k, k IS NOT DISTINCT FROM NULL, flag IS TRUE, flag IS NOT FALSE, flag IS UNKNOWN FROM t

SELECT NOT flag, flag AND k = 1, flag OR k = 1 FROM t

SELECT (SELECT 1), ARRAY[1, 2, 3], (ARRAY[4, 5])[1], ARRAY(SELECT DISTINCT 7 FROM u)

SELECT id FROM t WHERE k = ANY (ARRAY[1, 3])

SELECT id FROM t WHERE id = ANY ('{1,2}')

SELECT count(*) FROM t a, t b, u c WHERE a.k = b.k AND b.id = c.id

SELECT t.k, count(u.id) FROM t LEFT JOIN u ON u.k = t.k GROUP BY t.k

SELECT sum(a.qty * b.amount) FROM t a JOIN u b ON a.k = b.k WHERE a.flag

SELECT k, avg(qty), avg(price) FROM t GROUP BY k

SELECT count(*) FROM (SELECT DISTINCT k FROM t UNION ALL SELECT k FROM u) s

SELECT a.k FROM (SELECT k FROM t GROUP BY k HAVING count(*) > 1) a JOIN (SELECT DISTINCT k FROM u) b ON a.k = b.k

SELECT id FROM t WHERE (SELECT count(*) FROM u WHERE u.k = t.k AND u.id IN (SELECT id FROM t t3 WHERE t3.k = t.k)) > 0

SELECT t.id FROM t WHERE t.price > ALL (SELECT t2.price FROM t t2 WHERE t2.k = t.k AND t2.id <> t.id)

SELECT 1 WHERE EXISTS (SELECT 1 FROM empty) OR NOT EXISTS (SELECT 1 FROM empty)

SELECT x FROM empty UNION ALL SELECT count(*) FROM empty

SELECT (SELECT x FROM empty) IS NULL, (SELECT sum(x) FROM empty)

SELECT t.id, u.id FROM t LEFT JOIN u ON t.k = u.k AND EXISTS (SELECT 1 FROM empty)

SELECT k, count(*) FROM t WHERE id > 0 GROUP BY k ORDER BY count(*) DESC, k LIMIT 2

-- A comma binds looser than JOIN.

SELECT e.x, a.id, b.id AS other FROM empty AS e, t AS a RIGHT JOIN u AS b ON a.id = b.id

SELECT e.id, a.name, b.label, c.y FROM u AS e, t AS a FULL JOIN u AS b ON a.k = b.k, empty AS c

SELECT x.id, a.id AS left_id, b.label FROM t AS x, t AS a LEFT JOIN u AS b ON a.id = b.id WHERE x.id = a.k

SELECT count(*) FROM t AS x, t AS a JOIN u AS b USING (k)

SELECT x.id, g, b.label FROM t AS x, generate_series(1, x.qty) AS g LEFT JOIN u AS b ON b.id = g

SELECT pg_catalog.generate_series(1, 3) AS n

SELECT (pg_catalog.jsonb_each('{"a": 1, "b": 2}')).key

SELECT (jsonb_each('{"a": 1, "b": 2}')).value AS v, (jsonb_each('{"a": 1, "b": 2}')).key AS k

SELECT (jsonb_each('{"a": 1, "b": 2}')).*

SELECT q.id, (q.pair).key FROM (SELECT id, jsonb_each('{"a": 1}') AS pair FROM t) AS q WHERE (q.pair).key = 'a'

SELECT unnest(ARRAY[1, 2, 3]) AS a, unnest(ARRAY['x', 'y']) AS b, generate_subscripts(ARRAY[5, 6], 1) AS c

SELECT id, unnest(ARRAY[id, k]) AS a, generate_subscripts(ARRAY[id, k], 1) AS n FROM t

SELECT unnest('{}'::int[]) AS a, unnest(NULL::text[]) AS b

SELECT -12345678901234567890123456789012345678, 12345678901234567890123456789012345678 - 1, -(0.0), abs(-12345678901234567890123456789.012345678)

SELECT sum(x), min(x), max(-x) FROM (VALUES (12345678901234567890123456789012345678), (-12345678901234567890123456789012345678), (1)) AS v(x)

-- Numbers that fit a word, and numbers that do not, wherever they can meet.

SELECT x.id, y.id FROM m AS x JOIN m AS y ON x.a = y.b

SELECT x.id, y.id FROM m AS x JOIN m AS y ON x.a = y.c AND x.b = y.d

SELECT x.id, y.id, z.id FROM m AS x, m AS y, m AS z WHERE x.a = y.b AND y.b = z.c AND z.c = x.a

SELECT x.id, y.id FROM m AS x LEFT JOIN m AS y ON x.e = y.d

SELECT x.id, y.id FROM m AS x FULL JOIN m AS y ON x.c = y.e AND x.id <> y.id

SELECT x.id, y.id FROM m AS x JOIN m AS y ON x.a IS NOT DISTINCT FROM y.b

SELECT x.id, t.id FROM m AS x JOIN t ON x.b = t.price OR x.a = t.qty

SELECT x.id, t.id FROM m AS x JOIN t ON x.a = t.qty

SELECT x.id, u.id FROM m AS x JOIN u ON x.c = u.amount

SELECT a FROM m UNION SELECT b FROM m

SELECT a FROM m UNION ALL SELECT b FROM m UNION ALL SELECT c FROM m

SELECT c FROM m INTERSECT SELECT a FROM m

SELECT b FROM m EXCEPT SELECT a FROM m

SELECT v, count(*), sum(v), min(v), max(v) FROM (SELECT a AS v FROM m UNION ALL SELECT d FROM m) AS q GROUP BY v

SELECT DISTINCT coalesce(a, b), CASE WHEN id > 4 THEN a ELSE c END FROM m

SELECT greatest(a, b, c), least(a, b), nullif(a, b), coalesce(c, a, d) FROM m

SELECT id FROM m WHERE a IN (SELECT b FROM m WHERE id < 6)

SELECT id FROM m WHERE a NOT IN (SELECT b FROM m WHERE b IS NOT NULL)

SELECT id FROM m AS x WHERE EXISTS (SELECT 1 FROM m AS y WHERE y.b = x.a AND y.id <> x.id)

SELECT id, (SELECT count(*) FROM m AS y WHERE y.c = x.b) FROM m AS x

SELECT id FROM m WHERE a IN (1, 2.25, 100.10) OR b = 50 OR c = 9999.99

SELECT v, w FROM (VALUES (1.5, 2), (1.25, 12345678901234567890.5), (NULL, 3)) AS q(v, w)

SELECT m.id, q.v FROM m JOIN (VALUES (1.0), (2.25), (123456789012345678901234.0)) AS q(v) ON m.a = q.v

SELECT a + b, a - c, a * c, a * 2, a % nullif(c, 0), -a, abs(a), a + 1 FROM m

SELECT ceil(a), floor(c), round(a), round(c, 1), round(a, -1), trunc(c, 2), sign(a), sign(d) FROM m

SELECT count(DISTINCT a), count(DISTINCT b), sum(DISTINCT a), sum(a), sum(a * b), avg(a), avg(c) FROM m

SELECT id, sum(a) OVER (ORDER BY id), lag(a, 1, b) OVER (ORDER BY id), max(c) OVER () FROM m

SELECT a, array_agg(b ORDER BY id), array_agg(a ORDER BY id) FROM m GROUP BY a

SELECT a = ANY (ARRAY[1, 2.25]), b = ANY (ARRAY[50, 100.1]), a < b, a >= c, c <> d FROM m

SELECT a::numeric(24, 2), b::numeric(6, 2), c::numeric(6, 2), a::numeric, d::numeric(12, 3), id::numeric(6, 2) FROM m

SELECT x.a, y.s FROM m AS x JOIN (SELECT a, sum(b) AS s FROM m GROUP BY a) AS y ON x.b = y.s

SELECT 9999.99::numeric(6, 2) * 9999.99::numeric(6, 2), 999999999999999999 + 1.0, 0.5::numeric(18, 18) + 0.5::numeric(18, 18)

SELECT name, name ~ p, regexp_match(name, p), substring(name from p), regexp_replace(name, p, '<\1\&>') FROM t, (VALUES ('b'), ('a(.)'), ('^$'), (NULL)) AS v(p)

SELECT p, part FROM (VALUES ('a1b22c', '\d+'), ('x', 'y')) AS v(s, p), regexp_split_to_table(s, p) AS part

SELECT id FROM t WHERE id::float8 > 1e-30 AND id::float8 < 1e300 AND id::float8 * 1e-300 < 0.00000000000000000000000000001

SELECT regexp_replace('abc', 'b', '[\1\2]'), regexp_like('ABC', p, o), regexp_count('aXbX', p) FROM (VALUES ('x', 'i'), ('b', '')) AS v(p, o)

-- Windows of a query inside are its own, whatever stands around it.

SELECT id, (SELECT rank() OVER (ORDER BY u.amount, u.label) FROM u WHERE u.k = t.k ORDER BY 1 DESC LIMIT 1) FROM t

SELECT DISTINCT ON (max(qty) OVER (PARTITION BY k)) max(qty) OVER (PARTITION BY k) AS m, id FROM t ORDER BY 1, id

SELECT DISTINCT ON (k + 1, flag) id FROM t ORDER BY k + 1, flag, id

SELECT DISTINCT ON (k, k) k, id FROM t ORDER BY 1, 2

-- An aggregate belongs to the nearest query that its arguments speak of.

SELECT (SELECT count(t.id) FROM u LIMIT 1) FROM t

SELECT k, (SELECT max(t.qty) FROM empty), (SELECT sum(t.qty + u.amount) FROM u) FROM t GROUP BY k, qty

SELECT k FROM t GROUP BY k HAVING EXISTS (SELECT 1 FROM u WHERE u.amount > sum(t.qty))

-- A WITH query that speaks of what is around, used further inside.

SELECT id FROM t WHERE EXISTS (WITH w AS (SELECT t.k AS x) SELECT 1 FROM u WHERE u.k IN (SELECT x FROM w WHERE x < u.amount))

SELECT id, (WITH w AS (SELECT t.qty AS q) SELECT count(*) FROM u WHERE EXISTS (SELECT 1 FROM w, (SELECT w.q FROM w) AS v WHERE w.q = u.id)) FROM t

-- What is grouped by, compared with a query.

SELECT k + 1 FROM t GROUP BY k + 1 HAVING k + 1 IN (SELECT id FROM u)

SELECT k + 1, (k + 1) NOT IN (SELECT id FROM u), k + 1 > ALL (SELECT k FROM u WHERE k IS NOT NULL) FROM t GROUP BY k + 1

SELECT k, max(qty) >= ALL (array_agg(qty)), (k, max(id)) = (SELECT k, id FROM u ORDER BY 1, 2 LIMIT 1) FROM t GROUP BY k

-- Rows compared with the rows of a query, and patterns with several.

SELECT id FROM t WHERE (k, id) < ANY (SELECT k, id FROM u)

SELECT id, (k, id) <> ALL (SELECT k, id FROM u), ROW(k, id) IN (SELECT k, id FROM u), (k, id) = (SELECT k, id FROM u WHERE false) FROM t

SELECT name LIKE ANY (ARRAY['a%', '%b']), name NOT LIKE ANY (ARRAY['a%', '%b']), name NOT LIKE ALL (ARRAY['a%', NULL]), name ~ ANY (ARRAY['^a', 'c']) FROM t

SELECT id = SOME (VALUES (1), (2)), EXISTS (VALUES (1)), EXISTS ((SELECT 1 FROM empty) UNION (SELECT x FROM empty)), ARRAY(VALUES (id)) FROM t

-- Joins in parentheses, lateral or not, and table functions on the outer side.

SELECT t.id, v.a, u.id FROM t LEFT JOIN ((VALUES (1, 'a'), (2, 'b')) AS v(a, b) JOIN u ON u.k = v.a) ON v.a = t.k

SELECT t.id, s.k, u.id FROM t JOIN ((SELECT DISTINCT k FROM t) AS s FULL JOIN u ON u.k = s.k) ON s.k = t.k

SELECT a.id, b.id, c.id FROM ((t a JOIN t b ON a.id = b.k) JOIN u c ON c.id = b.id)

SELECT t.id, g FROM t RIGHT JOIN generate_series(1, 20, 3) AS g ON g = t.id

SELECT t.id, g.n, g.o FROM t FULL JOIN unnest(ARRAY[1, 5, 50]) WITH ORDINALITY AS g(n, o) ON g.n = t.id

SELECT t.id, s.x FROM t RIGHT JOIN (LATERAL (SELECT 3 AS x) AS s LEFT JOIN u ON u.id = s.x) ON s.x = t.k

-- Which operand an operator takes, and which type an expression has.

SELECT date '2024-01-31'::text, timestamp '2024-01-31 12:00:00'::date, interval '1 day'::text, '2 hours'::interval y

SELECT '{"a": {"b": 1}}'::jsonb - 'c' #>> '{a,b}', '{"a": 1}'::jsonb -> 'a' || '2'::jsonb, ARRAY[1] <@ ARRAY[1, 2], 'x' || 'y' ~ 'xy'

SELECT greatest('a', name::varchar(2)), least(name::varchar, 'b'), nullif('2024-01-05', day), nullif(id, price), CASE WHEN flag THEN name ELSE 'x'::varchar END FROM t

SELECT true, ((SELECT max(id) FROM t)), ((SELECT ARRAY[1] AS a))[1], (VALUES (1))

-- Keys by position and by name, in parentheses or not.

SELECT k AS qty, count(*) FROM t GROUP BY (k) ORDER BY (qty), ((2))

SELECT id, id FROM t ORDER BY id LIMIT 3

-- A cast to a length stays what it is, whatever takes its value.

SELECT length(name::varchar(2)), name::varchar(1)::text, upper(name::varchar(1)), (name::varchar(1))::varchar(2), (day + time '10:30:00.6')::timestamp(0)::timestamp FROM t

-- Quoted numbers have digits of their own.

SELECT 1.5 = '99.99', price < '99999999999.5', coalesce(price, '1234567890.125'), CASE WHEN flag THEN 1.5 ELSE '100.25' END, 2.5 IN ('99.99', '2.5') FROM t

SELECT x + 1 FROM (VALUES (1.5), ('99.99')) AS v(x) UNION SELECT '1e3'

-- An array of a query's rows is in the query's order.

SELECT ARRAY(SELECT id FROM t ORDER BY name DESC, id DESC), ARRAY(SELECT name FROM t ORDER BY 1 DESC), ARRAY(SELECT 3 UNION SELECT 4 ORDER BY 1 DESC)

SELECT u.id, ARRAY(SELECT t.name FROM t WHERE t.k = u.k ORDER BY t.qty DESC, t.id LIMIT 3) FROM u

SELECT id FROM t WINDOW w AS (PARTITION BY k ORDER BY id)

(SELECT 'x' AS x ORDER BY 1) EXCEPT SELECT 'b'::varchar UNION (SELECT DISTINCT 'y') UNION ALL SELECT NULL

-- Words in small letters mean what they mean in capitals.

select id, sum(qty) over (order by id, price rows between unbounded preceding and 1 preceding) as a, sum(qty) over (order by id, price rows 1 preceding) as b, count(*) over (order by qty range between 1 following and unbounded following) as c from t

-- Fewer rows, or more where there are peers.

SELECT id, qty FROM t ORDER BY qty FETCH FIRST 2 ROWS WITH TIES

SELECT k FROM t ORDER BY k DESC NULLS LAST OFFSET 2 ROWS FETCH NEXT 2 ROWS WITH TIES

SELECT id FROM u ORDER BY id, amount LIMIT 1 + 2 OFFSET 2 - 1

SELECT k, flag, count(*) FROM t GROUP BY DISTINCT ROLLUP (k, flag), CUBE (flag)

SELECT k, flag, count(*) FROM t GROUP BY ALL GROUPING SETS (ROLLUP (k), CUBE (flag), k)

-- What is lateral sees all on its left, also out of a join in parentheses; what is not, nothing of it.

SELECT u.id, t.id AS other, g FROM u CROSS JOIN (t JOIN generate_series(1, u.k) AS g ON g = t.k)

SELECT u.id, t.id AS other, s.x FROM u LEFT JOIN (t JOIN LATERAL (SELECT u.amount + t.qty AS x) AS s ON true) ON t.k = u.k

SELECT u.id, g, t.id AS other FROM u, generate_series(1, u.k) AS g RIGHT JOIN t ON t.k = g

SELECT id, (SELECT count(*) FROM u AS v, LATERAL (SELECT v.k AS x) AS s FULL JOIN (SELECT u.id FROM u WHERE u.label = name) AS w ON s.x = w.id) FROM t

SELECT interval '1 day' + '2024-01-01'::date, interval '1' day + '2 hours', interval '2' hour + interval '1 day'

-- What USING merges is the column of one side, where it always is.

SELECT id, count(*) FROM t LEFT JOIN u USING (id) GROUP BY t.id

SELECT t.id, u.id AS other, count(*) FROM t JOIN u USING (id) GROUP BY id, u.id

SELECT u.id, count(*) FROM t RIGHT JOIN u USING (id) GROUP BY id

SELECT id, k, s.id AS other FROM t JOIN u USING (id, k) LEFT JOIN (SELECT DISTINCT id FROM u) AS s USING (id) GROUP BY t.id, t.k, s.id

-- A quoted literal is as long as it is, beside what is shorter.

SELECT 'c d' UNION SELECT name::varchar(2) FROM t

SELECT CASE WHEN flag THEN 'abcd' ELSE name::varchar(2) END, coalesce(name::varchar(1), 'abcd') FROM t

-- What is grouped by is recognized under another type's name, and outputs by names that nobody gave them.

SELECT lower(name)::varchar, upper(lower(name))::varchar(1), count(*) FROM t GROUP BY lower(name)

SELECT lower(name), count(*) FROM t GROUP BY lower

SELECT k + 1 AS n, k + 1 AS n, count(*) FROM t GROUP BY n
