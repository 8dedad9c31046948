"""`python -m replay`."""

from replay.cli.app import main_entry

main_entry()
