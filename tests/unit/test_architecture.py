# SPDX-License-Identifier: GPL-2.0-only
"""The packages stand in an order, and import only downward; docs/concepts/architecture.md."""

import re
from pathlib import Path
from types import ModuleType

import pytest

from tests.unit.scripts import ROOT, load_script


@pytest.fixture(scope="module")
def architecture() -> ModuleType:
    return load_script("architecture")


def test_every_package_has_its_place(architecture: ModuleType) -> None:
    packages = {path.parent.name for path in (ROOT / "src/isoblk").glob("*/__init__.py")}
    assert {name for row in architecture.ROWS for name in row} == packages


def test_no_import_between_packages_runs_upward(architecture: ModuleType) -> None:
    assert architecture.upward(architecture.arrows()) == []


def test_an_import_that_runs_upward_is_found(architecture: ModuleType, tmp_path: Path) -> None:
    for name, text in (
        ("run/low.py", "from isoblk.study import model\n"),
        ("study/model.py", "import isoblk.run.spec\nfrom isoblk import errors\n"),
        ("caches/one.py", "from isoblk.schedulers.base import X\n"),
        ("errors.py", "from isoblk.run import limits\n"),
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (tmp_path / "schedulers").mkdir()
    assert architecture.upward(architecture.arrows(tmp_path)) == [
        "caches.one: caches imports schedulers",
        "errors: isoblk imports run",
        "run.low: run imports study",
    ]


def test_the_picture_is_of_todays_imports(architecture: ModuleType) -> None:
    assert architecture.PICTURE.read_text() == architecture.draw(), "run: make architecture"


def test_the_page_speaks_of_every_package(architecture: ModuleType) -> None:
    text = (ROOT / "docs/concepts/architecture.md").read_text()
    named = set(re.findall(r"`(\w+)`", text.split("| folder of")[0]))
    assert {name for row in architecture.ROWS for name in row} <= named
