"""The repository's own manners: documented modules, files of a readable size, pins without addresses."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LINES_MAX = 600

# In pieces, so that this file may be among those that are checked.
REGISTRY_HOSTS = [
    ".".join(pieces)
    for pieces in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("maven", "org"),
        ("maven", "apache", "org"),
        ("npmjs", "org"),
        ("anaconda", "org"),
        ("crates", "io"),
    )
]
UNFINISHED = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME")) + r")\b")
PIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9.+!]+")


def tracked() -> list[Path]:
    """Every file that is in the repository, or would be with the next commit."""
    listing = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode != 0:
        pytest.skip("not in a git checkout")
    return [path for name in sorted(set(listing.stdout.split("\0"))) if name and (path := ROOT / name).is_file()]


def text_of(path: Path) -> str:
    """A text file's text; nothing of a binary one."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def test_every_module_has_a_docstring() -> None:
    modules = [path for path in tracked() if path.suffix == ".py"]
    bare = [path.relative_to(ROOT) for path in modules if not ast.get_docstring(ast.parse(text_of(path)))]
    assert not bare, f"without a docstring: {', '.join(map(str, bare))}"


def test_no_source_file_is_too_long() -> None:
    lengths = {path.relative_to(ROOT): len(text_of(path).splitlines()) for path in (ROOT / "src").rglob("*.py")}
    long = {path: lines for path, lines in lengths.items() if lines > LINES_MAX}
    assert not long, f"over {LINES_MAX} lines: {long}"


def test_no_file_names_a_registry_or_is_left_unfinished() -> None:
    found = []
    for path in tracked():
        text = text_of(path)
        found += [f"{path.relative_to(ROOT)}: {host}" for host in REGISTRY_HOSTS if host in text]
        found += [f"{path.relative_to(ROOT)}: {match[0]}" for match in UNFINISHED.finditer(text)]
    assert not found, "\n".join(found)


def test_the_code_map_names_files_that_exist() -> None:
    text = text_of(ROOT / "ARCHITECTURE.md").partition("## Where to change what")[2].partition("\n## ")[0]
    missing: list[str] = []
    for line in text.splitlines():
        cells = [re.findall(r"`([a-z_/]+(?:\.py|\.sql)?)`", cell) for cell in line.split("|")[1:-1]]
        if len(cells) != 3 or not cells[1]:
            continue
        source, tests = ROOT / "src" / "everview", ROOT / "tests"
        folder = (source / cells[1][0]).parent  # those without a folder are beside the one before them
        for name in cells[1]:
            path = source / name if "/" in name or name == "cli.py" else folder / name
            folder, missing = path.parent, missing + [name] * (name.endswith(".py") and not path.exists())
        missing += [name for name in cells[2] if not (tests / name).exists()]
    assert text and not missing, f"the code map names what is not there: {missing}"


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/execution.md"])
def test_files_and_folders_that_pages_name_exist(page: str) -> None:
    files = {f"/{path.relative_to(ROOT)}" for path in tracked()}
    paths = files | {f"{parent}/" for path in files for parent in Path(path).parents}
    named = re.findall(r"`([\w/.]+(?:\.(?:py|sql|md|toml)|/))`", text_of(ROOT / page))
    missing = sorted({name for name in named if not any(path.endswith(f"/{name}") for path in paths)})
    assert named and not missing, f"{page} names what is not there: {', '.join(missing)}"


def requirement_files() -> list[Path]:
    return sorted(ROOT.glob("requirements*.txt"))


@pytest.mark.parametrize("path", requirement_files(), ids=lambda path: path.name)
def test_requirements_are_names_and_versions(path: Path) -> None:
    for line in path.read_text().splitlines():
        assert (
            line == ""
            or line.startswith("#")
            or re.fullmatch(r"-r requirements[a-z-]*\.txt", line)
            or PIN.fullmatch(line)
        )


def test_the_package_and_the_requirements_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["dependencies"] + [pin for extra in project["optional-dependencies"].values() for pin in extra]
    pinned = {line for path in requirement_files() for line in path.read_text().splitlines()}
    assert {re.sub(r"\[.*?\]", "", pin) for pin in wanted} <= pinned
