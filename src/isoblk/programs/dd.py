# SPDX-License-Identifier: GPL-2.0-only
"""dd: write or read one file from beginning to end."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from isoblk.programs.base import Program, Task, read_options, size_of
from isoblk.run.options import OptionError, said
from isoblk.run.record import Figure
from isoblk.run.shell import Statement, Syntax, run
from isoblk.run.spec import Options

# Not BusyBox's.
_DD = "/usr/bin/dd"
_FILE = "file"
_WRITE = (_DD, "if=/dev/zero", f"of={_FILE}")
# "67108864 bytes (67 MB, 64 MiB) copied, 0.00131098 s, 51.2 GB/s"
_SUMMARY = re.compile(r"^(\d+) bytes .*copied, ([\d.e+-]+) s,", re.MULTILINE)


class DdOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """dd's own options."""

    direction: Annotated[Literal["write", "read"], said("Write a new file, or read one.")] = "write"
    bs: Annotated[int | str, said("Size of a block, in dd's format.")] = "1m"
    count: Annotated[int, said("Number of blocks.")]
    flag: Annotated[
        Literal["direct", "sync", "dsync", ""],
        said('Flag of the file (oflag or iflag); "": through the page cache.'),
    ] = "direct"
    conv: Annotated[Literal["fdatasync", "fsync", ""], said("For writes: flush at the end.")] = ""


class Dd(Program):
    """dd of coreutils."""

    name = "dd"
    own_options = DdOptions

    def needs(self, options: Options) -> Mapping[str, str]:  # noqa: D102
        return {"dd": "coreutils"}

    def check(self, options: Options) -> None:  # noqa: D102
        asked = read_options(options, DdOptions)
        size_of("bs", asked.bs)
        if asked.count < 1:
            raise OptionError("count", f"{asked.count} blocks", next="allowed: 1 and more")
        if asked.direction == "read" and asked.conv:
            raise OptionError("conv", "not allowed when a file is read", next="remove it")

    def timed(self, options: Options) -> bool:  # noqa: D102
        return False

    def prepare(self, task: Task) -> list[Statement]:  # noqa: D102
        asked = read_options(task.options, DdOptions)
        if asked.direction == "write":
            return []
        return [run(*_WRITE, *_blocks(asked), "oflag=direct", Syntax.QUIET)]

    def command(self, task: Task) -> Statement:  # noqa: D102
        asked = read_options(task.options, DdOptions)
        if asked.direction == "read":
            flag = [f"iflag={asked.flag}"] if asked.flag else []
            return run(_DD, f"if={_FILE}", "of=/dev/null", *_blocks(asked), *flag)
        flag = [f"oflag={asked.flag}"] if asked.flag else []
        conv = [f"conv={asked.conv}"] if asked.conv else []
        return run(*_WRITE, *_blocks(asked), *flag, *conv)

    def parse(self, text: str, task: Task) -> list[Figure]:  # noqa: D102
        found = _SUMMARY.search(text)
        if found is None:
            raise ValueError("no summary line of dd")
        size, seconds = int(found[1]), float(found[2])
        figures = [Figure(name="time", value=seconds * 1e9, unit="ns")]
        if seconds:
            figures.insert(0, Figure(name="throughput", value=size / seconds, unit="B/s"))
        return figures


def _blocks(asked: DdOptions) -> list[str]:
    return [f"bs={size_of('bs', asked.bs)}", f"count={asked.count}"]
