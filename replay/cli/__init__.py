"""The command line: `app.py` lists the commands, each `cmd_*.py` parses, makes one call, prints.

Nothing but the standard library and typer is imported before a command runs.
"""
