# SPDX-License-Identifier: GPL-2.0-only
"""Results of other users that no run of isoblk can have left: one line, no crash."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from isoblk.analysis.metrics import analyse
from isoblk.errors import UserError
from isoblk.result.store import read_results

from . import resultgen
from .resultgen import Made, tenant

Document = Any


def _tenants(run: Document) -> Document:
    return run["spec"]["tenants"]


IN_RUN: dict[str, Callable[[Document], object]] = {
    "no tenants": lambda run: _tenants(run).clear(),
    "another tenant": lambda run: _tenants(run)[0].update(name="c"),
    "results of others": lambda run: run["tenants"].pop(),
    "one tenant twice": lambda run: _tenants(run).append(_tenants(run)[0]),
    "a weight of 0": lambda run: _tenants(run)[0].update(weight=0),
    "no window": lambda run: run["spec"].update(window_ms=0),
    "windows of the past": lambda run: run["spec"].update(window_ms=-(1 << 63)),
    "a run of ages": lambda run: run["spec"].update(runtime_ns=10**30),
    "windows without number": lambda run: run["spec"].update(runtime_ns=86400 * 10**9, window_ms=1),
    "a negative count": lambda run: run["tenants"][0]["ops"]["read"].update(meas_ios=-1),
    "a count of ages": lambda run: run["tenants"][0]["ops"]["read"].update(lat_min_ns=1 << 70),
    "a negative time": lambda run: run["tenants"][0].update(measured_ns=-1),
}
IN_STUDY: dict[str, Callable[[Document], object]] = {
    "a reference that is not there": lambda run: run.update(reference=99),
    "one of the past": lambda run: run.update(reference=-5),
    "one without end": lambda run: run.update(reference=1 << 63),
    "runs alone that are not there": lambda run: run.update(alone=[1 << 62, 1]),
    "a run alone too many": lambda run: run.update(alone=[0, 0, 0]),
    "a calibration that is not there": lambda run: run.update(calibrate={"rbps": 99}),
    "no tenants": lambda run: run["spec"].update(tenants=[]),
}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    tenants = [tenant("a", 100), tenant("b", 200)]
    made = Made("bfq", {"a": 100, "b": 200}, tenants=tenants)
    return resultgen.write(tmp_path, [made, made])


def _refused(results: Path, path: Path) -> None:
    with pytest.raises(UserError, match=r"damaged: (has|depends|unknown)") as caught:
        analyse(read_results(results))
    assert caught.value.where == str(path)


@pytest.mark.parametrize("what", IN_RUN)
def test_a_run_that_no_run_is(results: Path, what: str) -> None:
    path = sorted(results.glob("runs/*/run.json"))[0]
    run = json.loads(path.read_text())
    IN_RUN[what](run)
    path.write_text(json.dumps(run))
    _refused(results, path)


@pytest.mark.parametrize("what", IN_STUDY)
def test_a_study_that_leans_on_nothing(results: Path, what: str) -> None:
    path = results / "study.json"
    study = json.loads(path.read_text())
    IN_STUDY[what](study["runs"][0]["planned"])
    path.write_text(json.dumps(study))
    with pytest.raises(UserError, match=r"damaged: (has|depends|unknown)") as caught:
        analyse(read_results(results))
    assert caught.value.where.endswith(".json")


def test_the_results_of_these_tests_are_right(results: Path) -> None:
    assert len(analyse(read_results(results)).points) == 1
