# SPDX-License-Identifier: GPL-2.0-only
"""The udev rule of a disk: written, replaced, removed, and no foreign line touched."""

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoblk.weights import others, rule
from isoblk.weights.rule import Rule
from tests.unit.scripts import ROOT

NVME = Rule("KERNEL", "nvme0n1", "isoblk", 1024, ("none", 1023))
LINE = "rbps=6 rseqiops=5 rrandiops=4 wbps=3 wseqiops=2 wrandiops=1"
COSTED = Rule("KERNEL", "nvme1n1", "isoblk", None, ("none", 1023), LINE)
BOTH = Rule("KERNEL", "nvme2n1", "isoblk", 1024, ("none", 1023), "bytes")
SATA = Rule("ENV{ID_SERIAL}", "Samsung_SSD_860 1", "kyber-fair", None, ("mq-deadline", 64))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "90-isoblk.rules"


def test_a_written_rule_is_read_back_and_a_disk_has_one_rule(path: Path) -> None:
    rule.put(NVME, path)
    rule.put(SATA, path)
    other = Rule("KERNEL", "nvme0n1", "bfq", None, ("none", 1023))
    rule.put(other, path)
    assert rule.read(path) == [SATA, other]


def test_a_cost_model_is_read_as_it_was_put(path: Path) -> None:
    for one in (COSTED, NVME, BOTH):
        rule.put(one, path)
    assert rule.read(path) == [COSTED, NVME, BOTH]


def test_a_rule_of_before_there_were_cost_models_is_still_understood(path: Path) -> None:
    path.write_text(
        "# before: none 1023\n"
        'ACTION=="add", SUBSYSTEM=="block", ENV{DEVTYPE}=="disk", KERNEL=="nvme0n1",'
        ' ATTR{queue/scheduler}="isoblk", ATTR{queue/nr_requests}="1024"\n'
    )
    assert rule.read(path) == [NVME]
    rule.put(COSTED, path)
    assert rule.read(path) == [NVME, COSTED]


@pytest.mark.parametrize("model", ['a"', "a$env{x}", "%k", "A", "a\\", ""])
def test_a_rule_with_another_cost_model_than_the_tunables_is_not_ours(
    path: Path, model: str
) -> None:
    rule.put(COSTED, path)
    path.write_text(path.read_text().replace(LINE, model))
    assert rule.read(path) == []


def test_a_foreign_line_stays_and_so_does_its_file(path: Path) -> None:
    own = 'KERNEL=="sda", ATTR{queue/scheduler}="bfq"'
    path.write_text(f"{own}\n# mine\n")
    rule.put(NVME, path)
    rule.remove([NVME], path)
    assert path.read_text() == f"{own}\n# mine\n"


def test_the_last_rule_takes_the_file_along(path: Path) -> None:
    rule.put(NVME, path)
    rule.remove([NVME], path)
    assert not path.exists()


def test_attributes_that_a_scheduler_resets_are_set_after_it(path: Path) -> None:
    rule.put(NVME, path)
    text = path.read_text()
    assert text.index("queue/scheduler") < text.index("queue/nr_requests")
    rule.remove([NVME], path)
    for one in (COSTED, BOTH):
        rule.put(one, path)
        line = path.read_text().splitlines()[-1]
        assert line.index("queue/scheduler") < line.index("queue/iosched/cost_model")
    assert all(line.startswith(("#", "ACTION")) for line in text.splitlines())


@given(st.text(min_size=1))
def test_a_serial_number_that_udev_would_read_as_a_pattern_is_not_used(serial: str) -> None:
    key, value = rule.identity("sda", {"ID_SERIAL": serial})
    assert key == "KERNEL" or not set(value) & set('*?[]|"\\\n{}$')


def test_other_files_that_set_schedulers_are_named(tmp_path: Path) -> None:
    rules = tmp_path / "usr/lib/udev/rules.d"
    rules.mkdir(parents=True)
    (rules / "60-ioschedulers.rules").write_text(
        '# a comment with ATTR{queue/scheduler}="x"\n'
        'ACTION=="add", KERNEL=="sd*", \\\n  ATTR{queue/scheduler}="bfq"\n'
    )
    (rules / "99-late.rules").write_text('ATTR{queue/scheduler}="none"\n')
    (rules / "60-compares.rules").write_text('ATTR{queue/scheduler}=="none", SYMLINK+="x"\n')
    (rules / "70-masked.rules").write_text('ATTR{queue/scheduler}="none"\n')
    etc = tmp_path / "etc/udev/rules.d"
    etc.mkdir(parents=True)
    (etc / "70-masked.rules").write_text("")
    (etc / rule.RULES.name).write_text('ATTR{queue/scheduler}="isoblk"\n')
    profile = tmp_path / "usr/lib/tuned/throughput"
    profile.mkdir(parents=True)
    (profile / "tuned.conf").write_text("[disk]\nelevator=none\n")
    (tmp_path / "etc/tuned").mkdir()
    (tmp_path / "etc/tuned/active_profile").write_text("throughput\n")
    told = list(others.others(tmp_path))
    assert told == [
        "/usr/lib/udev/rules.d/60-ioschedulers.rules sets schedulers, before 90-isoblk.rules",
        "/usr/lib/udev/rules.d/99-late.rules sets schedulers, after 90-isoblk.rules",
        "tuned's profile throughput sets elevator= whenever tuned starts"
        " (/usr/lib/tuned/throughput/tuned.conf)",
    ]


def test_a_number_beyond_all_bounds_is_no_rule_of_ours(path: Path) -> None:
    rule.put(NVME, path)
    path.write_text(path.read_text().replace('"1024"', f'"{"9" * 5000}"'))
    assert rule.read(path) == []


@pytest.mark.parametrize("script", ["packaging/debian/isoblk.postrm", "packaging/rpm/isoblk.spec"])
def test_a_package_that_goes_leaves_lines_of_others(path: Path, script: str) -> None:
    text = (ROOT / script).read_text()
    program = text[text.index("rules=/etc/udev") :].split("[ ! -d")[0].split("\nfi")[0]
    program = re.sub(r"rules=\S+", f"rules={path}", program)
    program += "\nfi" * (program.count("if [") - len(re.findall(r"^\s*fi$", program, re.M)))

    def purge() -> None:
        subprocess.run(["sh", "-ec", program], check=True)

    for one in (NVME, SATA, COSTED, BOTH):
        rule.put(one, path)
    purge()
    assert not path.exists()
    theirs = [
        "# mine, above",
        'ACTION=="add", KERNEL=="sdz", ATTR{queue/scheduler}="bfq"',
        "# before: none 12",
        "# these are mine: before: none 12",
        'ACTION=="add", SUBSYSTEM=="block", ENV{DEVTYPE}=="disk", KERNEL=="sdy", RUN+="x"',
    ]
    path.write_text("\n".join(theirs) + "\n")
    for one in (NVME, SATA, COSTED, BOTH):
        rule.put(one, path)
    path.write_text(path.read_text() + theirs[1] + "\n")
    purge()
    assert path.read_text().splitlines() == [*theirs, theirs[1]]
