"""Pages shown in the browser of this machine."""

import os
import sys


def open_page(address: str) -> bool:
    """In a browser with windows; one inside the terminal would take it over.

    Returns:
        whether one was found.
    """
    import webbrowser

    has_windows = sys.platform in ("darwin", "win32") or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
    return has_windows and webbrowser.open(address)
