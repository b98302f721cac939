# SPDX-License-Identifier: GPL-2.0-only
"""isoblk's cost model in a study: its allowed values, the calibration, and the written line."""

import dataclasses
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from isoblk.analysis.compare import compare
from isoblk.analysis.metrics import analyse
from isoblk.campaign.execute import here
from isoblk.campaign.study import dry_run, run_study
from isoblk.errors import UserError
from isoblk.machine.journal import _set_back, read_queue
from isoblk.plan.plan import make_plan
from isoblk.result.store import read_results, read_run, write_study
from isoblk.result.study import StudyRecord
from isoblk.run.spec import HostDevice, PlannedRun, RunSpec
from isoblk.run.tier import HOST, Place
from isoblk.schedulers import io_cost
from isoblk.schedulers.isoblk import OWN_MODEL, cost_model, shown, to_write
from isoblk.study.check import check_study
from isoblk.study.expand import expand, resolve
from isoblk.study.load import parse_study
from isoblk.study.model import Expansion
from isoblk.study.onhost import on_host
from isoblk.study.text import Source
from tests.unit import resultgen
from tests.unit.fakes import IOS, FakeMachine, fake_bench
from tests.unit.resultgen import Made

HEAD = 'name = "s"\ndevice = "fast"\n'
TENANT = '[[tenant]]\nname = "t"\n'
UNDER = 'scheduler = "isoblk"\n'
LINE = "rbps=7 rseqiops=6 rrandiops=5 wbps=4 wseqiops=3 wrandiops=2"
FILE = "/sys/block/disk0/queue/iosched/cost_model"


def runs_of(text: str) -> Expansion:
    return expand(parse_study(text, "s.toml"))


def study(model: str = "", more: str = "") -> str:
    own = f"[iosched.isoblk]\ncost_model = {model}\n" if model else ""
    return f"{HEAD}{UNDER}{TENANT}{own}{more}"


def shares(expansion: Expansion) -> list[PlannedRun]:
    return [run for run in expansion.runs if run.spec.kind == "share"]


def share(text: str) -> PlannedRun:
    (run,) = shares(runs_of(text))
    return run


def measured(text: str) -> dict[str, RunSpec]:
    """The calibrations of a study's one run, by coefficient."""
    expansion = runs_of(text)
    (run,) = shares(expansion)
    return {name: expansion.runs[index].spec for name, index in run.calibrate.items()}


# -- allowed values --


def test_without_a_word_the_device_is_measured() -> None:
    run = share(study())
    assert run.spec.scheduler.iosched == {"cost_model": "calibrated"}
    assert list(run.calibrate) == list(OWN_MODEL)
    assert share(study('"calibrated"')).calibrate == run.calibrate


@pytest.mark.parametrize(
    ("written", "model"),
    [
        ('"auto"', "auto"),
        ('"bytes"', "bytes"),
        (f'"{LINE}"', LINE),
        ('"wrandiops=2 rbps=7  rrandiops=5 wbps=4 wseqiops=3 rseqiops=6"', LINE),
        (f'"{LINE.replace("7", "007")}"', LINE),
    ],
)
def test_a_model_that_is_given_needs_no_measurement(written: str, model: str) -> None:
    run = share(study(written))
    assert run.spec.scheduler.iosched == {"cost_model": model}
    assert run.calibrate == {}
    assert resolve(run.spec, None, None) == run.spec
    (setting,) = [one for one in make_plan(run.spec).settings if one.path == FILE]
    assert (setting.value, setting.form) == (model, "model")


