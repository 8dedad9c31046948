-- Calls of the runtime and driver.
SELECT r.id AS slice_id, COALESCE(r.kind, 0) AS kind FROM store.runtime AS r;
