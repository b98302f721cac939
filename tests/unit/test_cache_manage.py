# SPDX-License-Identifier: GPL-2.0-only
"""`isoblk cache` asks device-mapper for the right things in the right order, and leaves a device as
it was when something fails."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from isoblk.cache import contents, manage, volumes
from isoblk.cache import format as layout
from isoblk.cache.manage import Volume
from isoblk.cache.setcache import NUMBERS, PERSONALITIES
from isoblk.errors import RunError, UserError
from isoblk.machine.blockdev import Disk

FLASHCACHE = PERSONALITIES["flashcache"]
ORIGIN, SSD = Volume("/dev/sdb", 1 << 30, "8:16"), Volume("/dev/sdc", 1 << 27, "8:32")


@dataclass
class Device:
    """A device-mapper device. loaded: its table to come."""

    table: str
    loaded: str = ""
    open: int = 0
    dirty: int = 0
    suspended: bool = False


@dataclass
class FakeMapper:
    """dmsetup, with a dm-setcache that cleans a hundred blocks whenever it is looked at."""

    devices: dict[str, Device] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    refuses: str = ""
    why: str = "Invalid argument"
    cleaning: set[str] = field(default_factory=set)
    stuck: bool = False

    def __call__(self, *words: str, table: str = "") -> str:
        self.asked.append(" ".join([*words, *table.splitlines()[:1]]))
        if self.refuses and self.asked[-1].startswith(self.refuses):
            raise RunError(self.why)
        act: Callable[..., str | None] = getattr(self, f"_{words[0]}")
        return act(*words[1:], *([table] if table else [])) or ""

    def _targets(self) -> str:
        return "linear  v1.5.0\nsetcache  v1.0.0\n"

    def _info(self, *words: str) -> str:
        if words[3] == "name":
            return "".join(f"{name}\n" for name in self.devices) or "No devices found\n"
        return f"{self.devices[words[-1]].open}\n"

    def _create(self, name: str, table: str) -> None:
        self.devices[name] = Device(table)

    def _remove(self, name: str) -> None:
        del self.devices[name]

    def _load(self, name: str, table: str) -> None:
        self.devices[name].loaded = table

    def _suspend(self, name: str) -> None:
        self.devices[name].suspended = True

    def _resume(self, name: str) -> None:
        device = self.devices[name]
        device.table, device.loaded = device.loaded or device.table, ""
        device.suspended = False

    def _table(self, *words: str) -> str:
        table = self.devices[words[-1]].table
        if " setcache " in table:
            parts = table.split()
            table = " ".join([*parts[:3], "8:16", "8:32", *parts[5:]])
        return table + "\n"

    def _message(self, name: str, _: str, what: str, value: str = "") -> None:
        device = self.devices[name]
        words = device.table.split()
        if what == "clean":
            self.cleaning.add(name)
        elif what in ("mode", "policy"):
            words[7 if what == "mode" else 8] = value
        else:
            numbers = dict(zip(words[10::2], words[11::2], strict=True)) | {what: value}
            own = [
                word
                for key, number in numbers.items()
                if int(number) != NUMBERS[key][0]
                for word in (key, number)
            ]
            words[9:] = [str(len(own)), *own]
        device.table = " ".join(words)

    def _status(self, *words: str) -> str:
        if "--target" in words:
            caches = [n for n, d in self.devices.items() if " setcache " in d.table]
            return "".join(f"{name}: {self._status(name)}" for name in caches)
        name = words[-1]
        device = self.devices[name]
        parts = device.table.split()
        if parts[2] != "setcache":
            return " ".join(parts[:3]) + "\n"
        if name in self.cleaning and not self.stuck:
            device.dirty = max(0, device.dirty - 100)
        counts = dict.fromkeys(
            (
                *("sets", "used", "read", "read_hit", "read_miss", "read_bypass", "write"),
                *("write_hit", "write_new", "write_bypass", "cleaned", "ssd_errors"),
                *("origin_errors", "lost_errors"),
            ),
            0,
        )
        counts |= {"block": 8, "assoc": 512, "slots": 32_768, "dirty": device.dirty}
        counts["clean_errors"] = int(self.stuck and name in self.cleaning)
        pairs = " ".join(f"{key} {value}" for key, value in counts.items())
        return (
            f"0 {parts[1]} setcache state ok mode {parts[7]} policy {parts[8]} cleaning 0 {pairs}\n"
        )


@pytest.fixture
def mapper() -> FakeMapper:
    return FakeMapper()


def _no_wait(_: float) -> None:
    pass


def _cache(mapper: FakeMapper, dirty: int = 0) -> Device:
    manage.create("fast", ORIGIN, SSD, manage.line_of(FLASHCACHE, {}), mapper)
    mapper.devices["fast"].dirty = dirty
    return mapper.devices["fast"]


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
    _cache(mapper)
    with pytest.raises(UserError, match="there is a device-mapper device 'fast'"):
        manage.refuse_name("fast", mapper)


def test_a_device_of_another_kind_is_not_touched(mapper: FakeMapper) -> None:
    mapper.devices["root"] = Device("0 2097152 linear 8:1 0")
    for act in (manage.find, manage.clean, manage.delete):
        with pytest.raises(UserError, match=r"root: is not a cache of setcache \(linear\)"):
            act("root", mapper)
    assert not any(one.startswith(("message", "remove", "load")) for one in mapper.asked)


def test_delete_cleans_first_and_says_how_far_it_is(mapper: FakeMapper) -> None:
    _cache(mapper, dirty=250)
    told: list[tuple[int, int]] = []
    assert manage.delete("fast", mapper, lambda *pair: told.append(pair), _no_wait) == "8:32"
    assert mapper.devices == {}
    assert told == sorted(told) and told[-1][0] == told[-1][1]
    order = [one for one in mapper.asked if one.startswith(("message", "remove"))]
    assert order == ["message fast 0 mode writethrough", "message fast 0 clean", "remove fast"]


def test_a_cache_that_cannot_be_cleaned_stays_and_in_its_mode(mapper: FakeMapper) -> None:
    device = _cache(mapper, dirty=250)
    mapper.stuck = True
    with pytest.raises(RunError, match="250 blocks cannot be cleaned"):
        manage.delete("fast", mapper, sleep=_no_wait)
    assert mapper.devices["fast"] is device
    assert manage.find("fast", mapper).mode == "writeback"


def test_a_cache_in_use_is_not_deleted(mapper: FakeMapper) -> None:
    _cache(mapper).open = 1
    with pytest.raises(UserError, match="fast: is in use; unmount it"):
        manage.delete("fast", mapper, sleep=_no_wait)
    assert not any(one.startswith("message") for one in mapper.asked)


FORMER = "0 1048576 linear 8:16 0\n1048576 1048576 linear 8:48 2048"


def test_attach_swaps_the_table_and_delete_swaps_it_back(mapper: FakeMapper) -> None:
    mapper.devices["data"] = Device(FORMER, open=1)
    manage.attach("data", SSD, manage.line_of(FLASHCACHE, {}), mapper)
    assert mapper.devices["data-origin"].table == FORMER
    assert mapper.devices["data"].table.startswith(
        "0 2097152 setcache /dev/mapper/data-origin 8:32 8 512"
    )
    # In use all the time.
    manage.delete("data", mapper, sleep=_no_wait)
    assert mapper.devices == {"data": Device(FORMER, open=1)}


@pytest.mark.parametrize("step", ["load data 0 2097152 setcache", "suspend data"])
def test_an_attach_that_fails_leaves_the_device_as_it_was(step: str, mapper: FakeMapper) -> None:
    mapper.devices["data"] = Device(FORMER, open=1)
    mapper.refuses = step
    with pytest.raises(RunError):
        manage.attach("data", SSD, manage.line_of(FLASHCACHE, {}), mapper)
    assert mapper.devices["data"].table == FORMER
    assert not mapper.devices["data"].suspended
    assert " setcache " not in mapper.devices["data"].loaded
    assert "data-origin" not in mapper.devices


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
    assert manage.reason_of(line) == reason


def test_a_refusal_says_cause_place_and_next_step(mapper: FakeMapper) -> None:
    mapper.refuses = "create"
    mapper.why = "the record of slot 32 is damaged: run isoblk cache check"
    with pytest.raises(RunError) as caught:
        manage.create("fast", ORIGIN, SSD, manage.line_of(FLASHCACHE, {}), mapper)
    assert str(caught.value) == (
        "fast: the kernel refuses: the record of slot 32 is damaged; isoblk cache check /dev/sdc"
    )


def test_edit_changes_a_live_cache(mapper: FakeMapper) -> None:
    _cache(mapper)
    state = manage.edit("fast", {"mode": "thru", "policy": "lru"}, FLASHCACHE, mapper)
    assert (state.mode, state.policy) == ("writethrough", "lru")


def test_marks_move_in_an_order_in_which_low_is_never_above_high(mapper: FakeMapper) -> None:
    _cache(mapper)
    for high, low in ((80, 70), (10, 5)):
        mapper.asked.clear()
        manage.edit("fast", {"set_high": high, "set_low": low}, FLASHCACHE, mapper)
        sent = [one.split()[3] for one in mapper.asked if one.startswith("message")]
        assert sent == (["set_high", "set_low"] if high == 80 else ["set_low", "set_high"])


def test_what_cannot_change_while_it_lives_is_refused(mapper: FakeMapper) -> None:
    _cache(mapper)
    with pytest.raises(UserError, match="block cannot change"):
        manage.edit("fast", {"block": 8192}, FLASHCACHE, mapper)


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
    for one, other, why in ((whole, whole, "named twice"), (whole, part, "is a part of /dev/sdb")):
        with pytest.raises(UserError, match=why):
            volumes.refuse_overlap(one, other)


@pytest.mark.parametrize(
    ("said", "error", "text"),
    [
        (
            "/dev/mapper/control: open failed: No such device\n"
            "Failure to communicate with kernel device-mapper driver.\n",
            UserError,
            "the kernel has no device-mapper; modprobe dm-mod",
        ),
        (
            "/dev/mapper/control: open failed: Permission denied\n"
            "Failure to communicate with kernel device-mapper driver.\n",
            UserError,
            "no right to use device-mapper; run as root",
        ),
        ("device-mapper: reload ioctl failed\nCommand failed.\n", RunError, "dmsetup table"),
    ],
)
def test_what_dmsetup_complains_of_is_told_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, error: type[Exception], text: str
) -> None:
    program = tmp_path / "dmsetup"
    program.write_text(f"#!/bin/sh\nprintf '{said}' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(manage, "PATH", str(tmp_path))
    with pytest.raises(error, match=text) as caught:
        manage.dmsetup("table")
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
    monkeypatch.setattr(manage, "PATH", f"{tmp_path}:/usr/bin:/bin")
    if attaches:
        with pytest.raises(RunError) as caught:
            manage.attach("data", SSD, manage.line_of(FLASHCACHE, {}), manage.dmsetup)
        assert KEY not in str(caught.value)
    else:
        manage.dmsetup("create", "data", table=CRYPT)
    assert KEY not in (tmp_path / "seen").read_text()
    # It was told all the same; what failed was taken back.
    assert (tmp_path / "create").read_text() == CRYPT
    assert not attaches or (tmp_path / "load").read_text() == CRYPT
