-- name python_times
-- description Python frames in the steps of the host by the time of their own (needs with_stack), and
--     which of them wait: for a lock, a queue, a process or the clock.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
-- param top BIGINT NULL Rows at most; all where NULL.
WITH
hosts AS (
    SELECT h.*
    FROM host_span($ranks, $first_step, $last_step) AS h
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
LIMIT $top
