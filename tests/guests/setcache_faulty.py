# SPDX-License-Identifier: GPL-2.0-only
"""Faults of the kernel's fault injection on a cache under blkload, which verifies what it reads.
Run in the guest, with the standard library alone. `io MODE DISK`: fail_make_request on a disk;
`memory MODE`: failslab in all kernel threads. Prints how many faults there were, the last status,
and `done`; leaves blkload's results."""

import shutil
import sys
import time
from pathlib import Path
from typing import Final

from tests.guests.setcache_files import say
from tests.guests.setcache_guest import DIRTYING, Cache, disk, dm, run
from tests.guests.setcache_lost import restore

DEBUG: Final = Path("/sys/kernel/debug")
LOAD: Final = Path("/sys/kernel/config/blkload")
RESULTS: Final = Path("/run/isoblk/results")
MANY: Final = 1_000_000

TENANTS: Final = {
    "mixed": {
        "rw": "randrw",
        "bssplit": "512/20:4k/50:12k/10:64k/20",
        "iodepth": 8,
        "size": "4m",
        "fsync": 50,
    },
    "hot": {
        "rw": "randrw",
        "bs": "4k",
        "iodepth": 4,
        "offset": "4m",
        "size": "2m",
        "random_distribution": "zipf:1.2",
        "fua": 1,
    },
}


def arm(capability: str, percent: int) -> None:
    """Failures that are counted, and said nothing of."""
    where = DEBUG / capability
    for name, value in (("verbose", 0), ("interval", 1), ("times", MANY)):
        (where / name).write_text(str(value))
    (where / "probability").write_text(str(percent))


def disarm(capability: str) -> int:
    """How many there were."""
    where = DEBUG / capability
    (where / "probability").write_text("0")
    return MANY - int((where / "times").read_text())


def load(path: str, ms: int, *, fua: bool = False) -> None:
    for name, attributes in TENANTS.items():
        (LOAD / name).mkdir()
        values = {"device": path, "verify": 1, "runtime": f"{ms}ms", **attributes}
        if fua:
            values["fua"] = 1
        for key, value in values.items():
            (LOAD / name / key).write_text(str(value))


def start() -> None:
    """It begins at the next whole second."""
    (LOAD / "start").write_text("1")
    (LOAD / "align").read_text()


def wait() -> None:
    (LOAD / "wait").read_text()
    shutil.copy(DEBUG / "blkload/results", RESULTS)


def storm_io(mode: str, name: str) -> None:
    cache = Cache(disk("slow", "8m", 300_000), disk("fast", "3m", 60_000), 8, 64)
    cache.create(mode)
    # A flush that fails loses the SSD, and then what was acknowledged and not flushed may be gone.
    load(cache.path, 1000, fua=name == "fast" and mode in DIRTYING)
    Path(f"/sys/block/{name}/make-it-fail").write_text("1")
    start()
    for _ in range(4):
        arm("fail_make_request", 1)
        time.sleep(0.15)
        cache.tell("clean")
        # Looked for again, if it is lost; that may fail, too.
        run("dmsetup", "suspend", "c", check=False)
        faults = disarm("fail_make_request")
        assert faults
        print("faults", faults)
        dm("resume", "c")
        time.sleep(0.05)
    wait()
    assert cache.status()["state"] == "ok"
    cache.clean()
    say(cache.status())


def null_disk(name: str, mib: int, ns: int) -> str:
    """A disk that needs no memory once it has been written; the virtual disk does."""
    where = Path("/sys/kernel/config/nullb") / name
    where.mkdir()
    for key, value in {
        "size": mib,
        "blocksize": 512,
        "queue_mode": 2,
        "irqmode": 2,
        "completion_nsec": ns,
        "submit_queues": 1,
        "memory_backed": 1,
        "power": 1,
    }.items():
        (where / key).write_text(str(value))
    restore(f"/dev/{name}", bytes(mib << 20))
    return f"/dev/{name}"


def storm_memory(mode: str) -> None:
    cache = Cache(null_disk("nullb0", 8, 300_000), null_disk("nullb1", 3, 60_000), 8, 64)
    cache.create(mode, "lru", "2 origin_id nullb0")
    load(cache.path, 500)
    # The tenants' threads are made without faults; then all threads of the kernel have them.
    start()
    time.sleep(0.02)
    (DEBUG / "failslab/task-filter").write_text("Y")
    (DEBUG / "failslab/ignore-gfp-wait").write_text("N")
    threads = 0
    for task in Path("/proc").glob("[0-9]*"):
        try:
            if not (task / "cmdline").read_bytes():
                (task / "make-it-fail").write_text("1")
                threads += 1
        except OSError:
            pass
    for percent in (5, 30, 90):
        arm("failslab", percent)
        time.sleep(0.1)
        cache.tell("clean")
        cache.tell("policy", "random" if percent == 30 else "lru")
        time.sleep(0.05)
        faults = disarm("failslab")
        assert faults
        print("faults", faults)
    arm("failslab", 10)
    say(cache.again())
    wait()
    disarm("failslab")
    cache.clean()
    say(cache.status())
    print("threads", threads)


def main() -> None:
    if sys.argv[1] == "io":
        storm_io(*sys.argv[2:])
    else:
        storm_memory(*sys.argv[2:])
    print("done")


if __name__ == "__main__":
    main()
