"""What to call host work."""

STEP_ROW = "ProfilerStep#"
OUTSIDE = "host work outside of operators"


def task_called(name: str | None) -> str | None:
    """A task's name; host work that no operator covers bears the name of its step."""
    return OUTSIDE if name is not None and name.startswith(STEP_ROW) else name