ALLOWED = (
    'allowed: "calibrated", "auto", "bytes" or'
    ' "rbps=N rseqiops=N rrandiops=N wbps=N wseqiops=N wrandiops=N"'
)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ('"byte"', f"unknown value 'byte'; {ALLOWED}"),
        ('"user"', f"unknown value 'user'; {ALLOWED}"),
        ('""', f"unknown value ''; {ALLOWED}"),
        ("5", f"unknown value 5; {ALLOWED}"),
        (f'"user {LINE}"', f"'user' is not NAME=N; {ALLOWED}"),
        (
            f'"{LINE.replace("rbps", "rbsp")}"',
            "unknown coefficient 'rbsp'; did you mean 'rbps'?"
            " allowed: rbps, rrandiops, rseqiops, wbps, wrandiops, wseqiops",
        ),
        (f'"{LINE} rbps=7"', "rbps is there twice; keep one of them"),
        *(
            (
                f'"{LINE.replace("7", bad)}"',
                f"rbps={bad} is not a coefficient; allowed: whole numbers, 1..9007199254740991",
            )
            for bad in ("0", "-1", "1.5", "x", "", "\u0664", "9" * 16, "9" * 100)
        ),
        (
            '"rbps=7 rseqiops=6 rrandiops=5 wbps=4"',
            'wseqiops, wrandiops missing; give all six: "rbps=N rseqiops=N rrandiops=N wbps=N'
            ' wseqiops=N wrandiops=N"',
        ),
    ],
)
@pytest.mark.parametrize("scheduler", ["isoblk", "bfq"])
def test_a_model_that_is_wrong_is_told_in_a_line(written: str, told: str, scheduler: str) -> None:
    """Also where no run of the study has it."""
    with pytest.raises(UserError) as caught:
        parse_study(study(written).replace(UNDER, f'scheduler = "{scheduler}"\n'), "s.toml")
    assert str(caught.value) == f"s.toml:7: iosched.isoblk.cost_model: {told}"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("account", 'set cost_model = "bytes" to divide bytes, or remove it'),
        ("idle_loss", "set max_loss, or remove it"),
    ],
)
def test_the_error_for_a_former_tunable_names_its_replacement(name: str, told: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_study(study('"auto"', f"{name} = 1\n"), "s.toml")
    assert str(caught.value) == f"s.toml:8: iosched.isoblk.{name}: no such tunable; {told}"


@pytest.mark.parametrize("value", [0, 100, 1000])
def test_a_loss_is_per_mille(value: int) -> None:
    run = share(study('"auto"', f"max_loss = {value}\n"))
    assert run.spec.scheduler.iosched["max_loss"] == value
    with pytest.raises(UserError, match=r"max_loss: \d+ is out of range; allowed: 0..1000"):
        parse_study(study('"auto"', f"max_loss = {value + 1001}\n"), "s.toml")


# -- calibration --


def test_the_six_are_measured_as_isoblk_charges() -> None:
    specs = measured(study(more="[queue]\nnr_requests = 64\n"))
    assert list(specs) == list(OWN_MODEL) == list(io_cost.MODEL)
    for name, spec in specs.items():
        assert (spec.kind, spec.point) == ("calibrate", {"calibrate": f"isoblk {name}"})
        assert spec.scheduler.name == "none"
        assert spec.queue == {"nr_requests": 64, "nomerges": 1}
        writes, random = name.startswith("w"), "rand" in name
        (load,) = [one.workload for one in spec.tenants]
        assert load.rw == ("rand" if random else "") + ("write" if writes else "read")
        assert (load.bs, load.iodepth) == ((1 << 20, 32) if name.endswith("bps") else (4096, 64))
        # A drive's buffer takes the first writes.
        assert (spec.warmup_ns, spec.runtime_ns) == (10**9 if writes else 0, 10**9)
        assert spec.warmup_ns % (spec.window_ms * 1_000_000) == 0


def test_points_of_one_device_share_their_measurements() -> None:
    text = study(more='[run]\nrepeats = 2\n[matrix]\n"workload.iodepth" = [1, 2]\n')
    expansion = runs_of(text)
    assert Counter(run.spec.kind for run in expansion.runs)["calibrate"] == 6
    devices = runs_of(text + '"device.servers" = [4, 16]\n')
    assert Counter(run.spec.kind for run in devices.runs)["calibrate"] == 12


def test_with_io_cost_each_has_its_own_measurements() -> None:
    text = f'{HEAD}{TENANT}[matrix]\nscheduler = ["io.cost", "isoblk"]\n'
    expansion = runs_of(text)
    assert Counter(run.spec.kind for run in expansion.runs)["calibrate"] == 12
    ours, theirs = (
        next(run.calibrate for run in shares(expansion) if run.spec.scheduler.name == name)
        for name in ("isoblk", "io.cost")
    )
    assert not set(ours.values()) & set(theirs.values())
    for name in OWN_MODEL:
        mine, other = (expansion.runs[one[name]].spec for one in (ours, theirs))
        alike = msgspec.structs.replace(mine, point=other.point) == other
        assert alike == (name in ("rseqiops", "rrandiops"))


def test_the_model_is_an_axis_of_a_matrix() -> None:
    values = f'["calibrated", "auto", "bytes", "{LINE}"]'
    text = (
        f'{HEAD}{TENANT}[matrix]\nscheduler = ["bfq", "isoblk"]\n'
        f'"iosched.isoblk.cost_model" = {values}\n'
        '[[claim]]\ntext = "t"\nsource = "s"\nmetric = "total_bps"\nop = ">"\nvalue = 1\n'
        'where = { scheduler = "isoblk", "iosched.isoblk.cost_model" = "calibrated" }\n'
        'than = { "iosched.isoblk.cost_model" = "bytes" }\n'
    )
    runs = shares(runs_of(text))
    assert [run.spec.point.get("iosched.isoblk.cost_model", "") for run in runs] == [
        *("", "calibrated", "auto", "bytes", LINE),
    ]
    assert [len(run.calibrate) for run in runs] == [0, 6, 0, 0, 0]
    with pytest.raises(UserError, match=r"s\.toml:7: matrix\.iosched\.isoblk\.cost_model: byte"):
        runs_of(text.replace('["calibrated", "auto", "bytes"', '["byte"'))


def test_the_disk_that_has_the_scheduler_is_measured_without_its_cache() -> None:
    text = (
        'name = "s"\ndevice = { preset = "fast", size = "4g", store = "memory" }\n'
        f'ssd = {{ preset = "nand", size = "1g", store = "memory" }}\n'
        f'cache = "dm-cache"\n{UNDER}{TENANT}'
        '[caching]\nscheduler_on = "ON"\n'
    )
    for on, size in (("origin", 4 << 30), ("ssd", 1 << 30)):
        specs = measured(text.replace("ON", on)).values()
        assert {(spec.device.size, spec.caching) for spec in specs} == {(size, None)}
    both = text.replace("ON", "both")
    assert share(both).spec.scheduler.iosched == {"cost_model": "auto"}
    with pytest.raises(UserError, match=r"cannot be calibrated: the scheduler is on two that"):
        runs_of(both + '[iosched.isoblk]\ncost_model = "calibrated"\n')


def test_a_disk_with_zones_is_not_measured() -> None:
    text = study(more='rw = "randread"\n').replace(
        'device = "fast"', 'device = { driver = "null_blk", size = "1g", zone_size = "64m" }'
    )
    assert share(text).spec.scheduler.iosched == {"cost_model": "auto"}
    with pytest.raises(UserError, match=r"cannot be calibrated: it has zones"):
        runs_of(text + '[iosched.isoblk]\ncost_model = "calibrated"\n')


# -- the written line --


def _made(text: str, machine: FakeMachine, directory: Path) -> StudyRecord:
    names = ("isoblk_vdisk", "blkload", "isoblk_share", "isoblk-iosched")
    modules = {name: Path(f"/nonexistent/{name}.ko") for name in names}
    bench = dataclasses.replace(fake_bench(machine), modules=modules)
    with ThreadPoolExecutor(1) as executor:
        submit = here(executor, bench, directory)
        return run_study(runs_of(text), "", bench, directory, submit, lambda index, run: None)


def test_the_figures_are_written_as_a_line(tmp_path: Path) -> None:
    machine = FakeMachine(altered={FILE: f"user {_measured_line()}"})
    (run,) = [run for run in _made(study(), machine, tmp_path).runs if run.planned.calibrate]
    assert run.failure == ""
    assert run.planned.spec.scheduler.iosched["cost_model"] == _measured_line()
    (plan,) = [plan for plan in machine.plans if "iosched/cost_model" in plan]
    assert f"\necho '{_measured_line()}' > {FILE}\n" in plan
    made = read_run(tmp_path / "runs" / run.id)
    assert made is not None
    assert made.record.status == "valid"


def test_a_calibration_that_io_cost_shares_is_run_once(tmp_path: Path) -> None:
    machine = FakeMachine(altered={FILE: f"user {_measured_line()}"})
    record = _made(
        f'{HEAD}{TENANT}[matrix]\nscheduler = ["io.cost", "isoblk"]\n', machine, tmp_path
    )
    assert not any(run.failure for run in record.runs)
    calibrations = [run for run in record.runs if run.planned.spec.kind == "calibrate"]
    assert len({run.planned.spec.point["calibrate"] for run in calibrations}) == 12
    assert len({run.id for run in calibrations}) == 10


def _measured_line() -> str:
    """The rates of the fake machine: it reads only. The kernel accepts no 0."""
    reads = {"rbps": IOS * 4096, "rseqiops": IOS, "rrandiops": IOS}
    return " ".join(f"{name}={reads.get(name, 1)}" for name in OWN_MODEL)


def test_no_run_is_made_without_its_figures() -> None:
    run = share(study())
    with pytest.raises(ValueError, match="the calibration has not run"):
        make_plan(run.spec)
    for figures in (None, {"rbps": 1}):
        with pytest.raises(ValueError, match="needs the six coefficients"):
            resolve(run.spec, figures, None)
    line = resolve(run.spec, dict.fromkeys(OWN_MODEL, 0), None).scheduler.iosched["cost_model"]
    assert line == " ".join(f"{name}=1" for name in OWN_MODEL)


@pytest.mark.parametrize(
    ("bps", "iops"), [(7_000_000_000, 1_000_000), (560_000_000, 100_000), (800_000_000, 200_000)]
)
def test_the_cost_of_small_and_large_requests_is_the_measured_one(bps: int, iops: int) -> None:
    figures = dict.fromkeys(OWN_MODEL, 1) | {"rbps": bps, "rseqiops": iops}
    line = resolve(share(study()).spec, figures, None).scheduler.iosched["cost_model"]
    written = dict(pair.split("=") for pair in str(line).split())
    page = 4096 / int(written["rbps"])
    fixed = 1 / int(written["rseqiops"]) - page
    assert fixed + 256 * page == pytest.approx((1 << 20) / bps, rel=1e-6)


def test_a_device_on_which_size_does_not_count_has_a_line() -> None:
    figures = dict.fromkeys(OWN_MODEL, 1) | {"rbps": 800_000 << 20, "rseqiops": 800_000}
    line = resolve(share(study()).spec, figures, None).scheduler.iosched["cost_model"]
    assert f"rbps={800_000_000 << 20} rseqiops=800000" in str(line)


def test_a_dry_run_says_that_the_cost_model_is_measured_first() -> None:
    scripts = list(dry_run(runs_of(study())))
    assert "# The coefficients of isoblk's cost model are measured first." in scripts[-1]
    assert (
        f"echo 'rbps=1 rseqiops=1 rrandiops=1 wbps=1 wseqiops=1 wrandiops=1' > {FILE}"
        in (scripts[-1])
    )


def test_a_disk_that_changes_to_it_has_its_figures_too() -> None:
    text = (
        f'{HEAD}scheduler = "bfq"\n{TENANT}'
        '[[event]]\nat = 0.5\nscheduler = "isoblk"\n[[event]]\nat = 0.7\nscheduler = "isoblk"\n'
    )
    run = share(text)
    assert list(run.calibrate) == list(OWN_MODEL)
    with pytest.raises(ValueError, match="the calibration has not run"):
        make_plan(run.spec)
    whole = resolve(run.spec, dict(zip(OWN_MODEL, range(7, 1, -1), strict=True)), None)
    assert make_plan(whole).text.count(f"echo '{LINE}' > {FILE}") == 2
    (dry,) = [one for one in dry_run(runs_of(text)) if "measured first" in one]
    assert "isoblk's cost model" in dry


def test_a_value_read_from_the_tunable_can_be_written_to_it(tmp_path: Path) -> None:
    assert [to_write(text) for text in ("bytes", f"auto {LINE}", f"user {LINE}")] == [
        *("bytes", "auto", LINE),
    ]
    assert cost_model(to_write(f"user {LINE}")) == LINE
    assert shown(f"auto {LINE}\n")[1] == dict(zip(OWN_MODEL, range(7, 1, -1), strict=True))
    file = tmp_path / "iosched/cost_model"
    file.parent.mkdir()
    (tmp_path / "scheduler").write_text("none [isoblk]\n")
    file.write_text(f"user {LINE}\n")
    before = read_queue(tmp_path).values
    file.write_text("auto rbps=1\n")
    assert _set_back(tmp_path, before) == []
    assert file.read_text() == LINE


# -- a disk that is in use, and a real one --

RUNNING = HEAD + TENANT + 'workload = "running"\ncgroup = "/a.slice"\n[matrix]\nscheduler = [{}]\n'
DISK = HostDevice(name="sdb", what="FAST SSD", size=1 << 30)


def on_disk(text: str) -> list[RunSpec]:
    source = Source.of("s.toml", text)
    adapted, _ = on_host(parse_study(text, "s.toml"), source, DISK, "v2", {"none", "isoblk"})
    check_study(adapted, source)
    return [planned.spec for planned in expand(adapted).runs]


def test_a_disk_in_use_is_not_measured() -> None:
    text = RUNNING.format('"isoblk"')
    assert [spec.kind for spec in on_disk(text)] == ["reference", "share"]
    spec = on_disk(text)[-1]
    assert spec.scheduler.iosched == {"cost_model": "auto"}
    tier = dataclasses.replace(HOST, place=Place("sdb", ".", "/sys/fs/cgroup", "isoblk-sdb"))
    plan = make_plan(spec, tier).text
    assert "\necho auto > /sys/block/sdb/queue/iosched/cost_model\n" in plan
    assert subprocess.run(["sh", "-n"], input=plan, text=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ('[iosched.isoblk]\ncost_model = "calibrated"\n', "s.toml:10: iosched.isoblk.cost_model: "),
        (
            '"iosched.isoblk.cost_model" = ["auto", "calibrated"]\n',
            "s.toml:9: matrix.iosched.isoblk.cost_model: calibrated: ",
        ),
    ],
)
def test_to_measure_a_disk_in_use_is_refused(more: str, place: str) -> None:
    with pytest.raises(UserError) as caught:
        on_disk(RUNNING.format('"isoblk"') + more)
    assert str(caught.value) == (
        f"{place}the disk cannot be calibrated: a tenant that is running uses it;"
        ' set "auto", "bytes" or the six coefficients'
    )


