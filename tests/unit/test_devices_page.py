# SPDX-License-Identifier: GPL-2.0-only
"""The page of devices names each preset, and the page of presets has the figures of today."""

from types import ModuleType
from typing import Any

import pytest

from isoblk.device.text import figure
from isoblk.study.presets import load_preset, preset_names
from tests.unit.scripts import ROOT, load_script

DEVICES = ROOT / "docs" / "reference" / "devices.md"


@pytest.fixture(scope="module")
def devices() -> ModuleType:
    return load_script("devices")


def record(**changes: Any) -> dict[str, Any]:
    base = {
        "preset": "one",
        "what": "random read 4k",
        "state": "steady",
        "fitted": True,
        "metric": "iops",
        "source": "the sheet †",
        "expected": 1000.0,
        "model": 1010.0,
        "error": 0.01,
        "allowed": [-0.05, 0.05],
        "ok": True,
    }
    return base | changes


def test_the_page_has_each_figure_of_each_preset(devices: ModuleType) -> None:
    rows, named = (
        [line for line in page.read_text().splitlines() if line.startswith("|")]
        for page in (devices.PAGE, DEVICES)
    )
    for name in preset_names():
        preset = load_preset(name)
        assert any(line.startswith(f"| `{name}`") or f" `{name}` |" in line for line in named), name
        for one in preset.expect:
            text = f" {figure(one.value, one.metric)}"
            assert any(one.what in line and text in line for line in rows), (name, one.what)


def test_a_presets_name_stands_beside_its_first_figure_of_each_table(devices: ModuleType) -> None:
    told = record(
        what="write", state="fresh", fitted=False, source="sheet", error=-0.2, model=800
    ) | {"ok": False, "allowed": [-0.13, 0.15]}
    records = [record(), told, record(what="again")]
    assert devices.table(records, devices.FITTED) == devices.FITTED + (
        "| `one` | random read 4k (steady) | 1,000 IOPS † | 1,010 IOPS | +1.0 % |\n"
        "| | again (steady) | 1,000 IOPS † | 1,010 IOPS | +1.0 % |\n"
    )
    assert devices.table(records, devices.UNFITTED) == devices.UNFITTED + (
        "| `one` | write | 1,000 IOPS | 800 IOPS | **-20.0 %** | -13 to +15 % |\n"
    )


def test_only_the_table_is_replaced(devices: ModuleType) -> None:
    page = f"before\n\n{devices.FITTED}| old |\n| old |\n\nafter | it\n"
    new = devices.table([record()], devices.FITTED)
    assert devices.replaced(page, new, devices.FITTED) == f"before\n\n{new}\nafter | it\n"
    with pytest.raises(SystemExit, match="has no table"):
        devices.replaced(page, new, devices.UNFITTED)
