# SPDX-License-Identifier: GPL-2.0-only
"""dm-cache and dm-writecache, set up as in the kernel's Documentation/admin-guide/device-mapper."""

from collections.abc import Mapping

from isoblk.caches.base import (
    NAME,
    SECTOR,
    TABLE,
    Cache,
    Counters,
    Parts,
    choice,
    create,
    known,
    save_table,
    sectors,
    size_option,
    whole,
)
from isoblk.run.options import OptionError
from isoblk.run.record import Identity
from isoblk.run.setting import Setting
from isoblk.run.shell import Command, Statement, Syntax, run
from isoblk.run.spec import Options

_PAGE = 4096
_MIB = 1 << 20


class DmTarget(Cache):
    """Common parts of caches that are device-mapper targets."""

    def needs(self) -> Mapping[str, str]:  # noqa: D102
        return {"dmsetup": "dmsetup"}

    def table(self, options: Options, parts: Parts) -> str:
        """Return the target's line, from its name on."""
        raise NotImplementedError

    def attach(self, options: Options, parts: Parts) -> list[Statement]:  # noqa: D102
        line = f"0 {parts.origin_sectors} {self.table(options, parts)}"
        return [create(line), save_table(parts)]

    def device(self, parts: Parts) -> str:  # noqa: D102
        return f"/dev/mapper/{NAME}"

    def block(self, parts: Parts) -> str:  # noqa: D102
        return "dm-0"

    def tables(self, options: Options, parts: Parts) -> list[Setting]:  # noqa: D102
        line = f"0 {parts.origin_sectors} {self.table(options, parts)}"
        return [Setting(f"{parts.run}/{TABLE}", line, "table")]

    def status(self) -> Command:  # noqa: D102
        return run("dmsetup", "status", "--noflush", NAME)

    def detach(self, parts: Parts) -> list[Statement]:  # noqa: D102
        return [run("dmsetup", "remove", NAME)]


