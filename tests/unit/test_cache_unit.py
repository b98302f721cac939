# SPDX-License-Identifier: GPL-2.0-only
"""The unit of a cache: its devices are the same after a reboot, and so is the cache."""

import os
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from isoblk.cachectl.unit import escape, lasting, unit
from isoblk.errors import UserError
from isoblk.machine.mapper import Mapper

TABLE = "0 2097152 setcache 8:16 8:33 8 512 writeback fifo 2 set_low 20"
STATUS = "0 2097152 setcache state ok mode writeback policy fifo cleaning 0 dirty 0"


def _mapper(*devices: str, table: str = TABLE, status: str = STATUS) -> Mapper:
    made = table

    def run(*words: str, table: str = "") -> str:
        said = {"info": "\n".join(devices), "table": made, "status": status}
        return said[words[0]] + "\n"

    return run


@pytest.fixture
def dev(tmp_path: Path) -> Path:
    """/dev and /sys of a machine with /dev/sdb and /dev/sdc1, of which udev knows names."""
    for name in ("sdb", "sdc1"):
        (tmp_path / name).touch()
        (tmp_path / "sys" / name).mkdir(parents=True)
    (tmp_path / "sys/dev/block").mkdir(parents=True)
    (tmp_path / "sys/dev/block/8:16").symlink_to(tmp_path / "sys/sdb")
    (tmp_path / "sys/dev/block/8:33").symlink_to(tmp_path / "sys/sdc1")
    _link(tmp_path, "by-uuid", "1-2", "sdb")
    _link(tmp_path, "by-id", "ata-SLOW%1", "sdb")
    _link(tmp_path, "by-id", "nvme-FAST-part1", "sdc1")
    _link(tmp_path, "by-partuuid", "aa-bb", "sdc1")
    return tmp_path


def _link(dev: Path, kind: str, name: str, node: str) -> None:
    directory = dev / "disk" / kind
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).symlink_to(f"../../{node}")


def test_a_unit_makes_the_cache_of_the_same_devices_as_it_is_now(dev: Path) -> None:
    text = unit("fast", _mapper("fast"), dev, dev / "sys")
    slow, fast = f"{dev}/disk/by-id/ata-SLOW%1", f"{dev}/disk/by-id/nvme-FAST-part1"
    assert _made(text) == TABLE.replace("8:16", slow).replace("8:33", fast).split()
    assert f"\nRequires={escape(slow)}.device {escape(fast)}.device\n" in text
    assert "\nExecStop=/sbin/dmsetup remove --retry fast\n" in text
    # Before file systems are mounted; local-fs-pre.target alone is wanted by no unit at boot.
    assert "\nBefore=local-fs-pre.target " in text
    assert text.endswith("\nWantedBy=sysinit.target\n")


def test_a_unit_trusts_if_the_cache_does_and_accepts_no_later_change(dev: Path) -> None:
    table = TABLE.replace(" 2 set_low 20", " 6 set_low 20 accept_origin 1 trust 1")
    text = unit("fast", _mapper("fast", table=table), dev, dev / "sys")
    assert _made(text)[9:] == ["4", "set_low", "20", "trust", "1"]
    assert "trust" not in _made(unit("fast", _mapper("fast"), dev, dev / "sys"))


def test_a_device_without_a_lasting_name_is_refused(dev: Path) -> None:
    (dev / "disk/by-id/ata-SLOW%1").unlink()
    # A link to content of the disk also fits the cache.
    with pytest.raises(UserError, match=r"/dev/sdb: the device has no name that survives"):
        lasting("/dev/sdb", dev)


def test_a_unit_names_disks_by_links_that_no_copy_shares(dev: Path) -> None:
    for name in ("00000000-01", "0-first"):
        _link(dev, "by-partuuid", name, "sdb")
    for name in ("dm-uuid-LVM-x", "lvm-pv-uuid-x", "md-uuid-x", "aaa-not-a-link"):
        _link(dev, "by-id", name, "sdb")
    assert lasting("/dev/sdb", dev).endswith("by-id/aaa-not-a-link")
    (dev / "disk/by-id/aaa-not-a-link").unlink()
    assert lasting("/dev/sdb", dev).endswith("by-id/ata-SLOW%1")


