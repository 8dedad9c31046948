-- What is known of each collective.
SELECT
    c.coll_id AS coll_id,
    COALESCE(c.kind, 0) AS kind,
    COALESCE(c.msg_bytes, -1) AS size_bytes,
    COALESCE(c.group_size, c.n_expected, c.n_seen) AS group_size,
    COALESCE(c.n_expected, c.n_seen) AS n_expected,
    c.n_seen AS n_seen,
    c.match_method AS match_method,
    COALESCE(c.transfer_dur, -1) AS transfer_ns,
    COALESCE(c.transfer_low_dur, c.transfer_dur, -1) AS transfer_low_ns,
    COALESCE(c.transfer_high_dur, c.transfer_dur, -1) AS transfer_high_ns,
    COALESCE(c.on_host, FALSE) AS on_host,
    COALESCE(c.dtype, '') AS dtype,
    c.pg_key::VARCHAR AS group_key
FROM store.collective AS c
ORDER BY c.coll_id;
