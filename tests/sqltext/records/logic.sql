# Three-valued logic, comparisons, CASE and its relatives
> CREATE TABLE l (id int, p boolean, q boolean, a int, b int, t text)
CREATE TABLE

> INSERT INTO l VALUES (1, true, true, 1, 1, 'x'), (2, true, false, 1, 2, 'y'), (3, true, NULL, NULL, 2, NULL), (4, false, true, 2, NULL, 'x'), (10, false, true, 2, NULL, 'x')
INSERT 0 5

% changes
> INSERT INTO l VALUES (5, false, false, 3, 3, 'z'), (6, false, NULL, 3, 4, ''), (7, NULL, true, NULL, NULL, 'n'), (8, NULL, false, 0, 0, 'o'), (9, NULL, NULL, -1, 1, NULL)
INSERT 0 5

> UPDATE l SET p = NOT p WHERE id IN (5, 10)
UPDATE 2

> DELETE FROM l WHERE id = 10
DELETE 1

> SELECT id, p AND q FROM l
id:int4|?column?:bool
1|t
2|f
3|NULL
4|f
6|f
7|NULL
8|f
9|NULL
5|f

> SELECT id, p OR q FROM l
id:int4|?column?:bool
1|t
2|t
3|t
4|t
6|NULL
7|t
8|NULL
9|NULL
5|t

> SELECT id, NOT p FROM l
id:int4|?column?:bool
1|f
2|f
3|f
4|t
6|t
7|NULL
8|NULL
9|NULL
5|f

> SELECT id, NOT (p AND q) FROM l
id:int4|?column?:bool
1|f
2|t
3|NULL
4|t
6|t
7|NULL
8|t
9|NULL
5|t

> SELECT id, p AND NOT q FROM l
id:int4|?column?:bool
1|f
2|t
3|NULL
4|f
6|f
7|f
8|NULL
9|NULL
5|t

> SELECT id, p OR NOT q FROM l
id:int4|?column?:bool
1|t
2|t
3|t
4|f
6|NULL
7|NULL
8|t
9|NULL
5|t

> SELECT id, p = q FROM l
id:int4|?column?:bool
1|t
2|f
3|NULL
4|f
6|NULL
7|NULL
8|NULL
9|NULL
5|f

> SELECT id, p <> q FROM l
id:int4|?column?:bool
1|f
2|t
3|NULL
4|t
6|NULL
7|NULL
8|NULL
9|NULL
5|t

> SELECT id, p < q FROM l
id:int4|?column?:bool
1|f
2|f
3|NULL
4|t
6|NULL
7|NULL
8|NULL
9|NULL
5|f

> SELECT id, p >= q FROM l
id:int4|?column?:bool
1|t
2|t
3|NULL
4|f
6|NULL
7|NULL
8|NULL
9|NULL
5|t

> SELECT id, p IS TRUE FROM l
id:int4|?column?:bool
1|t
2|t
3|t
4|f
6|f
7|f
8|f
9|f
5|t

> SELECT id, p IS NOT TRUE FROM l
id:int4|?column?:bool
1|f
2|f
3|f
4|t
6|t
7|t
8|t
9|t
5|f

> SELECT id, p IS FALSE FROM l
id:int4|?column?:bool
1|f
2|f
3|f
4|t
6|t
7|f
8|f
9|f
5|f

> SELECT id, p IS NOT FALSE FROM l
id:int4|?column?:bool
1|t
2|t
3|t
4|f
6|f
7|t
8|t
9|t
5|t

> SELECT id, p IS UNKNOWN FROM l
id:int4|?column?:bool
1|f
2|f
3|f
4|f
6|f
7|t
8|t
9|t
5|f

> SELECT id, p IS NOT UNKNOWN FROM l
id:int4|?column?:bool
1|t
2|t
3|t
4|t
6|t
7|f
8|f
9|f
5|t

> SELECT id, p IS NULL FROM l
id:int4|?column?:bool
1|f
2|f
3|f
4|f
6|f
7|t
8|t
9|t
5|f

> SELECT id, q IS NOT NULL FROM l
id:int4|?column?:bool
1|t
2|t
3|f
4|t
6|f
7|t
8|t
9|f
5|t

> SELECT id, p AND NULL FROM l
id:int4|?column?:bool
1|NULL
2|NULL
3|NULL
4|f
6|f
7|NULL
8|NULL
9|NULL
5|NULL

