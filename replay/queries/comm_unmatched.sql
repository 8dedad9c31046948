-- name comm_unmatched
-- description Members of collectives of which something is not known: no counterpart on another rank,
--     no file of a partner, no size, no kind. A member with several faults has a row in each.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
WITH
span AS (
    SELECT s.*
    FROM step_span($first_step, $last_step) AS s
),
chosen AS (
    SELECT DISTINCT t.rank
    FROM trace AS t
    WHERE is_chosen($ranks, t.rank)
),
member AS (
    SELECT
        m.rank,
        m.dur,
        m.wait_dur,
        c.kind,
        UNNEST(LIST_FILTER([
            IF(m.state <> 'matched', m.state, NULL),
            IF(c.msg_bytes IS NULL, 'without size', NULL),
            IF(c.kind = 'unknown', 'without kind', NULL),
            IF(c.pg_key IS NULL, 'without process group', NULL)
        ], lambda fault: fault IS NOT NULL)) AS fault
    FROM collective_rank AS m
    JOIN collective AS c ON c.coll_id = m.coll_id
    JOIN chosen AS h ON h.rank = m.rank
    JOIN span AS s ON m.ts < s.end_ts AND m.ts + m.dur > s.ts
)
SELECT
    m.fault,
    m.kind,
    COUNT(*) AS members,
    COUNT(DISTINCT m.rank) AS ranks,
    SUM(m.dur)::BIGINT AS total_ns,
    SUM(m.wait_dur)::BIGINT AS wait_ns
FROM member AS m
GROUP BY m.fault, m.kind
ORDER BY total_ns DESC, m.fault, m.kind
