-- Operators whose part of the step is known.
SELECT o.id AS slice_id, o.phase AS phase FROM store.cpu_op AS o WHERE o.phase IS NOT NULL;
