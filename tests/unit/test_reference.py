# SPDX-License-Identifier: GPL-2.0-only
"""The generated pages of docs/reference are those of today's records, and name all of them."""

from types import ModuleType

import pytest

from isoblk.metrics.registry import METRICS
from isoblk.run.load import LOAD_OPTIONS
from isoblk.schedulers.registry import SCHEDULERS
from isoblk.study.schema import study_schema
from tests.unit.scripts import ROOT, load_script


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    return load_script("reference")


@pytest.mark.parametrize("page", ["options.md", "metrics.md", "schedulers.md"])
def test_a_page_is_that_of_todays_records(reference: ModuleType, page: str) -> None:
    written = (ROOT / "docs/reference" / page).read_text()
    assert written == reference.pages()[page].rstrip() + "\n", "run: make reference"


def test_every_field_of_every_table_is_there(reference: ModuleType) -> None:
    text = reference.pages()["options.md"]
    # Of a preset's rows and of disks there are pages of their own.
    for struct, definition in study_schema()["$defs"].items():
        for name in definition["properties"]:
            assert f"| `{name}` |" in text, (struct, name)


def test_every_record_is_there(reference: ModuleType) -> None:
    pages = reference.pages()
    assert [name for name in LOAD_OPTIONS if f"| `{name}` |" not in pages["options.md"]] == []
    assert [name for name in METRICS if f"| `{name}` |" not in pages["metrics.md"]] == []
    assert [name for name in SCHEDULERS if f"| `{name}` |" not in pages["schedulers.md"]] == []
