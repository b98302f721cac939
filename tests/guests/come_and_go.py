# SPDX-License-Identifier: GPL-2.0-only
"""In a guest: make a cgroup, read from a disk in it, leave and remove it; many times.

DISK COUNT. Prints how many there were.
"""

import mmap
import os
import sys
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
BLOCK = 4096
BLOCKS = 1000


def main(disk: str, count: int) -> None:
    """Come and go, `count` times."""
    me = str(os.getpid())
    block = mmap.mmap(-1, BLOCK)
    file = os.open(disk, os.O_RDONLY | os.O_DIRECT)
    for i in range(count):
        group = CGROUP / f"g{i}"
        group.mkdir()
        (group / "io.isoblk.weight").write_text(f"{i % 1000 + 1}")
        (group / "cgroup.procs").write_text(me)
        os.preadv(file, [block], BLOCK * (i % BLOCKS))
        (CGROUP / "cgroup.procs").write_text(me)
        group.rmdir()
    print(count)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
