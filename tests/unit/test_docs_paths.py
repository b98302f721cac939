# SPDX-License-Identifier: GPL-2.0-only
"""What documents, studies, help and messages name is there: files, and headings of documents."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DIRECTORIES = (
    "benchmarks",
    "docs",
    "java",
    "kernel",
    "packaging",
    "scripts",
    "src",
    "studies",
    "tests",
)
FILES = [
    *ROOT.glob("*.md"),
    *(path for name in DIRECTORIES for path in sorted((ROOT / name).rglob("*")) if path.is_file()),
]
DOCUMENTS = [path for path in FILES if path.suffix == ".md"]
# Of the sources, what users read: studies, presets, recipes, and texts in the Python code.
SOURCES = [
    path
    for path in FILES
    if path.suffix in (".toml", ".py", ".j2")
    and path.relative_to(ROOT).parts[0] in ("src", "studies")
]

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)
CODE = re.compile(r"^(?: {4}|\t)[^\n]*$|^```.*?^```", re.MULTILINE | re.DOTALL)
# A path below one of the repository's directories, without wild cards or names to be filled in.
TOP = "|".join(DIRECTORIES)
NAMED = re.compile(rf"(?<![\w/.~$-])((?:{TOP})/[\w./-]*[\w/])(?![\w*<{{$-])")
STUDY = re.compile(r"`([\w-]+\.toml)`")
# A kernel tree and sysfs have such directories too; a name that stands for any.
ELSEWHERE = re.compile(r"scripts/Makefile\.build|kernel/config/(target|nvmet)/|.*\bNAME\b")


def _anchors(document: Path) -> set[str]:
    """As the usual hosts make them of headings."""
    text = CODE.sub("", document.read_text())
    plain = (
        re.sub(r"\[([^\]]*)\]\([^)]*\)|`", r"\1", one).lower() for one in HEADING.findall(text)
    )
    return {re.sub(r"[^\w\- ]", "", one).strip().replace(" ", "-") for one in plain}


def _broken_links(document: Path) -> Iterator[str]:
    for target in LINK.findall(CODE.sub("", document.read_text())):
        if "://" in target or target.startswith("mailto:"):
            continue
        name, _, anchor = target.partition("#")
        path = (document.parent / name).resolve() if name else document
        if not path.exists() or (path.suffix == ".md" and anchor and anchor not in _anchors(path)):
            yield target


def _missing(text: str) -> Iterator[str]:
    for name in NAMED.findall(text):
        if not ELSEWHERE.match(name) and not (ROOT / name.rstrip(".")).exists():
            yield name


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_of_documents_lead_somewhere(document: Path) -> None:
    assert list(_broken_links(document)) == []


@pytest.mark.parametrize(
    "path", [*DOCUMENTS, *SOURCES], ids=lambda path: str(path.relative_to(ROOT))
)
def test_files_that_are_named_are_there(path: Path) -> None:
    assert list(_missing(path.read_text())) == []


def test_studies_that_documents_name_are_there() -> None:
    shipped = {path.name for path in (ROOT / "studies").rglob("*.toml")}
    table = (ROOT / "docs/reference/studies.md").read_text().partition("## Shipped")[2]
    named = set(STUDY.findall(table))
    assert named - shipped == set()
    assert {path.name for path in (ROOT / "studies").glob("*.toml")} - named == set()
