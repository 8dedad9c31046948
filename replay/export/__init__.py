"""A run for other programs: timelines, tables, execution traces."""
