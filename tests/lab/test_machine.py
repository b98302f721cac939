# SPDX-License-Identifier: GPL-2.0-only
"""A guest that fails says so, and how."""

import pytest

from isoblk.campaign.execute import Bench
from isoblk.errors import RunError
from isoblk.kernel import host_library
from isoblk.machine.uml import Uml
from tests.lab.guest import Guest


def test_a_step_that_fails_fails_the_run_and_is_shown(guest: Guest) -> None:
    with pytest.raises(RunError, match=r"a step of the plan failed; .*/no/such/file"):
        guest.run("cat /no/such/file")


def test_a_knob_that_cannot_be_written_fails_the_run(guest: Guest) -> None:
    line = "echo 1 > /proc/sys/kernel/no_such_knob"
    with pytest.raises(RunError, match=rf"a step of the plan failed: plan\.sh:[0-9]+: {line};"):
        guest.run(line)


def test_a_kernel_panic_fails_the_run(guest: Guest) -> None:
    with pytest.raises(RunError, match=r"Kernel panic - not syncing: sysrq triggered crash"):
        guest.run("echo c > /proc/sysrq-trigger")


def test_a_guest_that_hangs_is_ended(default_bench: Bench, guest: Guest) -> None:
    impatient = Uml(default_bench.kernel, host_library(default_bench.kernel), time_limit_s=2)
    bench = Bench(impatient, default_bench.kernel, default_bench.modules, "")
    with pytest.raises(RunError, match=r"hung: no end after 2 s"):
        Guest(bench, guest.tmp).run("while :; do :; done")


def test_the_guest_cannot_write_the_hosts_files(guest: Guest) -> None:
    left = guest.run("echo x > /etc/isoblk-was-here || echo refused > /run/isoblk/answer")
    assert left.read("answer") == "refused\n"
    assert not left.dir.joinpath("/etc/isoblk-was-here").exists()


@pytest.mark.parametrize("name", ["a b", "a,b", 'a"b', "a=b", "\N{GREEK SMALL LETTER ALPHA}"])
def test_a_path_may_hold_anything(guest: Guest, name: str) -> None:
    left = Guest(guest.bench, guest.tmp / name).run("echo yes > /run/isoblk/answer")
    assert left.read("answer") == "yes\n"


def test_equal_seeds_give_the_kernel_equal_random_numbers(guest: Guest) -> None:
    script = "head -c 16 /dev/urandom | od -x > /run/isoblk/random"
    elsewhere = Guest(guest.bench, guest.tmp / "another" / "path")
    runs = ((guest, 1), (elsewhere, 1), (guest, 2))
    first, again, other = (where.run(script, seed=s).read("random") for where, s in runs)
    assert first == again
    assert first != other


def test_nothing_but_the_output_is_left_on_the_host(guest: Guest) -> None:
    left = guest.run("echo yes > /run/isoblk/answer")
    assert sorted(path.name for path in left.dir.iterdir()) == ["answer", "console.log", "plan.sh"]