def test_a_real_disk_is_measured_by_fio() -> None:
    specs = [spec for spec in on_disk(study()) if spec.kind == "calibrate"]
    assert len(specs) == 6
    assert {one.workload.program for spec in specs for one in spec.tenants} == {"fio"}


def test_settings_for_an_absent_scheduler_are_removed_with_it() -> None:
    text = (
        f'{HEAD}{TENANT}latency_target = "1ms"\n[matrix]\nscheduler = ["none", "io.latency"]\n'
        '"tenant.t.latency_target" = [0, "2ms"]\n'
    )
    source = Source.of("s.toml", text)
    adapted, _ = on_host(parse_study(text, "s.toml"), source, DISK, "v1", {"none"})
    check_study(adapted, source)
    assert adapted.matrix == {"scheduler": ["none"]}
    assert adapted.tenant[0].latency_target == 0


# -- results --


def test_figures_that_were_measured_are_no_input_that_differs(tmp_path: Path) -> None:
    def written(name: str, model: str, *, calibrated: bool) -> Path:
        made = [Made("none", {"t": 10.0}, kind="calibrate", point={"calibrate": "isoblk rbps"})]
        made.append(Made("isoblk", {"t": 10.0}))
        directory = resultgen.write(tmp_path / name, made)
        record = read_results(directory).record
        runs = list(record.runs)
        last = runs[-1].planned
        scheduler = msgspec.structs.replace(last.spec.scheduler, iosched={"cost_model": model})
        spec = msgspec.structs.replace(last.spec, scheduler=scheduler)
        planned = msgspec.structs.replace(
            last, spec=spec, calibrate={"rbps": 0} if calibrated else {}
        )
        runs[-1] = msgspec.structs.replace(runs[-1], planned=planned)
        write_study(directory, msgspec.structs.replace(record, runs=runs))
        return directory

    def differs(calibrated: bool) -> list[str]:
        ours, theirs = (
            analyse(read_results(written(f"{name}{calibrated}", model, calibrated=calibrated)))
            for name, model in (("a", LINE), ("b", LINE.replace("7", "8")))
        )
        return [one.what for one in compare(ours, theirs).inputs]

    assert differs(True) == []
    assert differs(False) == ["scheduler.iosched.cost_model"]
