WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10) SELECT sum(i), count(*) FROM n

WITH RECURSIVE n AS (SELECT 1 AS i UNION SELECT i % 5 + 1 FROM n) SELECT i FROM n ORDER BY i

WITH RECURSIVE r AS (SELECT id, k FROM t) SELECT count(*) FROM r

WITH RECURSIVE up (id, k, depth) AS (
  SELECT id, k, 0 FROM t WHERE id = 1
  UNION ALL
  SELECT t.id, t.k, up.depth + 1 FROM t, up WHERE t.id = up.k AND up.depth < 4
)
SELECT * FROM up

WITH RECURSIVE up AS (
  SELECT id, k FROM t WHERE id <= 3
  UNION
  SELECT t.id, t.k FROM up JOIN t ON t.id = up.k
)
SELECT u.label, count(*) FROM up LEFT JOIN u ON u.id = up.id GROUP BY u.label

SELECT t.id, (
  WITH RECURSIVE down (i) AS (SELECT t.qty UNION ALL SELECT i - 1 FROM down WHERE i > 0)
  SELECT count(*) FROM down
) AS steps FROM t

SELECT t.id FROM t WHERE t.qty IN (
  WITH RECURSIVE r (i) AS (SELECT t.k UNION SELECT (i + 1) % 7 FROM r) SELECT i FROM r
)

WITH RECURSIVE a (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM a WHERE i < 3),
  b (i, j) AS (SELECT i, 1 FROM a UNION ALL SELECT b.i, j + 1 FROM b, a WHERE b.i = a.i AND j < a.i)
SELECT * FROM b

WITH RECURSIVE r (i) AS (SELECT x FROM empty UNION ALL SELECT i + 1 FROM r) SELECT * FROM r

WITH RECURSIVE r (i, name) AS (
  SELECT 1, 'a' UNION ALL SELECT i + 1, name || 'b' FROM (SELECT * FROM r WHERE i < 4) AS q
)
SELECT * FROM r

WITH RECURSIVE r (i) AS (
  SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE EXISTS (SELECT 1 FROM t WHERE t.id = r.i) AND i < 5
)
SELECT * FROM r

WITH RECURSIVE r (i) AS (SELECT 2 UNION ALL SELECT t.k FROM r LEFT JOIN t ON t.id = r.i WHERE r.i > 0 AND t.k < r.i)
SELECT * FROM r

WITH t AS (SELECT 5 AS id) SELECT id FROM t