> SELECT id, p OR NULL FROM l
id:int4|?column?:bool
1|t
2|t
3|t
4|NULL
6|NULL
7|NULL
8|NULL
9|NULL
5|t

> SELECT id, p IS DISTINCT FROM q FROM l
id:int4|?column?:bool
1|f
2|t
3|t
4|t
6|t
7|t
8|t
9|f
5|t

> SELECT id, p IS NOT DISTINCT FROM q FROM l
id:int4|?column?:bool
1|t
2|f
3|f
4|f
6|f
7|f
8|f
9|t
5|f

> SELECT id, a IS DISTINCT FROM b FROM l
id:int4|?column?:bool
1|f
2|t
3|t
4|t
6|t
7|f
8|f
9|t
5|f

> SELECT id, a IS NOT DISTINCT FROM b FROM l
id:int4|?column?:bool
1|t
2|f
3|f
4|f
6|f
7|t
8|t
9|f
5|t

> SELECT id, a IS DISTINCT FROM NULL FROM l
id:int4|?column?:bool
1|t
2|t
3|f
4|t
6|t
7|f
8|t
9|t
5|t

> SELECT id, a = b FROM l
id:int4|?column?:bool
1|t
2|f
3|NULL
4|NULL
6|f
7|NULL
8|t
9|f
5|t

> SELECT id, a <> b FROM l
id:int4|?column?:bool
1|f
2|t
3|NULL
4|NULL
6|t
7|NULL
8|f
9|t
5|f

> SELECT id, a != b FROM l
id:int4|?column?:bool
1|f
2|t
3|NULL
4|NULL
6|t
7|NULL
8|f
9|t
5|f

> SELECT id, a < b FROM l
id:int4|?column?:bool
1|f
2|t
3|NULL
4|NULL
6|t
7|NULL
8|f
9|t
5|f

> SELECT id, a = NULL FROM l
id:int4|?column?:bool
1|NULL
2|NULL
3|NULL
4|NULL
6|NULL
7|NULL
8|NULL
9|NULL
5|NULL

> SELECT id, NULL = NULL FROM l
id:int4|?column?:bool
1|NULL
2|NULL
3|NULL
4|NULL
6|NULL
7|NULL
8|NULL
9|NULL
5|NULL

> SELECT id, a + NULL FROM l
id:int4|?column?:int4
1|NULL
2|NULL
3|NULL
4|NULL
6|NULL
7|NULL
8|NULL
9|NULL
5|NULL

> SELECT id, a IN (1, 2) FROM l
id:int4|?column?:bool
1|t
2|t
3|NULL
4|t
6|f
7|NULL
8|f
9|f
5|f

> SELECT id, a IN (1, NULL) FROM l
id:int4|?column?:bool
1|t
2|t
3|NULL
4|NULL
6|NULL
7|NULL
8|NULL
9|NULL
5|NULL

> SELECT id, a NOT IN (1, 2) FROM l
id:int4|?column?:bool
1|f
2|f
3|NULL
4|f
6|t
7|NULL
8|t
9|t
5|t

> SELECT id, a NOT IN (1, NULL) FROM l
id:int4|?column?:bool
1|f
2|f
3|NULL
4|NULL
6|NULL
7|NULL
8|NULL
9|NULL
5|NULL

> SELECT id, NULL IN (1, 2) FROM l
id:int4|?column?:bool
1|NULL
2|NULL
3|NULL
4|NULL
6|NULL
7|NULL
8|NULL
9|NULL
5|NULL

> SELECT id, a IN (b, 3) FROM l
id:int4|?column?:bool
1|t
2|f
3|NULL
4|NULL
6|t
7|NULL
8|t
9|f
5|t

> SELECT id, a NOT IN (b) FROM l
id:int4|?column?:bool
1|f
2|t
3|NULL
4|NULL
6|t
7|NULL
8|f
9|t
5|f

> SELECT id, t IN ('x', 'y') FROM l
id:int4|?column?:bool
1|t
2|t
3|NULL
4|t
6|f
7|f
8|f
9|NULL
5|f

> SELECT id, (a, b) = (1, 1) FROM l
id:int4|?column?:bool
1|t
2|f
3|f
4|f
6|f
7|NULL
8|f
9|f
5|f

> SELECT id, (a, b) <> (1, 1) FROM l
id:int4|?column?:bool
1|f
2|t
3|t
4|t
6|t
7|NULL
8|t
9|t
5|t

