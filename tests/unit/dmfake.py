# SPDX-License-Identifier: GPL-2.0-only
"""device-mapper and dm-setcache in memory, as dmsetup shows them; what `isoblk cache` does to them
can be made to fail, or be interrupted, anywhere."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from isoblk.cachectl import manage
from isoblk.cachectl.manage import Volume
from isoblk.caches.setcache import NUMBERS, PERSONALITIES
from isoblk.errors import RunError

FLASHCACHE = PERSONALITIES["flashcache"]
ORIGIN, SSD = Volume("/dev/sdb", 1 << 30, "8:16"), Volume("/dev/sdc", 1 << 27, "8:32")


class Fault(Enum):
    """How a call ends: an error of dmsetup or an interrupt, when nothing, a part or all is done."""

    REFUSED = (RunError, 0)
    HALF_DONE = (RunError, 0.5)
    DIED = (RunError, 1)
    STOPPED = (KeyboardInterrupt, 0)
    STOPPED_HALF_DONE = (KeyboardInterrupt, 0.5)
    STOPPED_TOO_LATE = (KeyboardInterrupt, 1)


@dataclass
class Device:
    """A device-mapper device.

    Attributes:
        loaded: its table to come.
        flying: writes under way that become dirty when they end, which a suspension waits for.
        lost: dirty blocks that a table or a removal took out of reach.
    """

    table: str
    uuid: str = ""
    loaded: str = ""
    open: int = 0
    dirty: int = 0
    flying: int = 0
    suspended: bool = False
    cleaning: bool = False

    @property
    def is_cache(self) -> bool:
        return " setcache " in self.table

    @property
    def mode(self) -> str:
        return self.table.split()[7]


@dataclass
class FakeMapper:
    """dmsetup, with a dm-setcache that cleans a hundred blocks whenever it is looked at.

    Attributes:
        refuses: how the command lines begin that fail.
        why: they do.
        faults: calls, counted from 0, that end otherwise.
        arrivals: writes that come before calls; they fly until the device is suspended.
        lost: dirty blocks that a table or a removal took out of reach.
    """

    devices: dict[str, Device] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    refuses: str = ""
    why: str = "Invalid argument"
    stuck: bool = False
    faults: dict[int, Fault] = field(default_factory=dict)
    arrivals: dict[int, int] = field(default_factory=dict)
    lost: int = 0

    def __call__(self, *words: str, table: str = "") -> str:
        number = len(self.asked)
        self.asked.append(" ".join([*words, table]).strip())
        for device in self.devices.values():
            if device.is_cache and not device.suspended and device.mode == "writeback":
                device.flying += self.arrivals.get(number, 0)
        if self.refuses and self.asked[-1].startswith(self.refuses):
            raise RunError(self.why)
        act: Callable[..., str | None] = getattr(self, f"_{words[0]}")
        error, done = self.faults[number].value if number in self.faults else (None, 1)
        if done == 0.5:
            self._half(*words)
        said = act(*words[1:], *[table] * bool(table)) if done == 1 else ""
        if error:
            raise error(self.why)
        return said or ""

    def _half(self, what: str, name: str, *_: str) -> None:
        """A device that has no table yet; a table that has the place of the former one, and refuses
        to begin. Other things are done or not."""
        if what == "create":
            self._device(name, new=True)
        elif what == "resume":
            device = self._device(name)
            if device.loaded:
                self._resume(name)
                device.suspended = True

    def _targets(self) -> str:
        return "linear  v1.5.0\nsetcache  v1.0.0\n"

    def _info(self, *words: str) -> str:
        if words[3] == "name":
            return "".join(f"{name}\n" for name in self.devices) or "No devices found\n"
        device = self._device(words[-1])
        attributes = f"L{'I' if device.loaded else '-'}{'s' if device.suspended else '-'}w"
        return {"open": str(device.open), "attr": attributes, "uuid": device.uuid}[words[3]] + "\n"

    def _device(self, name: str, *, new: bool = False) -> Device:
        if new:
            self.devices[name] = Device("")
        if name not in self.devices:
            raise RunError("Device does not exist.")
        return self.devices[name]

    def _create(self, name: str, *words: str) -> None:
        if name in self.devices:
            raise RunError("Device or resource busy")
        uuid = words[1] if words[0] == "--uuid" else ""
        self.devices[name] = Device(words[-1], uuid)

    def _remove(self, *words: str) -> None:
        device = self._device(words[-1])
        if device.open:
            raise RunError("Device or resource busy")
        if any(f"/dev/mapper/{words[-1]} " in f"{one.table} " for one in self.devices.values()):
            raise RunError("Device or resource busy")
        self._finish(device)
        self.lost += device.dirty
        del self.devices[words[-1]]

    def _load(self, name: str, table: str) -> None:
        self._device(name).loaded = table

    def _clear(self, name: str) -> None:
        self._device(name).loaded = ""

    def _suspend(self, *words: str) -> None:
        device = self._device(words[-1])
        device.suspended = True
        self._finish(device)

    def _finish(self, device: Device) -> None:
        device.dirty += device.flying
        device.flying = 0

    def _resume(self, name: str) -> None:
        device = self._device(name)
        if device.loaded:
            self._finish(device)
            self.lost += device.dirty
            device.dirty = 0
        device.table, device.loaded = device.loaded or device.table, ""
        device.suspended = False

    def _table(self, *words: str) -> str:
        table = self._device(words[-1]).table
        if " setcache " in table:
            parts = table.split()
            table = " ".join([*parts[:3], "8:16", "8:32", *parts[5:]])
        return table + "\n"

    def _message(self, name: str, _: str, what: str, value: str = "") -> None:
        device = self._device(name)
        words = device.table.split()
        if what == "clean":
            device.cleaning = True
        elif what == "stop_clean":
            device.cleaning = False
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
            caches = [n for n, d in self.devices.items() if d.is_cache]
            return "".join(f"{name}: {self._status(name)}" for name in caches)
        device = self._device(words[-1])
        parts = device.table.split()
        if parts[2] != "setcache":
            return " ".join(parts[:3]) + "\n"
        if device.cleaning and not self.stuck and not device.suspended:
            device.dirty = max(0, device.dirty - 100)
        cleaning = device.cleaning and device.dirty > 0
        counts = dict.fromkeys(
            (
                *("sets", "used", "read", "read_hit", "read_miss", "read_bypass", "write"),
                *("write_hit", "write_new", "write_bypass", "cleaned", "ssd_errors"),
                *("origin_errors", "lost_errors"),
            ),
            0,
        )
        counts |= {"block": 8, "assoc": 512, "slots": 32_768, "dirty": device.dirty}
        counts["clean_errors"] = int(self.stuck and device.cleaning)
        pairs = " ".join(f"{key} {value}" for key, value in counts.items())
        return (
            f"0 {parts[1]} setcache state ok mode {parts[7]} policy {parts[8]}"
            f" cleaning {int(cleaning)} {pairs}\n"
        )


def no_wait(_: float) -> None:
    """Sleep, in no time."""


def make_cache(mapper: FakeMapper, dirty: int = 0) -> Device:
    """The cache "fast", with so many dirty blocks."""
    manage.create("fast", ORIGIN, SSD, manage.line_of(FLASHCACHE, {}), mapper)
    mapper.devices["fast"].dirty = dirty
    return mapper.devices["fast"]
