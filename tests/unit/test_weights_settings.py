# SPDX-License-Identifier: GPL-2.0-only
"""A disk's scheduler is chosen whole or not at all, and for this disk."""

import errno
import os
import stat
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from isoblk.cli import disk as cli
from isoblk.errors import UserError
from isoblk.machine import iocost_hwdb, system
from isoblk.machine.blockdev import Disk
from isoblk.weights import others, rule, settings
from isoblk.weights.rule import Rule
from tests.unit.fakesys import NUMBER, FakeMachine, machine, put


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where rules are, instead of in /etc."""
    path = tmp_path / "rules.d" / rule.RULES.name
    path.parent.mkdir()
    for called in (rule.read, rule.put, rule.remove):
        monkeypatch.setattr(called, "__defaults__", (path,))
    # Of this machine's packages some set schedulers by rules of their own.
    monkeypatch.setattr(others.others, "__defaults__", (tmp_path,))
    monkeypatch.setattr(settings, "_LOCK", tmp_path / "run/disk.lock")
    monkeypatch.setattr(settings, "_reload", lambda: None)
    return path


@pytest.fixture
def fake(tmp_path: Path, rules: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    found = machine(tmp_path)
    # A plain file holds the written value, where the kernel's lists all schedulers.
    put(found.place / "queue/scheduler", "mq-deadline\n")
    (found.sys / "class").mkdir()
    (found.sys / "class/block").symlink_to(found.sys / "block")
    monkeypatch.setattr(system, "SYS", found.sys)
    return found


def known(fake: FakeMachine, number: str = NUMBER, **properties: str) -> None:
    """The udev properties of the disk."""
    text = "".join(f"E:{name}={value}\n" for name, value in properties.items())
    put(fake.root / "run/udev/data" / f"b{number}", f"S:disk/by-id/x\n{text}")


def now(disk: Disk) -> tuple[str, int]:
    return settings.current(disk)


COST = "queue/iosched/cost_model"
LINE = "rbps=6 rseqiops=5 rrandiops=4 wbps=3 wseqiops=2 wrandiops=1"


def calling(fake: FakeMachine, monkeypatch: pytest.MonkeyPatch, model: bytes = b"x\n") -> None:
    """Have the commands find the disk, of a model, in a kernel that has isoblk."""
    monkeypatch.setattr(settings, "find", lambda _: fake.disk())
    monkeypatch.setattr(settings, "sharing", lambda _: [])
    monkeypatch.setattr(cli, "elevators", lambda _: {"isoblk", "none"})
    monkeypatch.setattr(iocost_hwdb, "DIRECTORIES", (fake.root / "hwdb.d",))
    (fake.place / "device/model").write_bytes(model)
    put(fake.place / COST, f"auto {LINE}\n")


def refusing(monkeypatch: pytest.MonkeyPatch, value: str, number: int) -> None:
    """Have the kernel take all but one."""
    write = Path.write_text

    def taken(self: Path, text: str) -> int:
        if text == value:
            raise OSError(number, os.strerror(number))
        return write(self, text)

    monkeypatch.setattr(Path, "write_text", taken)


def test_tags_that_the_kernel_does_not_take_leave_the_scheduler_as_it_was(
    fake: FakeMachine, rules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing(monkeypatch, "100000", errno.EINVAL)
    with pytest.raises(UserError, match="refuses 100000: Invalid argument"):
        settings.use(fake.disk(), "none", 100000)
    assert now(fake.disk()) == ("mq-deadline", 256)
    assert not rules.exists()


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOSPC, errno.EACCES])
def test_a_rule_that_cannot_be_written_leaves_the_scheduler_as_it_was(
    fake: FakeMachine, rules: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def full(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(rule, "write_atomically", full)
    with pytest.raises(UserError):
        settings.use(fake.disk(), "none", 64)
    assert now(fake.disk()) == ("mq-deadline", 256)


def test_a_reset_after_two_uses_restores_the_state_before_the_first(
    fake: FakeMachine, rules: Path
) -> None:
    settings.use(fake.disk(), "none", 64)
    settings.use(fake.disk(), "kyber", None)
    settings.reset(fake.disk())
    assert now(fake.disk()) == ("mq-deadline", 256)
    assert not rules.exists()


def test_a_scheduler_that_is_gone_keeps_no_rule(
    fake: FakeMachine, rules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.use(fake.disk(), "none", 64)
    refusing(monkeypatch, "mq-deadline", errno.EINVAL)
    with pytest.raises(UserError, match=r"mq-deadline.*rule is removed; choose another"):
        settings.reset(fake.disk())
    assert not rules.exists()
    with pytest.raises(UserError, match="the disk has no rule of isoblk"):
        settings.reset(fake.disk())


def test_the_error_for_a_missing_scheduler_gives_a_remedy(tmp_path: Path) -> None:
    release = os.uname().release
    packaged = tmp_path / "isoblk-dkms"
    why = partial(settings.why_missing, packaged=packaged, modules=tmp_path)
    assert why("bfq") == ""
    assert why("isoblk") == "install the package isoblk-dkms"
    packaged.mkdir()
    assert why("isoblk").endswith(f": linux-headers-{release}")
    (tmp_path / release / "build").mkdir(parents=True)
    assert why("isoblk") == f"see: {packaged}/tell {release}, and dkms status isoblk"


def test_a_disk_that_differs_from_its_rule_is_shown(
    fake: FakeMachine,
    rules: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As after an update to a kernel that gets no modules."""
    monkeypatch.setattr(settings, "all_disks", lambda: [fake.disk()])
    rule.put(Rule("KERNEL", "sdb", "mq-deadline", None, ("none", 256)))
    cli.show(None)
    assert capsys.readouterr().err == ""
    put(fake.place / "queue/scheduler", "none [bfq] mq-deadline\n")
    cli.show(None)
    assert "note: sdb has bfq, its rule sets mq-deadline: " in capsys.readouterr().err
    rule.put(Rule("KERNEL", "sdb", "isoblk", None, ("none", 256)))
    cli.show(None)
    assert (
        "note: sdb: its rule sets isoblk, which this kernel does not have; "
        in capsys.readouterr().err
    )


