# SPDX-License-Identifier: GPL-2.0-only
"""The descriptions of schedulers, and elevators that a study brings along."""

from pathlib import Path

import msgspec
import pytest
from msgspec import UNSET

from isoblk.campaign.execute import make_job
from isoblk.campaign.others import with_modules
from isoblk.errors import UserError
from isoblk.plan.plan import make_plan
from isoblk.run.shell import PER_DEVICE
from isoblk.run.spec import Elsewhere
from isoblk.schedulers.registry import SCHEDULERS, kind_of
from isoblk.study.expand import expand
from isoblk.study.load import load_study, parse_study
from isoblk.study.model import Study
from tests.unit.specs import run_spec, tenant

ROOT = Path(__file__).parents[2]
OWN = """\
name = "own"
device = "fast"
[schedulers.mine]
module = "mine-iosched"
weight_file = "io.mine.weight"
[iosched.mine]
depth = 7
[[tenant]]
name = "a"
weight = 300
[matrix]
scheduler = ["none", "mine", "bfq"]
"""


def mine(text: str = OWN) -> Study:
    return parse_study(text, "own.toml")


@pytest.mark.parametrize("name", SCHEDULERS)
def test_every_scheduler_is_found_again_from_a_runs_spec(name: str) -> None:
    study = parse_study(
        f'name = "s"\ndevice = "fast"\nscheduler = "{name}"\n[[tenant]]\nname = "t"\n', "s.toml"
    )
    spec = expand(study).runs[-1].spec
    kind = kind_of(spec.scheduler)
    assert kind is SCHEDULERS[name]
    assert spec.scheduler.elevator == kind.elevator
    assert spec.scheduler.elsewhere is UNSET


@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_scheduler_with_weights_says_which_it_takes(name: str) -> None:
    kind = SCHEDULERS[name]
    assert kind.weights.low == 1
    assert bool(kind.blkio_policy) == ("v1" in kind.weight_files)
    assert not (kind.fixed_weights and kind.weight_files)


def test_a_studys_own_elevator_gets_module_weights_and_tunables() -> None:
    spec = next(
        planned.spec
        for planned in expand(mine()).runs
        if planned.spec.scheduler.name == "mine" and planned.spec.kind == "share"
    )
    plan = make_plan(spec)
    assert plan.modules[-1] == "mine-iosched"
    assert "insmod /run/isoblk/modules/mine-iosched.ko" in plan.text
    assert "echo mine > /sys/block/disk0/queue/scheduler" in plan.text
    assert "echo 7 > /sys/block/disk0/queue/iosched/depth" in plan.text
    assert "echo 300 > /sys/fs/cgroup/a/io.mine.weight" in plan.text


def test_an_elevator_of_a_study_does_not_change_ids_of_other_runs() -> None:
    spec = run_spec("bfq", tenants=(tenant("t"),))
    assert b"elsewhere" not in msgspec.json.encode(spec)


def test_another_module_is_another_run(tmp_path: Path) -> None:
    ids = []
    for content in (b"one", b"two"):
        module = tmp_path / "mine-iosched.ko"
        module.write_bytes(content)
        runs = with_modules(expand(mine()), {"mine-iosched": module})[0].runs
        ids.append([make_job(planned.spec, "kernel", "modules").id for planned in runs])
    differ = [one != two for one, two in zip(*ids, strict=True)]
    own = [planned.spec.scheduler.name == "mine" for planned in expand(mine()).runs]
    assert differ == own
    assert any(own) and not all(own)


def test_the_error_for_a_missing_module_asks_for_it() -> None:
    with pytest.raises(UserError, match="the module mine-iosched is not given; add --module"):
        with_modules(expand(mine()), {})
    with pytest.raises(UserError, match="mine-iosched is not given; --module gives your; add"):
        with_modules(expand(mine()), {"your": Path("your.ko")})


def test_a_module_that_no_scheduler_has_is_left_out(tmp_path: Path) -> None:
    for name in ("mine-iosched", "helper"):
        (tmp_path / f"{name}.ko").write_bytes(b"")
    found = {path.stem: path for path in tmp_path.iterdir()}
    assert with_modules(expand(mine()), found)[1].keys() == {"mine-iosched"}


@pytest.mark.parametrize("name", ["blkload", "isoblk_share", "null_blk", "kunit"])
def test_no_module_of_the_labs_own_is_replaced(name: str, tmp_path: Path) -> None:
    module = tmp_path / f"{name}.ko"
    module.write_bytes(b"")
    expansion = expand(mine(OWN.replace("mine-iosched", name)))
    with pytest.raises(UserError, match=f"{name} is the name of a module of the lab"):
        with_modules(expansion, {name: module})


def test_a_latency_target_goes_to_a_file_that_takes_a_line_for_a_device() -> None:
    files = {kind.name: kind.target_file for kind in SCHEDULERS.values() if kind.target_file}
    assert files == {"io.latency": "io.latency"}
    assert set(files.values()) <= PER_DEVICE


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('module = "mine-iosched"', 'module = "../mine"', "module: '../mine' is not the name of"),
        ('module = "mine-iosched"', 'module = "a;b"', "module: 'a;b' is not the name of a module"),
        ('"io.mine.weight"', '"io.max"', "own.toml:5: schedulers.mine.weight_file: 'io.max' is"),
        ('"io.mine.weight"', '"../io.mine.weight"', "is not the name of a cgroup's file"),
        ('"io.mine.weight"', '"cgroup.procs"', "is not the name of a cgroup's file"),
        (
            "[schedulers.mine]",
            "[schedulers.bfq]",
            "schedulers.bfq: is the name of a built-in scheduler",
        ),
        (
            "[schedulers.mine]",
            '[schedulers."a; b"]\nelevator = "mine"',
            "'a; b' is not a name for a scheduler; allowed: letters, digits",
        ),
        (
            "[schedulers.mine]",
            '[schedulers.mine]\nelevator = "of-sixteen-chars"',
            "'of-sixteen-chars' is not the name of an elevator",
        ),
        ('"mine", "bfq"', '"mind", "bfq"', "unknown value 'mind'; did you mean 'mine'?"),
        ("[iosched.mine]", "[iosched.none]", "iosched.none: has no tunables"),
        (
            '"io.mine.weight"',
            '"blkio.mine.weight"',
            "schedulers.mine.weight_file: blkio.mine.weight is not a file of cgroup v2",
        ),
    ],
)
def test_a_wrong_elevator_of_a_study_is_refused_in_a_line(old: str, new: str, told: str) -> None:
    with pytest.raises(UserError) as caught:
        mine(OWN.replace(old, new))
    assert told in str(caught.value)


def test_the_example_is_a_study() -> None:
    study, _ = load_study(ROOT / "docs/examples/fifo.toml")
    schedulers = [planned.spec.scheduler for planned in expand(study).runs]
    assert Elsewhere(module="fifo-iosched", weight_file="") in [one.elsewhere for one in schedulers]
