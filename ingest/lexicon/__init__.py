"""Texts of a run as numbers: names, shapes of events and arguments, values."""
