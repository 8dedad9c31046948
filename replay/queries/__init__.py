"""Named queries: one `.sql` file each, whose comment header says what it shows and asks for."""
