-- name host_time
-- description What the thread that carries the step does in a step of the host, by the innermost row
--     at each moment; the parts add up to the step. Where nothing is recorded it is in Python
--     without frames, or it waits.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL Only from this step on.
-- param last_step BIGINT NULL Only up to this step.
WITH
hosts AS (
    SELECT
        t.rank,
        MIN(COALESCE(p.ts, w.ts)) AS ts,
        MAX(COALESCE(p.ts + p.dur, w.ts + w.dur)) AS end_ts,
        COUNT(DISTINCT w.step) AS steps
    FROM step_window AS w
    CROSS JOIN trace AS t
    LEFT JOIN step AS p
        ON p.trace_id = t.trace_id AND p.step = w.step AND p.source = 'ProfilerStep'
    WHERE ($first_step IS NULL OR w.step >= $first_step)
        AND ($last_step IS NULL OR w.step <= $last_step)
        AND ($ranks IS NULL OR t.rank IN (SELECT UNNEST(STRING_SPLIT($ranks::VARCHAR, ','))::BIGINT))
    GROUP BY t.rank
),
busiest AS (
    SELECT
        s.rank,
        s.utid,
        COUNT(*) AS n
    FROM slice AS s
    WHERE s.cat IN ('cpu_op', 'cuda_runtime', 'cuda_driver')
    GROUP BY s.rank, s.utid
),
carrier AS (
    SELECT
        h.rank,
        h.ts,
        h.end_ts,
        COALESCE(
            (SELECT MIN(p.utid) FROM step AS p WHERE p.rank = h.rank AND p.source = 'ProfilerStep'),
            (SELECT ARG_MAX(b.utid, b.n) FROM busiest AS b WHERE b.rank = h.rank)
        ) AS utid
    FROM hosts AS h
),
point AS (
    SELECT
        p.utid,
        p.ts,
        p.slice_id
    FROM store.host_point AS p
    JOIN carrier AS c ON c.utid = p.utid
    UNION ALL
    SELECT c.utid, -(1::BIGINT << 60), NULL
    FROM carrier AS c
),
piece AS (
    SELECT
        c.rank,
        p.slice_id,
        GREATEST(p.ts, c.ts) AS ts,
        LEAST(
            COALESCE(LEAD(p.ts) OVER (PARTITION BY p.utid ORDER BY p.ts), 1::BIGINT << 60),
            c.end_ts
        ) AS end_ts
    FROM point AS p
    JOIN carrier AS c ON c.utid = p.utid
),
loading AS (
    SELECT
        s.utid,
        s.ts,
        s.ts + s.dur AS end_ts
    FROM slice AS s
    JOIN carrier AS c ON c.utid = s.utid
    WHERE s.name LIKE '%DataLoader%' AND s.cat IN ('user_annotation', 'cpu_op')
),
engine AS (
    SELECT
        e.rank,
        e.ts,
        SUM(SUM(e.change)) OVER (PARTITION BY e.rank ORDER BY e.ts) AS n_active
    FROM (
        SELECT
            s.rank,
            UNNEST([s.ts, s.ts + s.dur]) AS ts,
            UNNEST([1, -1]) AS change
        FROM slice AS s
        JOIN thread AS d ON d.utid = s.utid
        JOIN carrier AS c ON c.rank = s.rank
        WHERE d.role = 'autograd' AND s.depth = 0 AND s.dur > 0 AND s.utid <> c.utid
    ) AS e
    GROUP BY e.rank, e.ts
),
backward AS (
    SELECT
        e.rank,
        e.ts,
        e.n_active,
        COALESCE(
            SUM(CASE WHEN e.n_active > 0 THEN e.dur ELSE 0 END) OVER (
                PARTITION BY e.rank ORDER BY e.ts
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ),
            0
        ) AS busy_dur
    FROM (
        SELECT
            n.*,
            LEAD(n.ts) OVER (PARTITION BY n.rank ORDER BY n.ts) - n.ts AS dur
        FROM engine AS n
    ) AS e
),
told AS (
    SELECT
        p.rank,
        p.end_ts - p.ts AS dur,
        CASE
            WHEN g.end_ts > p.ts THEN 'data loader'
            WHEN s.id IS NULL OR s.cat = 'user_annotation' THEN 'nothing recorded'
            WHEN r.kind IN ('device_sync', 'stream_sync', 'event_sync') THEN 'waiting for the device'
            WHEN r.id IS NOT NULL THEN 'runtime calls'
            WHEN s.cat = 'cpu_op' THEN 'operators'
            WHEN s.cat = 'python_function' THEN 'Python frames'
            ELSE 'other rows'
        END AS what,
        (COALESCE(b.busy_dur, 0) + CASE WHEN b.n_active > 0 THEN p.end_ts - b.ts ELSE 0 END)
        - (COALESCE(a.busy_dur, 0) + CASE WHEN a.n_active > 0 THEN p.ts - a.ts ELSE 0 END)
        AS backward_dur
    FROM (SELECT i.*, c.utid FROM piece AS i JOIN carrier AS c ON c.rank = i.rank) AS p
    LEFT JOIN slice AS s ON s.id = p.slice_id
    LEFT JOIN runtime AS r ON r.id = p.slice_id
    ASOF LEFT JOIN loading AS g ON g.utid = p.utid AND g.ts <= p.ts
    ASOF LEFT JOIN backward AS a ON a.rank = p.rank AND a.ts <= p.ts
    ASOF LEFT JOIN backward AS b ON b.rank = p.rank AND b.ts <= p.end_ts
    WHERE p.end_ts > p.ts
),
split AS (
    SELECT
        t.rank,
        t.what,
        t.dur - CASE WHEN t.what = 'nothing recorded' THEN t.backward_dur ELSE 0 END AS dur
    FROM told AS t
    UNION ALL
    SELECT t.rank, 'nothing, while the backward works', t.backward_dur
    FROM told AS t
    WHERE t.what = 'nothing recorded' AND t.backward_dur > 0
)
SELECT
    s.rank,
    s.what,
    SUM(s.dur) / ANY_VALUE(h.steps) AS step_dur,
    SUM(s.dur) / NULLIF(SUM(SUM(s.dur)) OVER (PARTITION BY s.rank), 0) AS time_frac
FROM split AS s
JOIN hosts AS h ON h.rank = s.rank
GROUP BY s.rank, s.what
ORDER BY s.rank, step_dur DESC, s.what