> SELECT id, (a, b) IN ((1, 1), (3, 3)) FROM l
id:int4|?column?:bool
1|t
2|f
3|f
4|f
6|f
7|NULL
8|f
9|f
5|t

> SELECT id, (a, b) NOT IN ((1, 1), (3, 4)) FROM l
id:int4|?column?:bool
1|f
2|t
3|t
4|t
6|f
7|NULL
8|t
9|t
5|t

> SELECT id, (a, b) < (2, 1) FROM l
id:int4|?column?:bool
1|t
2|t
3|NULL
4|NULL
6|f
7|NULL
8|t
9|t
5|f

> SELECT id, (a, b) IS NULL FROM l
id:int4|?column?:bool
1|f
2|f
3|f
4|f
6|f
7|t
8|f
9|f
5|f

> SELECT id, (a, b) IS NOT NULL FROM l
id:int4|?column?:bool
1|t
2|t
3|f
4|f
6|t
7|f
8|t
9|t
5|t

> SELECT id, (a, b) IS DISTINCT FROM (1, 2) FROM l
id:int4|?column?:bool
1|t
2|f
3|t
4|t
6|t
7|t
8|t
9|t
5|t

> SELECT id, a BETWEEN 1 AND b FROM l
id:int4|?column?:bool
1|t
2|t
3|NULL
4|NULL
6|t
7|NULL
8|f
9|f
5|t

> SELECT id, a NOT BETWEEN 1 AND b FROM l
id:int4|?column?:bool
1|f
2|f
3|NULL
4|NULL
6|f
7|NULL
8|t
9|t
5|f

> SELECT id, a = ANY (ARRAY[1, 3]) FROM l
id:int4|?column?:bool
1|t
2|t
3|NULL
4|f
6|t
7|NULL
8|f
9|f
5|t

> SELECT id, a = ANY (ARRAY[1, NULL]) FROM l
id:int4|?column?:bool
1|t
2|t
3|NULL
4|NULL
6|NULL
7|NULL
8|NULL
9|NULL
5|NULL

> SELECT id, a <> ALL (ARRAY[1, 3]) FROM l
id:int4|?column?:bool
1|f
2|f
3|NULL
4|t
6|f
7|NULL
8|t
9|t
5|f

> SELECT id, a <> ALL (ARRAY[1, NULL]) FROM l
id:int4|?column?:bool
1|f
2|f
3|NULL
4|NULL
6|NULL
7|NULL
8|NULL
9|NULL
5|NULL

> SELECT id, a > ANY (ARRAY[0, 2]) FROM l
id:int4|?column?:bool
1|t
2|t
3|NULL
4|t
6|t
7|NULL
8|f
9|f
5|t

> SELECT id, a >= ALL (ARRAY[1, b]) FROM l
id:int4|?column?:bool
1|t
2|f
3|NULL
4|NULL
6|f
7|NULL
8|f
9|f
5|t

> SELECT id, a = ANY ('{1,2}') FROM l
id:int4|?column?:bool
1|t
2|t
3|NULL
4|t
6|f
7|NULL
8|f
9|f
5|f

> SELECT id, coalesce(a, b) FROM l
id:int4|coalesce:int4
1|1
2|1
3|2
4|2
6|3
7|NULL
8|0
9|-1
5|3

> SELECT id, coalesce(a, b, 0) FROM l
id:int4|coalesce:int4
1|1
2|1
3|2
4|2
6|3
7|0
8|0
9|-1
5|3

> SELECT id, coalesce(t, 'none') FROM l
id:int4|coalesce:text
1|x
2|y
3|none
4|x
6|""
7|n
8|o
9|none
5|z

> SELECT id, coalesce(NULL, a) FROM l
id:int4|coalesce:int4
1|1
2|1
3|NULL
4|2
6|3
7|NULL
8|0
9|-1
5|3

> SELECT id, nullif(a, b) FROM l
id:int4|nullif:int4
1|NULL
2|1
3|NULL
4|2
6|3
7|NULL
8|NULL
9|-1
5|NULL

> SELECT id, nullif(a, 1) FROM l
id:int4|nullif:int4
1|NULL
2|NULL
3|NULL
4|2
6|3
7|NULL
8|0
9|-1
5|3

> SELECT id, nullif(t, '') FROM l
id:int4|nullif:text
1|x
2|y
3|NULL
4|x
6|NULL
7|n
8|o
9|NULL
5|z