def test_a_disk_of_which_udev_learns_more_still_has_one_rule(
    fake: FakeMachine, rules: Path
) -> None:
    settings.use(fake.disk(), "none", 64)
    known(fake, ID_SERIAL="S1", ID_WWN="0x6b083fe0d1d4b800")
    settings.use(fake.disk(), "kyber", None)
    assert [(one.key, one.scheduler) for one in rule.read()] == [("ENV{ID_WWN}", "kyber")]
    known(fake, ID_WWN="0x6b083fe0d1d4b800", ID_WWN_WITH_EXTENSION="0x6b083fe0d1d4b8001c5b3e")
    assert settings.row(fake.disk())[-1] == "kyber"
    settings.reset(fake.disk())
    assert now(fake.disk()) == ("mq-deadline", 256)
    assert not rules.exists()


def test_volumes_of_one_array_are_told_apart(fake: FakeMachine, rules: Path) -> None:
    known(fake, ID_WWN="0x6b083fe0d1d4b800", ID_WWN_WITH_EXTENSION="0x6b083fe0d1d4b8001c5b3e")
    settings.use(fake.disk(), "none", None)
    assert rule.read()[0].value == "0x6b083fe0d1d4b8001c5b3e"


def test_a_disk_that_udev_takes_for_the_same_is_named(fake: FakeMachine, rules: Path) -> None:
    for name, text in {"dev": "8:32", "mq/0/nr_tags": "1", "queue/scheduler": "none"}.items():
        put(fake.sys / "block/sdc" / name, f"{text}\n")
    (fake.sys / "dev/block/8:32").symlink_to(fake.sys / "block/sdc")
    known(fake, ID_SERIAL="USB_BOX_1")
    known(fake, "8:32", ID_SERIAL="USB_BOX_1")
    settings.use(fake.disk(), "none", None)
    assert settings.sharing(fake.disk(), fake.sys) == ["sdc"]
    known(fake, "8:32", ID_SERIAL="USB_BOX_2")
    assert settings.sharing(fake.disk(), fake.sys) == []


def test_a_name_with_a_slash_is_udevs_in_the_rule(fake: FakeMachine, rules: Path) -> None:
    place = fake.sys / "block/cciss!c0d0"
    fake.place.rename(place)
    (fake.sys / "dev/block" / NUMBER).unlink()
    (fake.sys / "dev/block" / NUMBER).symlink_to(place)
    for name in ("/dev/cciss/c0d0", "cciss/c0d0", "cciss!c0d0"):
        settings.use(settings.find(name, fake.sys), "none", None)
        assert [(one.key, one.value) for one in rule.read()] == [("KERNEL", "cciss/c0d0")]
    settings.reset(settings.find("/dev/cciss/c0d0", fake.sys))
    assert not rules.exists()