def test_a_unit_with_a_word_looks_first_whether_the_disk_is_the_one(dev: Path) -> None:
    (dev / "sys/sdb/serial").write_text("slow-1\n")
    table = f"{TABLE.replace(' 2 set_low', ' 4 set_low')} origin_id serial:slow-1"
    lines = unit("fast", _mapper("fast", table=table), dev, dev / "sys").splitlines()
    [check] = [at for at, line in enumerate(lines) if '"origin"' in line]
    assert lines[check].startswith("ExecStart=")
    assert '"--is" "id:serial:slow-1"' in lines[check]
    assert lines[check].endswith(f'"{dev}/disk/by-id/ata-SLOW%%1"')
    assert lines[check + 1].startswith("ExecStart=/sbin/dmsetup create")


def test_a_users_word_makes_no_unit_of_a_name_that_a_copy_has(dev: Path) -> None:
    (dev / "disk/by-id/ata-SLOW%1").unlink()
    _link(dev, "by-partuuid", "00000000-01", "sdb")
    table = f"{TABLE.replace(' 2 set_low', ' 4 set_low')} origin_id mine"
    with pytest.raises(UserError, match="a copy of its origin would have the name"):
        unit("fast", _mapper("fast", table=table), dev, dev / "sys")
    # Where nothing is dirty a copy is whole.
    status = STATUS.replace("writeback", "writethrough")
    text = unit("fast", _mapper("fast", table=table, status=status), dev, dev / "sys")
    assert "by-partuuid/00000000-01" in text


def test_an_attached_cache_has_no_unit(dev: Path) -> None:
    with pytest.raises(UserError, match="fast: the cache was attached"):
        unit("fast", _mapper("fast", "fast-origin"), dev, dev / "sys")


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1))
def test_any_path_is_escaped_as_the_name_of_a_unit_and_back(name: str) -> None:
    path = "/" + "/".join(part for part in name.split("/") if part)
    escaped = escape(path)
    assert escaped.isascii() and "/" not in escaped
    plain = escaped.replace("-", "/").encode().decode("unicode_escape").encode("latin-1").decode()
    assert f"/{plain}" == path


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/dev/disk/by-id/nvme-A_1", r"dev-disk-by\x2did-nvme\x2dA_1"),
        ("/.a/.b", r"\x2ea-.b"),
        ("/dev/mapper/vg--x-lv", r"dev-mapper-vg\x2d\x2dx\x2dlv"),
    ],
)
def test_names_of_units_are_systemds(path: str, name: str) -> None:
    assert escape(path) == name


def _made(text: str) -> list[str]:
    """Words of the table that systemd and device-mapper make of a unit. As systemd reads a quoted
    word: escapes, then specifiers, then variables; and as device-mapper splits a table."""
    [line] = [one for one in text.split("\n") if one.startswith("ExecStart=/sbin/dmsetup ")]
    word = line.partition(' --table "')[2].removesuffix('"')
    assert not re.search(r'(?<!\\)(?:\\\\)*"', word)
    raw = re.sub(r"\\x(..)", lambda found: chr(int(found[1], 16)), word)
    assert "%" not in raw.replace("%%", "") and "$" not in raw.replace("$$", "")
    table = raw.replace("%%", "%").replace("$$", "$").encode("latin-1")
    words, now, escaped = [], b"", False
    for byte in (bytes([one]) for one in table + b" "):
        if escaped or (byte != b"\\" and byte not in b"\t\n\v\f\r \xa0"):
            now, escaped = now + byte, False
        elif byte == b"\\":
            escaped = True
        elif now:
            words.append(now)
            now = b""
    return [os.fsdecode(one) for one in words]


names = st.text(st.characters(codec="utf-8", exclude_characters="\0/"), min_size=1, max_size=40)


@given(names.filter(lambda name: name not in (".", "..")), names)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_devices_of_any_name_and_any_word_come_out_of_the_unit_as_they_went_in(
    dev: Path, name: str, word: str
) -> None:
    assume(len(os.fsencode(name)) < 250 and not any(c.isspace() for c in word))
    for old in (dev / "disk/by-id").glob("*SLOW*"):
        old.unlink()
    mark = f"SLOW{name}"
    _link(dev, "by-id", mark, "sdb")
    table = f"{TABLE.replace(' 2 set_low', ' 4 set_low')} origin_id {word}"
    text = unit("fast", _mapper("fast", table=table), dev, dev / "sys")
    made = _made(text)
    assert made[3] == f"{dev}/disk/by-id/{mark}"
    assert made[-1] == word
    assert len(made) == len(table.split())
    # No name ends a line, or begins another setting.
    assert [one.partition("=")[0] for one in text.split("\n") if "=" in one] == SETTINGS


SETTINGS = [
    *("Description", "DefaultDependencies", "Requires", "After", "Wants", "Before", "Conflicts"),
    *("Type", "RemainAfterExit", "ExecStart", "ExecStart", "ExecStop", "WantedBy"),
]