> SELECT id, greatest(a, b) FROM l
id:int4|greatest:int4
1|1
2|2
3|2
4|2
6|4
7|NULL
8|0
9|1
5|3

> SELECT id, least(a, b, 0) FROM l
id:int4|least:int4
1|0
2|0
3|0
4|0
6|0
7|0
8|0
9|-1
5|0

> SELECT id, CASE WHEN p THEN 'yes' WHEN q THEN 'maybe' ELSE 'no' END FROM l
id:int4|case:text
1|yes
2|yes
3|yes
4|maybe
6|no
7|maybe
8|no
9|no
5|yes

> SELECT id, CASE WHEN p THEN 'yes' END FROM l
id:int4|case:text
1|yes
2|yes
3|yes
4|NULL
6|NULL
7|NULL
8|NULL
9|NULL
5|yes

> SELECT id, CASE a WHEN 1 THEN 'one' WHEN 2 THEN 'two' ELSE 'many' END FROM l
id:int4|case:text
1|one
2|one
3|many
4|two
6|many
7|many
8|many
9|many
5|many

> SELECT id, CASE a WHEN b THEN 'same' END FROM l
id:int4|case:text
1|same
2|NULL
3|NULL
4|NULL
6|NULL
7|NULL
8|same
9|NULL
5|same

> SELECT id, CASE a WHEN NULL THEN 'null' ELSE 'other' END FROM l
id:int4|case:text
1|other
2|other
3|other
4|other
6|other
7|other
8|other
9|other
5|other

> SELECT id, CASE WHEN a > 0 THEN 10 / a ELSE 0 END FROM l
id:int4|case:int4
1|10
2|10
3|0
4|5
6|3
7|0
8|0
9|0
5|3

> SELECT id, CASE WHEN a <> 0 THEN 6 / a END FROM l
id:int4|case:int4
1|6
2|6
3|NULL
4|3
6|2
7|NULL
8|NULL
9|-6
5|2

> SELECT id, CASE WHEN p IS NULL THEN NULL ELSE a END FROM l
id:int4|a:int4
1|1
2|1
3|NULL
4|2
6|3
7|NULL
8|NULL
9|NULL
5|3

> SELECT id, CASE WHEN a = 1 THEN 1 ELSE 2.5 END FROM l
id:int4|case:numeric
1|1
2|1
3|2.5
4|2.5
6|2.5
7|2.5
8|2.5
9|2.5
5|2.5

> SELECT id, CASE WHEN a > b THEN a WHEN b > a THEN b ELSE -1 END FROM l
id:int4|case:int4
1|-1
2|2
3|-1
4|-1
6|4
7|-1
8|-1
9|1
5|-1

> SELECT id, CASE WHEN t = 'x' THEN CASE WHEN p THEN 1 ELSE 2 END ELSE 3 END FROM l
id:int4|case:int4
1|1
2|3
3|3
4|2
6|3
7|3
8|3
9|3
5|3

> SELECT id, p::int FROM l
id:int4|p:int4
1|1
2|1
3|1
4|0
6|0
7|NULL
8|NULL
9|NULL
5|1

> SELECT id, p::text FROM l
id:int4|p:text
1|true
2|true
3|true
4|false
6|false
7|NULL
8|NULL
9|NULL
5|true

> SELECT id, a::boolean FROM l
id:int4|a:bool
1|t
2|t
3|NULL
4|t
6|t
7|NULL
8|f
9|t
5|t

> SELECT id, (p AND q)::int + 1 FROM l
id:int4|?column?:int4
1|2
2|1
3|NULL
4|1
6|1
7|NULL
8|1
9|NULL
5|1

> SELECT id, 'yes'::boolean, 'off'::boolean, 't'::boolean, '0'::boolean FROM l
id:int4|bool:bool|bool:bool|bool:bool|bool:bool
1|t|f|t|f
2|t|f|t|f
3|t|f|t|f
4|t|f|t|f
6|t|f|t|f
7|t|f|t|f
8|t|f|t|f
9|t|f|t|f
5|t|f|t|f

> SELECT id, t || NULL IS NULL FROM l
id:int4|?column?:bool
1|t
2|t
3|t
4|t
6|t
7|t
8|t
9|t
5|t

