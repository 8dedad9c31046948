"""Imports point down, heavy libraries have one door, and packages import nothing by themselves."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import ingest
import replay
import whatif

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("ingest", "replay", "whatif")
INITS = sorted(path for name in PACKAGES for path in (ROOT / name).rglob("__init__.py"))
VAGUE = {"utils", "util", "common", "helpers", "helper", "misc", "tools", "base_utils"}


def test_floors_and_doors_hold() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    if not linter.exists():
        pytest.skip("import-linter comes with the extra `dev`")
    done = subprocess.run(
        [linter, "pyproject.toml", "--no-cache", "--no-logo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_every_module_has_a_floor() -> None:
    """Only modules that stand in the list of layers are held to it."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    floors = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    listed = {name.strip() for floor in floors for name in floor.split("|")}
    there = {
        f"{package}.{path.stem}"
        for package in PACKAGES
        for path in (ROOT / package).iterdir()
        if (path.suffix == ".py" and not path.stem.startswith("__"))
        or (path / "__init__.py").exists()
    }
    assert there == listed


def test_the_packages_are_ours_and_not_other_distributions_of_the_name() -> None:
    for package in (ingest, replay, whatif):
        assert package.__file__ == str(ROOT / package.__name__ / "__init__.py")


@pytest.mark.parametrize("path", INITS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_package_is_a_docstring_and_imports_nothing(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree)
    assert len(tree.body) == 1


def test_every_folder_with_code_is_a_package() -> None:
    folders = {path.parent for name in PACKAGES for path in (ROOT / name).rglob("*.py")}
    assert {folder for folder in folders if not (folder / "__init__.py").exists()} == set()


def test_no_file_has_a_name_that_says_nothing() -> None:
    names = {path.stem for name in PACKAGES for path in (ROOT / name).rglob("*.py")}
    assert names & VAGUE == set()
