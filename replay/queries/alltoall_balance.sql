-- name alltoall_balance
-- description How evenly all-to-alls are shared out: what each rank sends in one, by the elements that
--     its call recorded, against the mean of the ranks; the most uneven first. The slowest sender
--     holds up all.
-- param ranks VARCHAR NULL Only these ranks, as 0,1,5; all where NULL.
-- param first_step BIGINT NULL From this step on; from the first where NULL.
-- param last_step BIGINT NULL Up to this step; to the last where NULL.
-- param top BIGINT 20 Rows at most.
WITH
span AS (
    SELECT s.*
    FROM step_span($first_step, $last_step) AS s
),
sent AS (
    SELECT
        m.coll_id,
        m.rank,
        m.ts,
        TRY_CAST(COALESCE(a.args, o.args)::JSON ->> '$."In msg nelems"' AS BIGINT) AS sent_elements,
        TRY_CAST(COALESCE(a.args, o.args)::JSON ->> '$."Out msg nelems"' AS BIGINT) AS got_elements,
        TRY_CAST(COALESCE(a.args, o.args)::JSON ->> '$."In split size"' AS BIGINT[]) AS splits
    FROM collective_rank AS m
    JOIN collective AS c ON c.coll_id = m.coll_id
    JOIN span AS s ON m.ts < s.end_ts AND m.ts + m.dur > s.ts
    LEFT JOIN slice_args AS a ON a.id = m.kernel_id AND CONTAINS(a.args, 'In msg nelems')
    LEFT JOIN slice_args AS o ON o.id = m.op_id AND CONTAINS(o.args, 'In msg nelems')
    WHERE c.kind = 'all_to_all'
        AND is_chosen($ranks, m.rank)
)
SELECT
    c.coll_id,
    c.pg_key,
    c.dtype,
    c.group_size AS members,
    COUNT(*) AS seen,
    MIN(t.ts) AS ts,
    ARG_MAX(t.rank, t.sent_elements) AS most_sent_rank,
    MAX(t.sent_elements) AS most_sent_elements,
    AVG(t.sent_elements) AS mean_sent_elements,
    MAX(t.sent_elements) / NULLIF(AVG(t.sent_elements), 0) AS sent_over_mean,
    MAX(t.got_elements) / NULLIF(AVG(t.got_elements), 0) AS got_over_mean,
    MAX(LIST_MAX(t.splits)) AS largest_split,
    c.transfer_dur AS transfer_ns
FROM sent AS t
JOIN collective AS c ON c.coll_id = t.coll_id
WHERE t.sent_elements IS NOT NULL
GROUP BY c.coll_id, c.pg_key, c.dtype, c.group_size, c.transfer_dur
ORDER BY GREATEST(sent_over_mean, got_over_mean) DESC, c.coll_id
LIMIT $top
