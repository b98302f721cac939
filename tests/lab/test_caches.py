# SPDX-License-Identifier: GPL-2.0-only
"""Caches in front of a study's disk: each is set up, is cold when it begins, keeps the
blocks it reads, and its figures agree."""

from pathlib import Path

import pytest

from isoblk.campaign.execute import Bench
from isoblk.run.record import CacheReport
from tests.lab import campaigns

# A disk of 1 ms, an SSD of 20 us; random reads of all blocks of 2 MiB, more or less.
STUDY = """
name = "caches"
[device]
driver = "vdisk"
size = "256m"
servers = 1
read_ns = "1ms"
write_ns = "1ms"
store = "memory"
[ssd]
driver = "vdisk"
size = "32m"
store = "memory"
[caching]
CACHING
[caches.bcache]
bucket = "16k"
[run]
runtime = "100s"
window = "10s"
[[tenant]]
name = "t"
rw = "RW"
size = "2m"
number_ios = 1000
[matrix]
MATRIX
"""


def _reports(
    tmp_path: Path, bench: Bench, matrix: str, rw: str = "randread", caching: str = ""
) -> dict[tuple[str, ...], CacheReport]:
    """The matrix's runs, which must be valid, by their points."""
    study = tmp_path / "caches.toml"
    text = STUDY.replace("MATRIX", matrix).replace("RW", rw).replace("CACHING", caching)
    study.write_text(text)
    runs = campaigns.finished(campaigns.run_file(study, bench, tmp_path / "results"))
    found = {}
    for run in runs:
        assert run.record.cache is not None
        point = [value for key, value in run.record.spec.point.items() if key != "scheduler"]
        found[tuple(point)] = run.record.cache
    return found


def test_a_block_that_was_read_comes_from_the_ssd_the_next_time(
    default_bench: Bench, tmp_path: Path
) -> None:
    matrix = 'cache = ["none", "bcache", "dm-cache"]\ncaching.passes = [1, 3]'
    found = _reports(tmp_path, default_bench, matrix)
    ratio = {point: report.figures["read_hit_ratio"] for point, report in found.items()}
    assert ratio["none", "1"] == ratio["none", "3"] == 0
    # 512 blocks: the first 1,000 reads miss each once, 86 % of them.
    assert ratio["bcache", "1"] == pytest.approx(1 - 0.86 * 512 / 1000, abs=0.03)
    assert ratio["bcache", "3"] > 0.97
    assert ratio["dm-cache", "3"] > 0.99
    for report in found.values():
        assert report.figures["top.read_bytes"] == 1000 * 4096


@pytest.mark.parametrize("placement", ["contiguous", "scattered"])
def test_writes_to_a_write_cache_need_not_go_to_the_disk(
    default_bench: Bench, tmp_path: Path, placement: str
) -> None:
    caching = f'placement = "{placement}"\nworking_set = "4m"'
    matrix = 'cache = ["none", "dm-writecache", "dm-cache", "bcache"]'
    found = _reports(tmp_path, default_bench, matrix, "randwrite", caching)
    written = {point[0]: int(r.figures["origin.write_bytes"]) for point, r in found.items()}
    # bcache writes through by default.
    assert written["none"] == 1000 * 4096
    assert abs(written["bcache"] - written["none"]) <= 4096
    assert written["dm-writecache"] < 100 * 4096
    assert found["dm-writecache",].figures["ssd.write_bytes"] >= 1000 * 4096


def test_a_cache_that_was_read_through_is_as_fast_as_the_ssd_alone(
    default_bench: Bench, tmp_path: Path
) -> None:
    matrix = 'cache = ["ssd", "setcache"]'
    for rw, metric in (("randread", "ssd.read_bytes"), ("randwrite", "ssd.write_bytes")):
        (tmp_path / rw).mkdir()
        found = _reports(tmp_path / rw, default_bench, matrix, rw, 'files = "read"')
        for report in found.values():
            assert report.figures["origin.read_bytes"] == 0
        extra = found["setcache",].figures[metric] - found["ssd",].figures[metric]
        after, before = found["setcache",].after, found["setcache",].before
        # Its records, one of 4 KiB for several blocks; a read needs none.
        assert extra == 4096 * (after["record_blocks"] - before["record_blocks"])
        assert (0 < extra < 100 * 4096) if rw == "randwrite" else extra == 0


def test_regions_that_were_written_by_way_of_the_cache_are_cached(
    default_bench: Bench, tmp_path: Path
) -> None:
    matrix = 'cache = ["dm-writecache"]\ncaching.files = ["origin", "cache"]'
    found = _reports(tmp_path, default_bench, matrix)
    ratio = {point[1]: report.figures["read_hit_ratio"] for point, report in found.items()}
    assert ratio == {"origin": 0, "cache": 1}
