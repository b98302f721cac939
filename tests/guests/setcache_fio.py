# SPDX-License-Identifier: GPL-2.0-only
"""fio writes a cache, and verifies with crc32c what it reads: at once, while the cache is loaded
again, and on the origin alone. Run in the guest, with the standard library alone: MODE POLICY
BLOCK WAYS SSD-SIZE. Prints `status` lines, and `done`.

One fio does all, for in a guest its start takes seconds (it calibrates a clock). It waits for a
file before each of its parts.
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from tests.guests.setcache_files import say
from tests.guests.setcache_guest import MODES, POLICIES, Cache, disk, run

# Each in a MiB of its own, of pieces that are smaller than, as large as, and larger than a block.
JOBS: Final = (("small", "1k", "512k"), ("medium", "4k", "1m"), ("large", "48k", "1008k"))


def fio(*paths: str) -> list[str]:
    """Write the first, then verify all."""
    words = ["fio", "--thread", "--clocksource=clock_gettime", "--ioengine=libaio", "--direct=1"]
    words += ["--iodepth=8", "--rw=randwrite", "--randrepeat=1", "--verify=crc32c"]
    words += ["--verify_fatal=1", "--verify_dump=0"]
    for number, path in enumerate(paths):
        for i, (name, piece, size) in enumerate(JOBS):
            words += [f"--name={name}{number}", f"--filename={path}"]
            words += [f"--bs={piece}", f"--offset={i}m", f"--size={size}"]
            words += [f"--exec_prerun=touch at{number}; {wait(number)}"]
            if number:
                words += ["--verify_only=1"]
            if number and not i:
                words += ["--stonewall"]
    return words


def wait(number: int) -> str:
    return f"while [ ! -e go{number} ]; do sleep 0.1; done"


class Fio:
    def __init__(self, *paths: str) -> None:
        self.log = Path("/tmp/log")
        with self.log.open("w") as log:
            self.process = subprocess.Popen(fio(*paths), stdout=log, stderr=log)

    def at(self, number: int) -> bool:
        """Whether it waits before a part."""
        assert not self.process.poll(), self.log.read_text()
        return Path(f"at{number}").exists()

    def go(self, number: int) -> None:
        Path(f"go{number}").touch()


def main() -> None:
    mode, policy, block, ways, ssd = sys.argv[1:]
    time.clock_settime(time.CLOCK_REALTIME, 1_000_000_000)
    run("mount", "-t", "tmpfs", "tmpfs", "/tmp")
    os.chdir("/tmp")
    origin = disk("slow", "8m", 1_000_000)
    cache = Cache(origin, disk("fast", ssd, 200_000), int(block), int(ways))
    cache.create(mode, policy)
    with_fio = Fio(cache.path, cache.path, origin)
    while not with_fio.at(0):
        time.sleep(0.1)
    with_fio.go(0)
    changes = 0
    while not with_fio.at(1):
        cache.tell("mode", MODES[changes % 5])
        cache.tell("policy", POLICIES[changes % 3])
        changes += 1
        time.sleep(0.01)
    cache.tell("mode", mode)
    say(cache.again())

    with_fio.go(1)
    while not with_fio.at(2):
        time.sleep(0.02)
        say(cache.again(cache.line(mode, policy)))
    cache.clean()
    say(cache.status())
    cache.remove()

    with_fio.go(2)
    with_fio.process.wait()
    assert not with_fio.process.returncode, with_fio.log.read_text()
    print("changes", changes)
    print("done")


if __name__ == "__main__":
    main()
