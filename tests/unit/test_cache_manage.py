# SPDX-License-Identifier: GPL-2.0-only
"""`isoblk cache` asks device-mapper for the right things, and reports mistakes."""

from pathlib import Path

import pytest

from isoblk.cachectl import live, manage, volumes
from isoblk.caches.ondisk import contents
from isoblk.caches.ondisk import format as layout
from isoblk.errors import RunError, UserError
from isoblk.machine import mapper as device_mapper
from isoblk.machine.blockdev import Disk
from tests.unit.dmfake import FLASHCACHE, ORIGIN, SSD, Device, FakeMapper, make_cache


@pytest.fixture
def mapper() -> FakeMapper:
    return FakeMapper()


def test_a_cache_is_made_with_the_personalitys_defaults(mapper: FakeMapper) -> None:
    state = manage.create("fast", ORIGIN, SSD, manage.line_of(FLASHCACHE, {}), mapper)
    assert mapper.devices["fast"].table == (
        "0 2097152 setcache 8:16 8:32 8 512 writeback fifo 8"
        " set_low 20 age_ms 900000 clean_ios 4 clean_set 2"
    )
    assert (state.mode, state.policy, state.ssd) == ("writeback", "fifo", "8:32")


@pytest.mark.parametrize("name", ["", "-x", "a b", "a/b", "fast-origin"])
def test_a_name_that_device_mapper_or_attach_cannot_use_is_refused(
    name: str, mapper: FakeMapper
) -> None:
    with pytest.raises(UserError, match="is not a name for a cache"):
        manage.refuse_name(name, mapper)


def test_a_name_that_is_taken_is_refused(mapper: FakeMapper) -> None:
    make_cache(mapper)
    with pytest.raises(UserError, match="the device-mapper device 'fast' exists"):
        manage.refuse_name("fast", mapper)


def test_a_device_of_another_kind_is_not_touched(mapper: FakeMapper) -> None:
    mapper.devices["root"] = Device("0 2097152 linear 8:1 0")
    for act in (manage.find, live.clean, live.delete):
        with pytest.raises(UserError, match=r"root: is not a cache of setcache \(linear\)"):
            act("root", mapper)
    assert not any(one.startswith(("message", "remove", "load")) for one in mapper.asked)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (
            "3,42,1,-;device-mapper: setcache: 254:0: the record of slot 32 is damaged: run isoblk"
            " cache check: -84",
            "the record of slot 32 is damaged: run isoblk cache check",
        ),
        (
            "3,42,1,-;device-mapper: table: 254:0: setcache: the SSD is too small for one set"
            " (-ENOSPC)",
            "the SSD is too small for one set",
        ),
        ("3,42,1,-;device-mapper: table: 254:0: setcache: preresume failed, error = -84", ""),
        ("3,42,1,-;device-mapper: ioctl: error adding target to table", ""),
        ("3,42,1,-;I/O error, dev setcache, sector 8", ""),
    ],
)
def test_the_reason_is_found_in_the_kernels_log(line: str, reason: str) -> None:
    assert device_mapper.reason_of(line) == reason


def test_a_refusal_says_cause_place_and_next_step(mapper: FakeMapper) -> None:
    mapper.refuses = "create"
    mapper.why = "the record of slot 32 is damaged: run isoblk cache check"
    with pytest.raises(RunError) as caught:
        manage.create("fast", ORIGIN, SSD, manage.line_of(FLASHCACHE, {}), mapper)
    assert str(caught.value) == (
        "fast: the kernel refuses: the record of slot 32 is damaged; isoblk cache check /dev/sdc"
    )