class DmCache(DmTarget):
    """Options: mode, block (a multiple of 32 KiB), migration_threshold (sectors), policy."""

    name = "dm-cache"
    _modes = ("writeback", "writethrough", "passthrough")
    _policies = ("default", "smq", "mq", "cleaner")

    def check(self, options: Options, ssd_bytes: int) -> None:  # noqa: D102
        known(options, ("mode", "block", "migration_threshold", "policy"))
        choice(options, "mode", self._modes)
        choice(options, "policy", self._policies)
        whole(options, "migration_threshold", 2048, 1, 1 << 31)
        block = _block(options)
        if block % (32 << 10) or not 32 << 10 <= block <= 1 << 30:
            raise OptionError("block", f"{block} bytes", next="allowed: multiples of 32k, up to 1g")
        if self.regions(options, ssd_bytes)[1] < block:
            raise OptionError(
                "block", "the SSD has no room for a block", next="set a smaller block"
            )

    def regions(self, options: Options, ssd_bytes: int) -> tuple[int, ...]:
        """Return the metadata first: 4 MiB and 16 bytes per block, as in the documentation."""
        metadata = 4 * _MIB + 16 * (ssd_bytes // _block(options))
        metadata += -metadata % _PAGE
        return metadata, ssd_bytes - metadata

    def table(self, options: Options, parts: Parts) -> str:  # noqa: D102
        metadata, data = parts.ssd
        threshold = options.get("migration_threshold")
        arguments = f"2 migration_threshold {threshold}" if threshold else "0"
        return (
            f"cache /dev/{metadata} /dev/{data} /dev/{parts.origin} {sectors(_block(options))}"
            f" 1 {choice(options, 'mode', self._modes)}"
            f" {choice(options, 'policy', self._policies)} {arguments}"
        )

    def attach(self, options: Options, parts: Parts) -> list[Statement]:  # noqa: D102
        # Zeros make the target format the metadata.
        to = f"of=/dev/{parts.ssd[0]}"
        zeros = ("dd", "if=/dev/zero", to, "bs=4096", "count=1", "oflag=direct")
        return [run(*zeros, Syntax.QUIET), *super().attach(options, parts)]

    def counters(self, files: Mapping[str, str], status: str) -> dict[str, int]:  # noqa: D102
        words = status.split()
        if words[2:3] != ["cache"] or len(words) < 15:
            raise ValueError(f"not the status of a cache: {status[:80]!r}")
        names = (
            *("read_hits", "read_misses", "write_hits", "write_misses"),
            *("demotions", "promotions", "dirty"),
        )
        found = dict(zip(names, map(int, words[7:14]), strict=True))
        return found | {"blocks": int(words[6].partition("/")[0])}

    def hits(self, change: Counters) -> tuple[int, int]:  # noqa: D102
        return change["read_hits"], change["read_hits"] + change["read_misses"]

    def identities(self, change: Counters, after: Counters, options: Options) -> list[Identity]:  # noqa: D102
        mode = choice(options, "mode", self._modes)
        copied_out = (
            change["origin.read_bytes"] + change["data.read_bytes"] - change["top.read_bytes"]
        )
        copied_in = (
            change["origin.write_bytes"] + change["data.write_bytes"] - change["top.write_bytes"]
        )
        found = [
            Identity(
                text="reads = read hits + read misses",
                left=change["top.reads"],
                right=change["read_hits"] + change["read_misses"],
            )
        ]
        block = _block(options)
        if mode == "writeback":
            found.append(
                Identity(
                    text="bytes copied between SSD and origin: read = written",
                    left=copied_out,
                    right=copied_in,
                    slack=block,  # a copy in progress
                )
            )
        else:
            found += [
                Identity(
                    text="bytes written to the origin = bytes written",
                    left=change["origin.write_bytes"],
                    right=change["top.write_bytes"],
                ),
                Identity(
                    text="bytes copied = promotions x block",
                    left=copied_out,
                    right=change["promotions"] * block,
                    slack=block,
                ),
            ]
        return found


class DmWritecache(DmTarget):
    """Options: block (bytes), and numbers of the target's table: high_watermark, low_watermark,
    writeback_jobs, autocommit_blocks, autocommit_time, max_age, pause_writeback."""

    name = "dm-writecache"
    # In the order in which the kernel prints them.
    _numbers = (
        *("high_watermark", "low_watermark", "writeback_jobs", "autocommit_blocks"),
        *("autocommit_time", "max_age", "pause_writeback"),
    )

    def check(self, options: Options, ssd_bytes: int) -> None:  # noqa: D102
        known(options, ("block", *self._numbers))
        for name in self._numbers:
            whole(options, name, 0, 0, 1 << 31)
        block = size_option(options, "block", _PAGE)
        if block not in (512, 1024, 2048, _PAGE):
            raise OptionError("block", f"{block} bytes", next="allowed: 512, 1k, 2k, 4k")

    def table(self, options: Options, parts: Parts) -> str:  # noqa: D102
        words = [f"{name} {options[name]}" for name in self._numbers if name in options]
        return " ".join(
            [
                f"writecache s /dev/{parts.origin} /dev/{parts.ssd[0]}",
                str(size_option(options, "block", _PAGE)),
                str(2 * len(words)),
                *words,
            ]
        )

    def counters(self, files: Mapping[str, str], status: str) -> dict[str, int]:  # noqa: D102
        words = status.split()
        if words[2:3] != ["writecache"] or len(words) < 17:
            raise ValueError(f"not the status of a writecache: {status[:80]!r}")
        names = (
            *("error", "blocks", "free", "in_writeback", "reads", "read_hits", "writes"),
            *("write_hits_uncommitted", "write_hits_committed", "writes_around"),
            *("writes_allocate", "writes_blocked", "flushes", "discards"),
        )
        return dict(zip(names, map(int, words[3:17]), strict=True))

    def hits(self, change: Counters) -> tuple[int, int]:  # noqa: D102
        return change["read_hits"], change["reads"]

    def bypassed(self, change: Counters) -> int | None:  # noqa: D102
        return change["top.write_bytes"] * change["writes_around"] // max(1, change["writes"])

    def identities(self, change: Counters, after: Counters, options: Options) -> list[Identity]:  # noqa: D102
        block = size_option(options, "block", _PAGE)
        return [
            Identity(
                text=f"bytes {what} = blocks {what} x {block // SECTOR} sectors",
                left=change[f"top.{name}_bytes"],
                right=change[f"{name}s"] * block,
            )
            for what, name in (("read", "read"), ("written", "write"))
        ]


def _block(options: Options) -> int:
    return size_option(options, "block", "256k")
