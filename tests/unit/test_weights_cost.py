# SPDX-License-Identifier: GPL-2.0-only
"""A disk gets the cost model of its own drive model, or none."""

import csv
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from isoblk.errors import UserError
from isoblk.machine import iocost_hwdb
from isoblk.schedulers.isoblk import AUTO, OWN_MODEL
from isoblk.weights import cost

LINE = "rbps=6 rseqiops=5 rrandiops=4 wbps=3 wseqiops=2 wrandiops=1"
_ROWS = [line for line in cost.DRIVES.read_text().splitlines() if not line.startswith("#")]
DRIVES = list(csv.DictReader(_ROWS))


@pytest.fixture(autouse=True)
def hwdb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where udev's database of io.cost is."""
    monkeypatch.setattr(iocost_hwdb, "DIRECTORIES", (tmp_path,))
    return tmp_path / "90-iocost.hwdb"


@pytest.mark.parametrize("drive", DRIVES, ids=lambda drive: drive["drive"])
def test_each_drive_of_the_table_has_its_figures(drive: dict[str, str]) -> None:
    wanted = " ".join(f"{name}={drive[name]}" for name in OWN_MODEL)
    assert cost.find(drive["drive"]).text == wanted
    assert cost.find(drive["drive"].replace("_", " ")).text == wanted
    assert cost.parse(wanted).text == wanted


def test_the_table_names_its_source_and_licence() -> None:
    head = cost.DRIVES.read_text().splitlines()
    assert head[0] == "# SPDX-License-Identifier: Apache-2.0"
    assert "https://github.com/iocost-benchmark/iocost-benchmarks" in "".join(head[:8])


@pytest.mark.parametrize(
    "name",
    [
        *("Samsung SSD 980", "Samsung SSD 980 PRO", "Samsung SSD 980 PRO 1TB X"),
        *("Samsung SSD 970 EVO 1TB", "samsung ssd 980 pro 1tb", "", " ", "drive", "_"),
        # The kernel shows this name for EVO, PRO and QVO.
        *("Samsung SSD 860", "Samsung SSD 870"),
    ],
)
def test_a_name_that_is_not_the_drives_whole_name_gets_no_model(name: str) -> None:
    assert cost.find(name).text == AUTO


def test_udevs_database_goes_before_the_table(hwdb: Path) -> None:
    hwdb.write_text(f"block:*:name:Samsung SSD 980 PRO 1TB:fwver:*:\n  IOCOST_MODEL_NAIVE={LINE}\n")
    found = cost.find("Samsung SSD 980 PRO 1TB")
    assert found.text == LINE
    assert found.source.endswith("from udev's database of io.cost")


@pytest.mark.parametrize(
    "text", [b"\xff", b"", b"block:*:name:CT1000P3PSSD8:\n IOCOST_MODEL_X=1\n"]
)
def test_a_damaged_database_of_udevs_takes_no_disk_its_model(hwdb: Path, text: bytes) -> None:
    hwdb.write_bytes(text)
    assert cost.find("CT1000P3PSSD8").source.endswith("from isoblk's table of drives")


@given(st.text())
@example(LINE)
@example("rbps=\u0661 rseqiops=5 rrandiops=4 wbps=3 wseqiops=2 wrandiops=1")
def test_no_cost_model_has_a_character_that_udev_would_obey(text: str) -> None:
    try:
        assert set(cost.parse(text).text) <= set("abcdefghijklmnopqrstuvwxyz0123456789= ")
    except UserError as error:
        assert len(str(error).splitlines()) == 1