> SELECT id, (a IS NULL) = (b IS NULL) FROM l
id:int4|?column?:bool
1|t
2|t
3|f
4|f
6|t
7|t
8|t
9|t
5|t

> SELECT id, NOT a = 1 OR b = 2 FROM l
id:int4|?column?:bool
1|f
2|t
3|t
4|t
6|t
7|NULL
8|t
9|t
5|t

> SELECT id, NOT (a IS NULL OR b IS NULL) FROM l
id:int4|?column?:bool
1|t
2|t
3|f
4|f
6|t
7|f
8|t
9|t
5|t

> SELECT id, a > 1 AND b > 1 OR p FROM l
id:int4|?column?:bool
1|t
2|t
3|t
4|NULL
6|t
7|NULL
8|NULL
9|NULL
5|t

> SELECT id, a > 1 AND (b > 1 OR p) FROM l
id:int4|?column?:bool
1|f
2|f
3|NULL
4|NULL
6|t
7|NULL
8|f
9|f
5|t

> SELECT id, p AND q OR NOT p AND NOT q FROM l
id:int4|?column?:bool
1|t
2|f
3|NULL
4|f
6|NULL
7|NULL
8|NULL
9|NULL
5|f

> SELECT id FROM l WHERE p
id:int4
1
2
3
5

> SELECT id FROM l WHERE NOT p
id:int4
4
6

> SELECT id FROM l WHERE p IS NOT TRUE
id:int4
4
6
7
8
9

> SELECT id FROM l WHERE p AND q IS NULL
id:int4
3

> SELECT id FROM l WHERE a = b
id:int4
1
8
5

> SELECT id FROM l WHERE a <> b
id:int4
2
6
9

> SELECT id FROM l WHERE NOT a = b
id:int4
2
6
9

> SELECT id FROM l WHERE a IS NULL AND b IS NULL
id:int4
7

> SELECT id FROM l WHERE a IS NOT DISTINCT FROM b
id:int4
1
7
8
5

> SELECT id FROM l WHERE (a, b) IN ((1, 2), (3, 4))
id:int4
2
6

> SELECT id FROM l WHERE a NOT IN (1, 2, 3)
id:int4
8
9

> SELECT id FROM l WHERE coalesce(a, b) = 2
id:int4
3
4

> SELECT id FROM l WHERE CASE WHEN a IS NULL THEN q ELSE p END
id:int4
1
2
7
5

> SELECT id FROM l WHERE true
id:int4
1
2
3
4
6
7
8
9
5

> SELECT id FROM l WHERE false
id:int4

> SELECT id FROM l WHERE NULL
id:int4

> SELECT id FROM l WHERE a > 0 AND 12 / a > 4
id:int4
1
2
4

> SELECT count(*), count(p), count(a), count(*) - count(t) FROM l
count:int8|count:int8|count:int8|?column?:int8
9|6|7|2

> SELECT p, count(*) FROM l GROUP BY p
p:bool|count:int8
NULL|3
f|2
t|4

> SELECT p, q, count(*) FROM l GROUP BY p, q
p:bool|q:bool|count:int8
NULL|NULL|1
NULL|t|1
f|t|1
t|f|2
NULL|f|1
t|t|1
f|NULL|1
t|NULL|1

> SELECT DISTINCT p FROM l
p:bool
NULL
f
t

> SELECT bool_and(p), bool_or(p), every(q), bool_or(q IS NULL) FROM l
bool_and:bool|bool_or:bool|every:bool|bool_or:bool
f|t|f|t

> SELECT id FROM l ORDER BY p, q, id
id:int4
4
6
2
5
1
3
8
7
9

> SELECT id FROM l ORDER BY p DESC, q NULLS FIRST, id
id:int4
9
8
7
3
2
5
1
6
4

> SELECT x.id, y.id FROM l x JOIN l y ON x.a = y.b
id:int4|id:int4
8|8
1|1
1|9
2|1
2|9
4|2
4|3
5|5
6|5

> SELECT x.id, y.id FROM l x JOIN l y ON x.a IS NOT DISTINCT FROM y.b
id:int4|id:int4
1|1
1|9
2|1
2|9
3|4
3|7
4|2
4|3
6|5
7|4
7|7
8|8
5|5

> SELECT x.id, y.id FROM l x JOIN l y ON x.p = y.q AND x.id < y.id
id:int4|id:int4
1|7
1|4
2|7
2|4
3|7
3|4
4|5
4|8
6|8
5|7
