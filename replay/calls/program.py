"""The name that documents carry."""

from importlib.metadata import PackageNotFoundError, version


def program() -> str:
    """Name and version; run from a folder that is not installed, it has no version."""
    try:
        return f"trace-replay {version('trace-replay')}"
    except PackageNotFoundError:
        return "trace-replay, not installed"
