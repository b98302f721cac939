# SPDX-License-Identifier: GPL-2.0-only
"""A kept guest stands for a run only if all that determines the run is equal, to the byte."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from isoblk.campaign.execute import Bench
from isoblk.errors import RunError
from isoblk.kernel import Kernel
from isoblk.plan.plan import prologue
from isoblk.run.shell import render
from tests.lab.guest import SEE_HOST, on_host
from tests.lab.kept import Guests, KeptUml, StaleError, prune, recording_library

LIMIT_S = 300


@dataclass
class Inputs:
    """All that determines a guest, in files of the test's own."""

    kernel: Kernel
    library: Path
    module: Path
    program: Path
    link: Path
    seed: int = 1
    memory_mib: int = 256
    script: str = ""
    files: dict[str, str] = field(default_factory=lambda: {"trace": "1"})


@dataclass
class Kept:
    """A store of kept guests, and one guest."""

    tmp: Path
    inputs: Inputs

    def run(self, guests: Guests = Guests.KEPT) -> tuple[dict[str, int], Path]:
        """Run the guest, or find it kept: the machine's counts, and the directory."""
        machine = self.machine(guests)
        directory = self.run_on(machine)
        return dict(machine.counts), directory

    def machine(self, guests: Guests = Guests.KEPT) -> KeptUml:
        """A machine with this store, as a test finds it."""
        one = self.inputs
        return KeptUml(
            one.kernel, LIMIT_S, store=self.tmp / "store", library=one.library, guests=guests
        )

    def run_on(self, machine: KeptUml) -> Path:
        """Run the guest on a machine: the directory."""
        directory = self.tmp / "run"
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        one = self.inputs
        for name, text in one.files.items():
            (directory / name).write_text(text)
        modules = (one.module.stem,)
        lines = [render(prologue(modules, "v2")), SEE_HOST, one.script]
        (directory / "plan.sh").write_text("\n".join(lines) + "\n")
        machine.run(directory, [one.module], seed=one.seed, memory_mib=one.memory_mib)
        return directory


@pytest.fixture
def kept(default_bench: Bench, tmp_path: Path) -> Kept:
    build = tmp_path / "kernel" / "build"
    build.mkdir(parents=True)
    shutil.copy2(default_bench.kernel.linux, build / "linux")
    library = shutil.copy2(recording_library(tmp_path), tmp_path / "host.so")
    module = shutil.copy2(default_bench.modules["blkload"], tmp_path)
    program = tmp_path / "program"
    program.write_text("echo $((6 * 7))\n")
    link = tmp_path / "link"
    link.symlink_to("program")
    script = f"sh {on_host(link)} > /run/isoblk/answer\ncat /run/isoblk/trace > /run/isoblk/copy"
    kernel = replace(default_bench.kernel, dir=tmp_path / "kernel")
    # An entry is kept only of files that are older than the run.
    return Kept(tmp_path, Inputs(kernel, Path(library), Path(module), program, link, script=script))


def _one_more_byte(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"\n")


def _another_link(kept: Kept) -> None:
    shutil.copy2(kept.inputs.program, kept.tmp / "other")
    kept.inputs.link.unlink()
    kept.inputs.link.symlink_to("other")


CHANGES: dict[str, Callable[[Kept], object]] = {
    "kernel": lambda kept: _one_more_byte(kept.inputs.kernel.linux),
    "library": lambda kept: _one_more_byte(kept.inputs.library),
    "module": lambda kept: _one_more_byte(kept.inputs.module),
    "script": lambda kept: setattr(kept.inputs, "script", kept.inputs.script + "\n"),
    "seed": lambda kept: setattr(kept.inputs, "seed", 2),
    "memory": lambda kept: setattr(kept.inputs, "memory_mib", 257),
    "file beside the script": lambda kept: kept.inputs.files.update(trace="2"),
    "another file beside the script": lambda kept: kept.inputs.files.update(more=""),
    "host program": lambda kept: _one_more_byte(kept.inputs.program),
    "host link": _another_link,
}


@pytest.mark.parametrize("part", CHANGES)
def test_a_byte_of_any_input_makes_the_guest_run(kept: Kept, part: str) -> None:
    assert kept.run()[0] == {"new": 1}
    assert kept.run()[0] == {"kept": 1}
    CHANGES[part](kept)
    assert kept.run()[0] == {"new": 1}


def test_a_kept_guest_leaves_the_same_files_as_the_run(kept: Kept) -> None:
    def content(directory: Path) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in directory.iterdir()}

    ran = content(kept.run()[1])
    assert ran["answer"] == b"42\n"
    assert sorted(ran) == ["answer", "console.log", "copy", "plan.sh", "trace"]
    counts, directory = kept.run()
    assert counts == {"kept": 1}
    assert content(directory) == ran


def test_a_run_is_still_kept_after_an_input_is_changed_back(kept: Kept) -> None:
    kept.run()
    text = kept.inputs.program.read_text()
    _one_more_byte(kept.inputs.program)
    kept.run()
    kept.inputs.program.write_text(text)
    assert kept.run()[0] == {"kept": 1}


def test_fresh_runs_it_again_and_compares(kept: Kept) -> None:
    kept.run()
    assert kept.run(Guests.FRESH)[0] == {"again": 1}
    (left,) = kept.tmp.glob("store/*/1/left")
    (left / "answer").write_text("43\n")
    with pytest.raises(StaleError, match=r"^answer: not what .*, of equal inputs"):
        kept.run(Guests.FRESH)


def test_a_guest_that_a_test_runs_twice_is_two_runs(kept: Kept) -> None:
    kept.run()
    machine = kept.machine()
    for counts in ({"kept": 1}, {"kept": 1, "new": 1}, {"kept": 1, "new": 2}):
        kept.run_on(machine)
        assert machine.counts == counts
    machine.begin_test()
    for _ in range(3):
        kept.run_on(machine)
    assert machine.counts == {"kept": 4, "new": 2}


def test_a_guest_that_failed_is_run_again(kept: Kept) -> None:
    kept.inputs.script = "false"
    for _ in range(2):
        with pytest.raises(RunError, match="a step of the plan failed"):
            kept.run()
    assert list(kept.tmp.glob("store/*/1")) == []


def test_a_run_that_was_not_used_for_long_is_pruned(kept: Kept) -> None:
    kept.run()
    prune(kept.tmp / "store", days=1)
    assert kept.run()[0] == {"kept": 1}
    prune(kept.tmp / "store", days=0)
    assert kept.run()[0] == {"new": 1}
