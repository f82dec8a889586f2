-- Finds the commits from which on peaks are higher, and the ranks whose peak stands out among their peers: the same rank and memory
-- space in other runs of the same commit. For any engine in which the tables are `runs` and `labels`.
WITH processes AS (
  SELECT r.run, r.rank, r.host, r.space, r.begin_unix_ns, r.peak_bytes, l.value AS commit
  FROM runs AS r JOIN labels AS l ON l.run = r.run AND l.rank = r.rank AND l.name = 'commit'
),
usual AS (  -- a median is robust against single outliers
  SELECT commit, rank, space, min(begin_unix_ns) AS since, CAST(median(peak_bytes) AS BIGINT) AS peak_bytes
  FROM processes
  GROUP BY commit, rank, space
),
commits AS (
  SELECT commit, rank, space, peak_bytes, lag(peak_bytes) OVER (PARTITION BY rank, space ORDER BY since) AS previous_bytes
  FROM usual
)
SELECT 'commit' AS what, commit, NULL AS run, NULL AS rank, NULL AS host, space, min(peak_bytes - previous_bytes) AS excess_bytes
FROM commits
GROUP BY commit, space
HAVING min(peak_bytes / previous_bytes) > 1.03  -- on every rank
UNION ALL
SELECT 'rank', p.commit, p.run, p.rank, p.host, p.space, p.peak_bytes - u.peak_bytes
FROM processes AS p JOIN usual AS u ON u.commit = p.commit AND u.rank = p.rank AND u.space = p.space
WHERE p.peak_bytes > 1.1 * u.peak_bytes
ORDER BY what, excess_bytes DESC, run