@pytest.mark.parametrize("at", [0, 4096, 12288])
def test_a_superblock_of_ours_is_seen_in_each_copy_and_erased(tmp_path: Path, at: int) -> None:
    image = tmp_path / "ssd"
    # The last page is not a whole one.
    image.write_bytes((bytes(at) + layout.MAGIC).ljust(16384 + 512, b"\0"))
    with volumes.open_ssd(str(image), write=True) as ssd:
        assert contents.is_marked(ssd)
        assert contents.dirty_blocks(ssd).count is None
        contents.erase(ssd)
        assert not contents.is_marked(ssd)
    assert image.read_bytes() == bytes(16384 + 512)


def test_a_device_is_found_by_its_number(tmp_path: Path) -> None:
    (tmp_path / "devices/sdc1").mkdir(parents=True)
    (tmp_path / "dev/block").mkdir(parents=True)
    (tmp_path / "dev/block/8:33").symlink_to(tmp_path / "devices/sdc1")
    assert volumes.path_of("8:33", tmp_path) == "/dev/sdc1"


def test_the_ssd_is_neither_the_origin_nor_a_part_of_it(tmp_path: Path) -> None:
    whole = Disk("/dev/sdb", "sdb", "8:16", tmp_path / "sdb")
    part = Disk("/dev/sdb1", "sdb1", "8:17", tmp_path / "sdb/sdb1")
    for one, other, why in (
        (whole, whole, "origin and SSD are the same device"),
        (whole, part, "is a part of /dev/sdb"),
    ):
        with pytest.raises(UserError, match=why):
            volumes.refuse_overlap(one, other)


@pytest.mark.parametrize(
    ("said", "error", "text"),
    [
        (
            "/dev/mapper/control: open failed: No such device\n"
            "Failure to communicate with kernel device-mapper driver.\n",
            UserError,
            "the kernel has no device-mapper; run: modprobe dm-mod",
        ),
        (
            "/dev/mapper/control: open failed: Permission denied\n"
            "Failure to communicate with kernel device-mapper driver.\n",
            UserError,
            "no permission to use device-mapper; run as root",
        ),
        ("device-mapper: reload ioctl failed\nCommand failed.\n", RunError, "dmsetup table"),
    ],
)
def test_an_error_of_dmsetup_is_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, error: type[Exception], text: str
) -> None:
    program = tmp_path / "dmsetup"
    program.write_text(f"#!/bin/sh\nprintf '{said}' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(device_mapper, "PATH", str(tmp_path))
    with pytest.raises(error, match=text) as caught:
        device_mapper.dmsetup("table")
    assert "\n" not in str(caught.value)


KEY = "7f5c1a08" * 8
CRYPT = f"0 2097152 crypt aes-xts-plain64 {KEY} 0 8:16 4096"
# Notes what anybody can read of it, and tells what a kernel would.
WATCHED = """\
#!/bin/sh
echo "$0 $*" >> {seen}
env >> {seen}
case "$1" in
    create|load) cat > {tables}/"$1" ;;
    info) echo data ;;
    table) printf '%s\\n' '{table}' ;;
    suspend) echo 'device-mapper: suspend ioctl failed' >&2; exit 1 ;;
esac
"""


@pytest.mark.parametrize("attaches", [True, False])
def test_no_key_of_a_table_is_in_a_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, attaches: bool
) -> None:
    program = tmp_path / "dmsetup"
    program.write_text(WATCHED.format(seen=tmp_path / "seen", tables=tmp_path, table=CRYPT))
    program.chmod(0o755)
    monkeypatch.setattr(device_mapper, "PATH", f"{tmp_path}:/usr/bin:/bin")
    if attaches:
        with pytest.raises(RunError) as caught:
            live.attach("data", SSD, manage.line_of(FLASHCACHE, {}), device_mapper.dmsetup)
        assert KEY not in str(caught.value)
    else:
        device_mapper.dmsetup("create", "data", table=CRYPT)
    assert KEY not in (tmp_path / "seen").read_text()
    # It was told all the same; what failed was taken back.
    assert (tmp_path / "create").read_text() == CRYPT
    assert not attaches or "clear data" in (tmp_path / "seen").read_text()
