# SPDX-License-Identifier: GPL-2.0-only
"""dm-setcache with its own defaults, and with those of Flashcache and of EnhanceIO.
kernel/cache/README.md is the target's contract.

A personality has the documented defaults of a program. An undocumented one is the target's own
default, as docs/guides/cache.md states.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from isoblk.caches.base import SECTOR, Counters, Parts, choice, known, size_option, whole
from isoblk.caches.dm import DmTarget
from isoblk.run.options import OptionError
from isoblk.run.record import Identity
from isoblk.run.spec import Options

TARGET = "setcache"
MODES = ("writeback", "writethrough", "writearound", "readonly", "writeonly")
POLICIES = ("fifo", "lru", "random")
# Numbers of the target, in its order: default, least, most.
NUMBERS: dict[str, tuple[int, int, int]] = {
    "seq_read_kb": (0, 0, 1 << 30),
    "seq_write_kb": (0, 0, 1 << 30),
    "dirty_high": (100, 0, 100),
    "dirty_low": (90, 0, 100),
    "set_high": (20, 0, 100),
    "set_low": (15, 0, 100),
    "idle_ms": (0, 0, 1 << 30),
    "age_ms": (0, 0, 1 << 30),
    "clean_ios": (16, 1, 1024),
    "clean_set": (128, 1, 4096),
    "clean_gate": (0, 0, 1 << 20),
    "commit_ms": (1000, 1, 60_000),
    "accept_origin": (0, 0, 1),
    "trust": (0, 0, 1),
}
# The parts of a counter that is a sum (kernel/cache/README.md).
_SUMS = {
    "read": ("read_hit", "read_miss"),
    "write": ("write_hit", "write_new", "write_bypass"),
    "origin_read": ("read_miss", "fill_extra", "rmw_read"),
    "origin_write": ("write_bypass", "through", "clean"),
    "ssd_read": ("read_hit", "clean_read"),
}
_RECORDS = 4096  # bytes of a block of records
_SUPERBLOCKS = 16 << 10
_ASSOC = (16, 4096)
_BLOCKS = [1 << shift for shift in range(9, 17)]


@dataclass(frozen=True)
class Personality:
    """The defaults of a program.

    Attributes:
        name: in studies and on the command line.
        mode: the default.
        words: its own words for modes, and policies.
        policy, block, assoc: defaults; block in bytes.
        numbers: that differ from the target's defaults.
        blocks: allowed sizes of a block.
    """

    name: str
    mode: str
    words: Mapping[str, str]
    policy: str
    block: int
    assoc: int
    numbers: Mapping[str, int]
    blocks: Sequence[int]


PERSONALITIES = {
    one.name: one
    for one in (
        Personality(
            name="flashcache",
            mode="writeback",
            words={"back": "writeback", "thru": "writethrough", "around": "writearound"},
            policy="fifo",
            block=4096,
            assoc=512,
            # dirty_thresh_pct 20, fallow_delay 900 s, max_clean_ios_total 4 and _set 2.
            numbers={
                "set_high": 20,
                "set_low": 20,
                "age_ms": 900_000,
                "clean_ios": 4,
                "clean_set": 2,
            },
            blocks=_BLOCKS,
        ),
        Personality(
            name="enhanceio",
            mode="writethrough",
            words={
                "wb": "writeback",
                "wt": "writethrough",
                "ro": "readonly",
                "rand": "random",
            },
            policy="fifo",
            block=4096,
            assoc=512,
            numbers={},
            blocks=(2048, 4096, 8192),
        ),
        # The usual values in its README, and options at their defaults.
        Personality(
            name=TARGET,
            mode="writeback",
            words={},
            policy="lru",
            block=4096,
            assoc=512,
            numbers={},
            blocks=_BLOCKS,
        ),
    )
}


@dataclass(frozen=True)
class Line:
    """The part of a table's line after the devices: block in bytes, mode, policy, numbers by name;
    and a word for the origin, or ""."""

    block: int
    assoc: int
    mode: str
    policy: str
    numbers: Mapping[str, int]
    origin_id: str = ""

    def words(self) -> list[str]:
        """Return the words from the size of a block on. A number at its default is omitted, as in
        the kernel's own table."""
        own = [
            word
            for name, (default, _, _) in NUMBERS.items()
            if self.numbers.get(name, default) != default
            for word in (name, str(self.numbers[name]))
        ]
        if self.origin_id:
            own += ["origin_id", self.origin_id]
        return [
            str(self.block // SECTOR),
            str(self.assoc),
            self.mode,
            self.policy,
            str(len(own)),
            *own,
        ]


def read_line(options: Options, personality: Personality) -> Line:
    """Return the options over the defaults of a personality.

    Raises:
        OptionError: an option is unknown, or has an invalid value.
    """
    known(options, ("mode", "policy", "block", "assoc", *NUMBERS))
    words: Options = {
        name: personality.words.get(str(options[name]), options[name])
        for name in ("mode", "policy")
        if name in options
    }
    block = size_option(options, "block", personality.block)
    if block not in personality.blocks:
        sizes = ", ".join(map(str, personality.blocks))
        raise OptionError(
            "block", f"{personality.name} has no block of {block} bytes", next=f"allowed: {sizes}"
        )
    assoc = whole(options, "assoc", personality.assoc, *_ASSOC)
    if assoc & (assoc - 1):
        raise OptionError("assoc", f"{assoc} is not a power of two", next="allowed: 16..4096")
    numbers = dict(personality.numbers)
    for name, (default, least, most) in NUMBERS.items():
        if name in options:
            numbers[name] = whole(options, name, default, least, most)
    merged = {name: numbers.get(name, default) for name, (default, _, _) in NUMBERS.items()}
    for kind in ("dirty", "set"):
        if merged[f"{kind}_low"] > merged[f"{kind}_high"]:
            raise OptionError(
                f"{kind}_low",
                f"{merged[f'{kind}_low']} is above {kind}_high",
                next=f"allowed: up to {merged[f'{kind}_high']}",
            )
    return Line(
        block=block,
        assoc=assoc,
        mode=_word(words, "mode", personality.mode, MODES, personality.words),
        policy=_word(words, "policy", personality.policy, POLICIES, personality.words),
        numbers=numbers,
    )


def _word(
    options: Options,
    name: str,
    default: str,
    allowed: Sequence[str],
    own: Mapping[str, str],
) -> str:
    """Return the option's value. own: the personality's words, which the error names too."""
    try:
        return choice({name: default, **options}, name, allowed)
    except OptionError as error:
        also = [word for word, meaning in own.items() if meaning in allowed]
        raise OptionError(name, error.cause, next=", ".join([error.next, *also])) from None


def parse_status(words: Sequence[str]) -> dict[str, str]:
    """Parse the target's status, from its name on: NAME VALUE pairs.

    Raises:
        ValueError: it is of another target.
    """
    if not words or words[0] != TARGET or len(words) % 2 == 0:
        raise ValueError(f"not the status of a {TARGET}: {' '.join(words)[:80]!r}")
    return dict(zip(words[1::2], words[2::2], strict=True))


class Setcache(DmTarget):
    """Options: mode, policy, block, assoc, and the target's own, by its names."""

    def __init__(self, personality: Personality) -> None:
        self.name = personality.name
        self._personality = personality

    @property
    def modules(self) -> tuple[str, ...]:  # noqa: D102
        return ("dm-setcache",)

    def check(self, options: Options, ssd_bytes: int) -> None:  # noqa: D102
        line = read_line(options, self._personality)
        if ssd_bytes < 2 * line.block * line.assoc:
            raise OptionError("assoc", "the SSD has no room for a set", next="set a smaller assoc")

    def table(self, options: Options, parts: Parts) -> str:  # noqa: D102
        line = read_line(options, self._personality)
        return " ".join([TARGET, f"/dev/{parts.origin}", f"/dev/{parts.ssd[0]}", *line.words()])

    def counters(self, files: Mapping[str, str], status: str) -> dict[str, int]:  # noqa: D102
        found = parse_status(status.split()[2:])
        return {name: int(value) for name, value in found.items() if value.isdigit()}

    def hits(self, change: Counters) -> tuple[int, int]:  # noqa: D102
        return change["read_hit"], change["read"]

    def bypassed(self, change: Counters) -> int | None:  # noqa: D102
        return (change["read_bypass"] + change["write_bypass"]) * SECTOR

    def identities(  # noqa: D102
        self, change: Counters, after: Counters, options: Options
    ) -> list[Identity]:
        line = read_line(options, self._personality)
        # A round of cleaning may be in progress, in one set; superblocks are not counted.
        slack = _SUPERBLOCKS + line.block * line.assoc
        found = [
            Identity(
                text=f"sectors: {name} = {' + '.join(parts)}",
                left=change[name],
                right=sum(change[part] for part in parts),
                slack=slack // SECTOR,
            )
            for name, parts in _SUMS.items()
        ]
        found.append(
            Identity(
                text="sectors: ssd_write = fill + write_hit + write_new + rmw_extra + records",
                left=change["ssd_write"],
                right=sum(change[part] for part in ("fill", "write_hit", "write_new", "rmw_extra"))
                + change["record_blocks"] * _RECORDS // SECTOR,
                slack=slack // SECTOR,
            )
        )
        found += [
            Identity(
                text=f"bytes {done} at {name} = sectors that the cache counted",
                left=change[f"{where}.{op}_bytes"],
                right=change[f"{prefix}{op}"] * SECTOR,
                slack=slack,
            )
            for where, name, prefix in (
                ("top", "the cached device", ""),
                ("origin", "the origin", "origin_"),
                ("ssd", "the SSD", "ssd_"),
            )
            for op, done in (("read", "read"), ("write", "written"))
        ]
        return found
