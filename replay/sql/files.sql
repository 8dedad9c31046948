-- The trace files of a run.
SELECT path, rank, sha256, n_events FROM trace ORDER BY trace_id
