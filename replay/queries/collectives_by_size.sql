-- name collectives_by_size
-- description Collectives by kind, communicator and size: transfer without waiting, bandwidth, skew.
-- param kind VARCHAR NULL Only this kind: all_reduce, all_gather, reduce_scatter, ...
WITH communicator AS (
    SELECT
        g.pg_key,
        ANY_VALUE(g.pg_desc) AS pg_desc
    FROM process_group AS g
    GROUP BY g.pg_key
)
SELECT
    c.kind,
    g.pg_desc AS communicator,
    c.group_size,
    c.dtype,
    c.msg_bytes / 1e6 AS size_mb,
    c.operations,
    c.med_transfer_dur / 1e3 AS transfer_us,
    c.med_busbw AS busbw_gbps,
    c.skew_dur / c.operations / 1e3 AS mean_skew_us
FROM collective_summary AS c
LEFT JOIN communicator AS g ON g.pg_key = c.pg_key
WHERE $kind IS NULL OR c.kind = $kind
ORDER BY c.kind, c.msg_bytes DESC NULLS LAST, c.operations DESC, c.pg_key
