"""The queries of Nexmark that are functions of the data, in plain SQL.

Windows are expressions over the events' own time: a tumbling one is `date_bin`, a hopping one is the series of its
starts, and a session is a running count of gaps. q12 is left out: its windows are of the time of processing.
"""

from __future__ import annotations

TEN_SECONDS = "date_bin('10 seconds', {}, timestamp '2000-01-01')"
BID_WINDOW, PERSON_WINDOW, AUCTION_WINDOW = (
    TEN_SECONDS.format(column) for column in ("date_time", "p.date_time", "a.date_time")
)

QUERIES = {
    0: "SELECT auction, bidder, price, date_time, extra FROM bid",
    1: "SELECT auction, bidder, 0.908 * price AS price, date_time, extra FROM bid",
    2: "SELECT auction, price FROM bid WHERE mod(auction, 7) = 0",
    3: """
SELECT p.name, p.city, p.state, a.id
FROM auction AS a INNER JOIN person AS p ON a.seller = p.id
WHERE a.category = 10 AND (p.state = 'OR' OR p.state = 'ID' OR p.state = 'CA')
""",
    4: """
SELECT q.category, avg(q.final)
FROM (
  SELECT max(b.price) AS final, a.category
  FROM auction a, bid b
  WHERE a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires
  GROUP BY a.id, a.category) q
GROUP BY q.category
""",
    5: """
WITH hops AS (
  SELECT auction, date_bin('2 seconds', date_time, timestamp '2000-01-01') - n * interval '2 seconds' AS starts
  FROM bid, generate_series(0, 4) AS n),
counts AS (SELECT auction, starts, count(*) AS num FROM hops GROUP BY auction, starts)
SELECT c.auction, c.num, c.starts, c.starts + interval '10 seconds' AS ends
FROM counts c JOIN (SELECT starts, max(num) AS most FROM counts GROUP BY starts) m
  ON c.starts = m.starts AND c.num >= m.most
""",
    6: """
SELECT seller, avg(final) OVER (
  PARTITION BY seller ORDER BY closed, id ROWS BETWEEN 10 PRECEDING AND CURRENT ROW)
FROM (
  SELECT a.id, a.seller, max(b.price) AS final, a.expires AS closed
  FROM auction a, bid b
  WHERE a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires
  GROUP BY a.id, a.seller, a.expires) AS q
""",
    7: f"""
SELECT b.auction, b.price, b.bidder, b.date_time, b.extra
FROM bid b JOIN (SELECT {BID_WINDOW} AS starts, max(price) AS highest FROM bid GROUP BY 1) w
  ON b.price = w.highest AND b.date_time >= w.starts AND b.date_time < w.starts + interval '10 seconds'
""",
    8: f"""
SELECT p.id, p.name, p.starts
FROM (SELECT p.id, p.name, {PERSON_WINDOW} AS starts FROM person p GROUP BY 1, 2, 3) p
JOIN (SELECT a.seller, {AUCTION_WINDOW} AS starts FROM auction a GROUP BY 1, 2) a
  ON p.id = a.seller AND p.starts = a.starts
""",
    9: """
SELECT id, item_name, description, initial_bid, reserve, date_time, expires, seller, category, extra, auction, bidder,
  price, bid_time, bid_extra
FROM (
  SELECT a.*, b.auction, b.bidder, b.price, b.date_time AS bid_time, b.extra AS bid_extra,
    row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time ASC, b.bidder, b.extra) AS rownum
  FROM auction a, bid b
  WHERE a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires) AS ranked
WHERE rownum <= 1
""",
    10: """
SELECT auction, bidder, price, date_time, extra, to_char(date_time, 'YYYY-MM-DD'), to_char(date_time, 'HH24:MI')
FROM bid
""",
    11: """
WITH gaps AS (
  SELECT bidder, date_time, CASE WHEN date_time - lag(date_time) OVER (PARTITION BY bidder ORDER BY date_time)
      <= interval '10 seconds' THEN 0 ELSE 1 END AS opens
  FROM bid),
sessions AS (
  SELECT bidder, date_time, sum(opens) OVER (PARTITION BY bidder ORDER BY date_time) AS session FROM gaps)
SELECT bidder, count(*) AS bid_count, min(date_time) AS starttime, max(date_time) + interval '10 seconds' AS endtime
FROM sessions
GROUP BY bidder, session
""",
    13: """
SELECT b.auction, b.bidder, b.price, b.date_time, s.value
FROM bid b JOIN side_input s ON mod(b.auction, 10000) = s.key
""",
    14: """
SELECT auction, bidder, 0.908 * price AS price,
  CASE
    WHEN extract(hour FROM date_time) >= 8 AND extract(hour FROM date_time) <= 18 THEN 'dayTime'
    WHEN extract(hour FROM date_time) <= 6 OR extract(hour FROM date_time) >= 20 THEN 'nightTime'
    ELSE 'otherTime' END AS bid_time_type,
  date_time, extra, length(extra) - length(replace(extra, 'c', '')) AS c_counts
FROM bid
WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000
""",
    15: """
SELECT to_char(date_time, 'YYYY-MM-DD') AS day, count(*) AS total_bids,
  count(*) FILTER (WHERE price < 10000) AS rank1_bids,
  count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
  count(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
  count(DISTINCT bidder) AS total_bidders,
  count(DISTINCT bidder) FILTER (WHERE price < 10000) AS rank1_bidders,
  count(DISTINCT bidder) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bidders,
  count(DISTINCT bidder) FILTER (WHERE price >= 1000000) AS rank3_bidders,
  count(DISTINCT auction) AS total_auctions,
  count(DISTINCT auction) FILTER (WHERE price < 10000) AS rank1_auctions,
  count(DISTINCT auction) FILTER (WHERE price >= 1000000) AS rank3_auctions
FROM bid
GROUP BY to_char(date_time, 'YYYY-MM-DD')
""",
    16: """
SELECT channel, to_char(date_time, 'YYYY-MM-DD') AS day, max(to_char(date_time, 'HH24:MI')) AS minute,
  count(*) AS total_bids,
  count(*) FILTER (WHERE price < 10000) AS rank1_bids,
  count(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
  count(DISTINCT bidder) AS total_bidders,
  count(DISTINCT bidder) FILTER (WHERE price >= 1000000) AS rank3_bidders,
  count(DISTINCT auction) AS total_auctions,
  count(DISTINCT auction) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_auctions
FROM bid
GROUP BY channel, to_char(date_time, 'YYYY-MM-DD')
""",
    17: """
SELECT auction, to_char(date_time, 'YYYY-MM-DD') AS day, count(*) AS total_bids,
  count(*) FILTER (WHERE price < 10000) AS rank1_bids,
  count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
  count(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
  min(price) AS min_price, max(price) AS max_price, avg(price) AS avg_price, sum(price) AS sum_price
FROM bid
GROUP BY auction, to_char(date_time, 'YYYY-MM-DD')
""",
    18: """
SELECT auction, bidder, price, channel, url, date_time, extra
FROM (
  SELECT *, row_number() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC) AS rank_number FROM bid) AS last
WHERE rank_number <= 1
""",
    19: """
SELECT *
FROM (
  SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC, date_time) AS rank_number FROM bid) AS top
WHERE rank_number <= 10
""",
    20: """
SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.date_time, b.extra, a.item_name, a.description, a.initial_bid,
  a.reserve, a.date_time, a.expires, a.seller, a.category, a.extra
FROM bid AS b INNER JOIN auction AS a ON b.auction = a.id
WHERE a.category = 10
""",
    21: """
SELECT auction, bidder, price, channel,
  CASE
    WHEN lower(channel) = 'apple' THEN '0'
    WHEN lower(channel) = 'google' THEN '1'
    WHEN lower(channel) = 'facebook' THEN '2'
    WHEN lower(channel) = 'baidu' THEN '3'
    ELSE substring(url FROM '&channel_id=([^&]*)') END AS channel_id
FROM bid
WHERE substring(url FROM '&channel_id=([^&]*)') IS NOT NULL
  OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')
""",
    22: """
SELECT auction, bidder, price, channel, split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2,
  split_part(url, '/', 6) AS dir3
FROM bid
""",
}
