-- name python_times
-- description Python frames in the steps of the host by the time of their own (needs with_stack), and
--     which of them wait: for a lock, a queue, a process or the clock.
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
framed AS (
    SELECT
        s.rank,
        s.name,
        s.self_dur,
        s.dur
    FROM slice AS s
    JOIN hosts AS h ON h.rank = s.rank AND s.ts >= h.ts AND s.ts < h.end_ts
    WHERE s.cat = 'python_function'
),
whole AS (
    SELECT SUM(h.steps) AS rank_steps
    FROM hosts AS h
    WHERE h.rank IN (SELECT f.rank FROM framed AS f)
)
SELECT
    f.name AS frame,
    COUNT(*) AS calls,
    SUM(f.self_dur) / ANY_VALUE(w.rank_steps) AS step_self_dur,
    SUM(f.self_dur) / NULLIF(SUM(SUM(f.self_dur)) OVER (), 0) AS self_frac,
    MAX(f.dur) AS max_dur,
    REGEXP_MATCHES(
        f.name,
        '_thread\.(R?[Ll]ock|allocate_lock)|of ''_thread\.|threading\.py.*: (wait|acquire|join)'
        || '|<built-in method (sleep|select|poll|waitpid)|(queue|queues)\.py.*: get'
        || '|connection\.py.*: (poll|_?recv|wait)'
    ) AS is_wait
FROM framed AS f
CROSS JOIN whole AS w
GROUP BY f.name
ORDER BY step_self_dur DESC, f.name
