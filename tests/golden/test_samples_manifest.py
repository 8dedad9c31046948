"""The manifest of the sample traces tells the truth about every file."""

import gzip
import hashlib
from pathlib import Path
from typing import Any

import pytest
import yaml

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
MANIFEST: dict[str, Any] = yaml.safe_load((SAMPLES / "manifest.yaml").read_text())
FILES: dict[str, dict[str, Any]] = MANIFEST["files"]
TOTAL_LIMIT_BYTES = 2_000_000


@pytest.fixture(autouse=True)
def _generators(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SAMPLES))


def test_every_file_has_an_entry_and_every_entry_a_file() -> None:
    from refresh_manifest import trace_files

    assert [path.relative_to(SAMPLES).as_posix() for path in trace_files()] == sorted(FILES)


def test_every_file_belongs_to_a_set_that_says_where_it_is_from() -> None:
    assert MANIFEST["licence"] == "Apache-2.0"
    assert {name.partition("/")[0] for name in FILES} == set(MANIFEST["sets"])
    for described in MANIFEST["sets"].values():
        assert described["origin"] in ("synthetic", "recorded", "hand-made")
        script = described["command"].split()[1]
        assert (SAMPLES.parent / script).is_file()


@pytest.mark.parametrize("name", FILES)
def test_digest_and_counts_are_those_of_the_file(name: str) -> None:
    from refresh_manifest import measured

    entry = {key: value for key, value in FILES[name].items() if key != "issues"}
    assert measured(SAMPLES / name) == entry


def test_all_samples_together_are_small() -> None:
    sizes = {name: (SAMPLES / name).stat().st_size for name in FILES}
    assert sum(sizes.values()) < TOTAL_LIMIT_BYTES
    assert sum(size for name, size in sizes.items() if name.startswith("ddp8")) < 1_000_000
    assert all(size < 300_000 for name, size in sizes.items() if name.startswith("gloo2"))


def test_tiny_traces_have_at_most_sixty_events() -> None:
    assert all(entry["events"] <= 60 for name, entry in FILES.items() if name.startswith("tiny/"))


def test_hand_made_files_are_what_their_generator_makes() -> None:
    from make_tiny import files

    made = {f"tiny/{name}": data for name, data in files().items()}
    committed = {name: (SAMPLES / name).read_bytes() for name in FILES if name.startswith("tiny/")}
    assert _unpacked(made) == _unpacked(committed)


def test_synthetic_files_are_what_their_generator_makes(tmp_path: Path) -> None:
    from make_ddp8 import COMMITTED, write_traces

    write_traces(COMMITTED, tmp_path)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    committed = {path.name: path.read_bytes() for path in (SAMPLES / "ddp8_h100").iterdir()}
    assert _unpacked(made) == _unpacked(committed)


def _unpacked(files: dict[str, bytes]) -> dict[str, str]:
    """Digests of what the files hold: zlib's own versions may compress to other bytes."""
    return {
        name: hashlib.sha256(
            gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
        ).hexdigest()
        for name, data in files.items()
    }


def test_generator_gives_the_same_bytes_twice(tmp_path: Path) -> None:
    from make_ddp8 import COMMITTED, write_traces

    for folder in ("once", "twice"):
        write_traces(COMMITTED, tmp_path / folder)
    for path in (tmp_path / "once").iterdir():
        assert path.read_bytes() == (tmp_path / "twice" / path.name).read_bytes()


def test_no_file_names_a_machine() -> None:
    for name in FILES:
        if name.startswith("tiny/"):
            continue
        text = gzip.decompress((SAMPLES / name).read_bytes())
        assert b'"host_name"' not in text
        assert not any(place in text for place in (b"/home/", b"/root/", b"/tmp/", b"/usr/"))