@pytest.mark.parametrize("name", ['a"b', "disk*", "d[0]", "x{y}", "$x"])
def test_a_name_that_would_be_a_pattern_is_refused_and_nothing_set(
    fake: FakeMachine, rules: Path, name: str
) -> None:
    disk = Disk(f"/dev/{name}", name, NUMBER, fake.place)
    with pytest.raises(UserError, match="would be a pattern"):
        settings.use(disk, "none", None)
    assert now(disk) == ("mq-deadline", 256)
    assert settings.row(disk)[-1] == ""


@pytest.mark.parametrize("model", [b"USB \xff\xfe", b"[/b] [red]x\n", b"\0" * 16])
def test_a_disk_may_call_itself_whatever_it_likes(
    fake: FakeMachine, rules: Path, model: bytes
) -> None:
    (fake.place / "device/model").write_bytes(model)
    assert settings.row(fake.disk())[0] == "sdb"


def test_the_rules_file_is_readable_by_all_and_keeps_its_mode(rules: Path) -> None:
    before = os.umask(0o077)
    try:
        rule.put(Rule("KERNEL", "sdb", "none", None, ("none", 1)))
        assert stat.S_IMODE(rules.stat().st_mode) == 0o644
        rules.chmod(0o640)
        rule.put(Rule("KERNEL", "sdc", "none", None, ("none", 1)))
        assert stat.S_IMODE(rules.stat().st_mode) == 0o640
    finally:
        os.umask(before)


def test_foreign_lines_of_the_rules_file_stay_unchanged(rules: Path) -> None:
    own = '# one\x0cline\u2028only\r\n\r\nKERNEL=="sda", ATTR{queue/scheduler}="bfq"\r\n'
    rules.write_bytes(own.encode())
    one = Rule("KERNEL", "sdb", "none", None, ("none", 1))
    rule.put(one)
    rule.remove([one])
    assert rules.read_bytes() == own.encode()


def test_a_rule_of_ours_that_an_editor_gave_other_ends_is_still_ours(rules: Path) -> None:
    one = Rule("KERNEL", "sdb", "none", 64, ("none", 1))
    rule.put(one)
    rules.write_bytes(rules.read_bytes().replace(b"\n", b"\r\n"))
    assert rule.read() == [one]
    rule.remove([one])
    assert rule.read() == []


def _put(path: Path, lock: Path, number: int) -> None:
    settings._LOCK = lock  # type: ignore[misc]
    for _ in range(20):
        with settings._alone():
            rule.put(Rule("KERNEL", f"sd{number}", "none", None, ("none", 1)), path)


def test_two_at_a_time_lose_nothing(rules: Path, tmp_path: Path) -> None:
    lock = tmp_path / "run/disk.lock"
    with ProcessPoolExecutor(4) as pool:
        for done in [pool.submit(_put, rules, lock, number) for number in range(4)]:
            done.result()
    assert {one.value for one in rule.read()} == {f"sd{number}" for number in range(4)}


@pytest.mark.parametrize("profile", [b"\0" * 64, b"\xff\xfe", b"..", b"a/b", b"x" * 5000, b""])
def test_whatever_tuned_left_is_no_end(tmp_path: Path, profile: bytes) -> None:
    (tmp_path / "etc/tuned").mkdir(parents=True)
    (tmp_path / "etc/tuned/active_profile").write_bytes(profile)
    assert list(others.others(tmp_path)) == []


