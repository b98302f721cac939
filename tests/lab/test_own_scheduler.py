# SPDX-License-Identifier: GPL-2.0-only
"""An elevator that a study brings along is built, loaded and measured, on each kernel."""

from pathlib import Path

import pytest

from isoblk.campaign.execute import Bench, execute, make_bench, make_job
from isoblk.campaign.others import with_modules
from isoblk.errors import RunError, UserError
from isoblk.kernel.others import find_modules
from isoblk.study.expand import expand
from isoblk.study.load import load_study

EXAMPLES = Path(__file__).parents[2] / "docs/examples"


def test_the_documented_example_runs(bench: Bench, tmp_path: Path) -> None:
    study, _ = load_study(EXAMPLES / "fifo.toml")
    modules = find_modules(bench.kernel, [EXAMPLES / "fifo"])
    expansion, others = with_modules(expand(study), modules)
    own = make_bench(bench.machine, bench.kernel, others)
    (spec,) = [one.spec for one in expansion.runs if one.spec.scheduler.name == "fifo"]
    record = execute(make_job(spec, own.kernel.key, own.modules_key), own, tmp_path).record
    assert record.reasons == []
    heavy, light = (tenant.ops["read"].meas_ios for tenant in record.tenants)
    # It knows no weights: requests are served in the order of arrival.
    assert heavy == pytest.approx(light, rel=0.01)
    assert heavy > 0


def test_sources_that_do_not_compile_are_said_to(default_bench: Bench, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "Kbuild").write_text("obj-m += broken.o\n")
    (broken / "broken.c").write_text("this is no C\n")
    with pytest.raises(RunError, match="broken"):
        find_modules(default_bench.kernel, [broken])


def test_a_path_that_is_not_a_module_is_refused(default_bench: Bench, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"neither a \.ko file nor a directory with a Kbuild"):
        find_modules(default_bench.kernel, [tmp_path])
    with pytest.raises(UserError, match="no such module"):
        find_modules(default_bench.kernel, [tmp_path / "gone.ko"])


def test_a_module_that_changes_during_a_study_is_used_as_it_was(
    default_bench: Bench, tmp_path: Path
) -> None:
    module = tmp_path / "mine-iosched.ko"
    module.write_bytes(b"first")
    (copy,) = find_modules(default_bench.kernel, [module]).values()
    module.write_bytes(b"second")
    assert copy.read_bytes() == b"first"
    assert find_modules(default_bench.kernel, [module])["mine-iosched"].read_bytes() == b"second"
