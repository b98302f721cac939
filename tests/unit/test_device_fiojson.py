# SPDX-License-Identifier: GPL-2.0-only
"""fio's JSON: the figures taken from it, and those left out with the reason."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isoblk.device.fiojson import FioResults, read_fio
from isoblk.errors import UserError
from tests.unit.fioresults import fio_document, fio_job


def read(path: Path, *jobs: dict[str, Any], **shared: str) -> FioResults:
    path = path / "fio.json"
    path.write_text(json.dumps(fio_document(*jobs, **shared)))
    return read_fio(path, "steady")


@pytest.mark.parametrize(
    ("options", "metric", "value"),
    [
        ({"rw": "randread", "bs": "4k", "iodepth": "32"}, "iops", 1000),
        ({"rw": "randread", "bs": "4k", "iodepth": "1"}, "lat_mean_ns", 50_000),
        ({"rw": "write", "bs": "128k", "iodepth": "8"}, "bps", 4_096_000),
        ({"rw": "read", "bs": "1m"}, "bps", 4_096_000),
        ({"rw": "randwrite", "bs": "64k", "iodepth": "4"}, "iops", 1000),
    ],
)
def test_a_job_gives_the_figure_that_its_load_is_about(
    tmp_path: Path, options: dict[str, str], metric: str, value: float
) -> None:
    (entry,) = read(tmp_path, fio_job("job", options, iops=1000, bps=4_096_000)).figures
    assert (entry.metric, entry.value, entry.rw) == (metric, value, options["rw"])
    assert entry.state == ("steady" if options["rw"] == "randwrite" else "fresh")


def test_the_files_options_hold_for_every_job_that_does_not_set_them(tmp_path: Path) -> None:
    job = fio_job("job", {"rw": "randread", "iodepth": "4"})
    (entry,) = read(tmp_path, job, bs="8k", iodepth="64").figures
    assert (entry.bs, entry.iodepth) == (8192, 4)


def test_clones_of_a_job_are_added_up(tmp_path: Path) -> None:
    options = {"rw": "randread", "bs": "4k", "iodepth": "2", "numjobs": "3"}
    clones = [fio_job("job", options, iops=iops) for iops in (100, 200, 300)]
    (entry,) = read(tmp_path, *clones).figures
    assert (entry.value, entry.numjobs, entry.iodepth) == (600, 3, 2)


def test_grouped_clones_count_once(tmp_path: Path) -> None:
    options = {"rw": "randread", "bs": "4k", "iodepth": "2", "numjobs": "3", "group_reporting": ""}
    (entry,) = read(tmp_path, fio_job("job", options, iops=600)).figures
    assert (entry.value, entry.numjobs) == (600, 3)


def test_a_synchronous_engine_has_one_request_in_flight(tmp_path: Path) -> None:
    options = {"rw": "randread", "bs": "4k", "iodepth": "32", "ioengine": "psync"}
    (entry,) = read(tmp_path, fio_job("job", options)).figures
    assert (entry.iodepth, entry.metric) == (1, "lat_mean_ns")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"rw": "randrw"}, "rw=randrw is not one of read, write"),
        ({"direct": "0"}, "add direct=1"),
        ({"rate_iops": "100"}, "rate_iops is set"),
        ({"bssplit": "4k/50:8k/50"}, "bssplit is set"),
        ({"bs": "4k,64k"}, "several sizes"),
        ({"bs": "100"}, "not a multiple of a sector"),
        ({"bs": "x"}, "'x' is not a size"),
        ({"iodepth": "many"}, "iodepth=many is not a number"),
        ({"iodepth": "9" * 5000}, "is not a number"),
        ({"iodepth": "100000"}, "exceed the lab's"),
        ({"rw": "randwrite", "error": "5"}, "ended with an error"),
        ({"rw": "write", "idle": "1"}, "made no request"),
    ],
)
def test_an_unusable_fio_job_is_left_out_with_the_reason(
    tmp_path: Path, options: dict[str, str], why: str
) -> None:
    given = {"rw": "randread"} | options
    error, iops = int(given.pop("error", "0")), 0 if given.pop("idle", "") else 1000
    found = read(tmp_path, fio_job("bad", given, iops=iops) | {"error": error})
    assert found.figures == ()
    (line,) = found.left_out
    assert why in line
    assert "fio.json: job 'bad'" in line


def test_jobs_that_ran_together_are_left_out(tmp_path: Path) -> None:
    jobs = [fio_job(name, {"rw": "randread"}) for name in ("a", "b")]
    found = read(tmp_path, *jobs)
    assert len(found.left_out) == 2
    assert "same time" in found.left_out[0]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "not JSON"),
        ("fio: this is text", "not JSON"),
        ("{", "not JSON"),
        ('{"jobs": ' + "[" * 100_000, "not JSON"),
        ("[]", "no list of jobs"),
        ('{"jobs": 1}', "no list of jobs"),
        ('{"jobs": [1]}', "no list of jobs"),
        ('{"client_stats": []}', "no list of jobs"),
    ],
)
def test_a_file_that_is_not_fios_json_is_one_error(tmp_path: Path, content: str, why: str) -> None:
    path = tmp_path / "fio.json"
    path.write_text(content)
    with pytest.raises(UserError, match=why):
        read_fio(path, "fresh")


def test_a_missing_file_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot read: No such file"):
        read_fio(tmp_path / "none.json", "fresh")


def test_warnings_ahead_of_the_json_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "fio.json"
    document = json.dumps(fio_document(fio_job("job", {"rw": "randread"})))
    path.write_text("fio: file not there, will be made\n" + document)
    assert len(read_fio(path, "fresh").figures) == 1


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    field=st.sampled_from(["read", "job options", "groupid", "jobname", "error"]),
    inner=st.sampled_from(["", "rw", "bs", "direct", "iops", "bw", "bw_bytes", "lat_ns"]),
    value=_JSON,
)
def test_a_damaged_job_is_left_out_or_an_error_of_one_line(
    tmp_path: Path, field: str, inner: str, value: object
) -> None:
    job = fio_job("job", {"rw": "randread", "bs": "4k"})
    if inner and isinstance(job[field], dict):
        job[field][inner] = value
    else:
        job[field] = value
    try:
        found = read(tmp_path, job)
    except UserError as error:
        assert "\n" not in str(error)
    else:
        assert len(found.figures) + len(found.left_out) == 1
        assert all(figure.value > 0 for figure in found.figures)
