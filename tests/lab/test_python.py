# SPDX-License-Identifier: GPL-2.0-only
"""The lab as a library, in guests: what its pages show works as typed."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from isoblk.lab import Results
from tests.lab.guest import ROOT

GUIDES = ROOT / "docs/guides"


def test_the_example_of_the_page_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```python\n(.*?)```", (GUIDES / "python.md").read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(example, names)
    results = names["results"]
    assert isinstance(results, Results)
    assert results.runs["status"].unique().to_list() == ["valid"]


def test_the_notebook_runs_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cells = json.loads((GUIDES / "weights.ipynb").read_text())["cells"]
    names: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    shares = names["results"].tenants.filter(scheduler="isoblk")["share"].to_list()
    assert shares == pytest.approx([0.75, 0.25], abs=0.01)
    assert names["over_time"]["rate"].sum() > 0
