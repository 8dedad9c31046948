"""Where stores are kept for the next call, under which name, and who may write them."""

import fcntl
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


def default_cache_dir() -> Path:
    """`$XDG_CACHE_HOME/trace-replay`, else `~/.cache/trace-replay`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "trace-replay"


def key_of(fingerprints: Sequence[tuple[Path, str]], settings: str) -> str:
    """Name of the store of some files: by their names and contents, and how they are read."""
    digest = hashlib.blake2b(settings.encode(), digest_size=12)
    for path, content in fingerprints:
        digest.update(f"\n{path.name} {content}".encode())
    return digest.hexdigest()


def usable(folder: Path) -> bool:
    """The folder is there, or can be made, and takes files."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


@contextmanager
def locked(target: Path) -> Iterator[None]:
    """One writer at a time per store; the system frees the lock of a process that died."""
    with target.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