def test_a_disk_gets_the_cost_model_of_its_model_after_the_scheduler(
    fake: FakeMachine,
    rules: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    calling(fake, monkeypatch, b"Samsung SSD 980 PRO 1TB                 \n")
    written: list[str] = []
    write = Path.write_text

    def noted(self: Path, text: str) -> int:
        written.append(self.name)
        return write(self, text)

    monkeypatch.setattr(Path, "write_text", noted)
    cli.use("isoblk", "sdb", 64)
    assert written[:3] == ["scheduler", "nr_requests", "cost_model"]
    line = "rbps=2548800265 rseqiops=364653 rrandiops=304477 wbps=2314893629"
    line += " wseqiops=66718 wrandiops=84113"
    assert (fake.place / COST).read_text() == line
    assert [one.cost_model for one in rule.read()] == [line]
    assert capsys.readouterr().out.splitlines() == [
        "sdb: isoblk, 64 tags, also after the next boot",
        "sdb: cost model of Samsung SSD 980 PRO 1TB, from isoblk's table of drives",
    ]


def test_a_disk_of_no_known_model_keeps_the_generic_cost_model(
    fake: FakeMachine,
    rules: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    calling(fake, monkeypatch)
    (fake.place / COST).unlink()
    cli.use("isoblk", "sdb")
    assert not (fake.place / COST).exists()
    assert "cost_model" not in rules.read_text()
    assert "sdb: generic cost model of its kind; better: measure" in capsys.readouterr().out


def test_a_cost_model_of_before_does_not_outlive_the_choice_of_another(
    fake: FakeMachine, rules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Choosing the scheduler that a disk has sets nothing back."""
    calling(fake, monkeypatch)
    cli.use("isoblk", "sdb", cost_model=LINE)
    assert (fake.place / COST).read_text() == LINE
    put(fake.place / COST, f"user {LINE}\n")
    cli.use("isoblk", "sdb", cost_model="auto")
    assert (fake.place / COST).read_text() == "auto"
    assert [one.cost_model for one in rule.read()] == ["auto"]
    put(fake.place / COST, "bytes\n")
    settings.reset(fake.disk())
    assert (fake.place / COST).read_text() == "auto"


def test_a_disk_in_place_of_the_scheduler_is_refused(
    fake: FakeMachine, rules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings.is_disk, "__defaults__", (fake.sys,))
    for disk in ("sdb", "/dev/sdb"):
        with pytest.raises(UserError, match=f"scheduler comes first; run: .* isoblk {disk}$"):
            cli.use(disk, "isoblk")
    assert not rules.exists()


@pytest.mark.parametrize("model", ["calibrated", "rbps=1", f"user {LINE}", 'bytes"', "", "$x=1"])
def test_a_wrong_cost_model_is_refused_and_nothing_set(
    fake: FakeMachine, rules: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    calling(fake, monkeypatch)
    with pytest.raises(UserError, match=r"^--cost-model: "):
        cli.use("isoblk", "sdb", cost_model=model)
    with pytest.raises(UserError, match=r"^--cost-model: none has no cost model; remove it"):
        cli.use("none", "sdb", cost_model="auto")
    assert now(fake.disk()) == ("mq-deadline", 256)
    assert not rules.exists()


def test_an_older_isoblk_without_cost_models_is_said_and_nothing_set(
    fake: FakeMachine, rules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calling(fake, monkeypatch)
    (fake.place / COST).unlink()
    with pytest.raises(UserError, match=r"has no cost model; .*--cost-model auto$"):
        cli.use("isoblk", "sdb", 64, LINE)
    assert now(fake.disk()) == ("mq-deadline", 256)
    assert not (fake.place / COST).exists()
    assert not rules.exists()


def test_a_rule_that_cannot_be_written_leaves_the_cost_model_as_it_was(
    fake: FakeMachine, rules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calling(fake, monkeypatch)
    put(fake.place / "queue/scheduler", "isoblk\n")
    put(fake.place / COST, "bytes\n")
    rules.parent.rmdir()
    with pytest.raises(UserError, match="udev is not installed"):
        cli.use("isoblk", "sdb", cost_model=LINE)
    assert (fake.place / COST).read_text() == "bytes"
    assert now(fake.disk()) == ("isoblk", 256)


@pytest.mark.parametrize(
    "model",
    [b'x", RUN+="/bin/sh', b"x\nRUN y", b"\x1b[31m$env{PATH} %k", b"*", b"auto", b"\xff\xfe"],
)
def test_nothing_that_a_disk_calls_itself_is_in_its_rule(
    fake: FakeMachine,
    rules: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    model: bytes,
) -> None:
    calling(fake, monkeypatch, model)
    name = settings.model_of(fake.disk())
    put(
        fake.root / "hwdb.d/90-iocost.hwdb",
        f"block:*:name:{name}:fwver:*:\n IOCOST_MODEL_NAIVE={LINE}\n\n"
        f"block:*:name:x:fwver:*:\n IOCOST_MODEL_NAIVE={LINE}$env{{x}}\n",
    )
    cli.use("isoblk", "sdb")
    (one,) = rule.read()
    assert one.cost_model == LINE
    assert one.lines[-1] in rules.read_text()
    said = capsys.readouterr().out
    assert "from udev's database of io.cost" in said and "\x1b" not in said
    assert len(said.splitlines()) == 2


@pytest.mark.parametrize(
    ("text", "word"), [(f"auto {LINE}", "auto"), (f"user {LINE}", "own"), ("bytes", "bytes")]
)
def test_the_kind_of_cost_model_is_shown(
    fake: FakeMachine, rules: Path, text: str, word: str
) -> None:
    assert settings.row(fake.disk())[3] == ""
    put(fake.place / COST, f"{text}\n")
    assert settings.row(fake.disk())[3] == word
