# SPDX-License-Identifier: GPL-2.0-only
"""dm-setcache in a storm: verified load, and meanwhile all that setcache_storm.py does to it.

For both machines. In virtual time the disks are as fast as real ones; a kernel with sanitizers on
emulated processors makes a hundred requests a second, and needs slower ones to wait for.
"""

from dataclasses import dataclass

from tests.guests.setcache_guest import balance, status_of
from tests.lab.guest import ROOT, Left
from tests.lab.load import BLKLOAD, WAIT, Value, results, save, script, tenant, vdisk

MODULES = ("isoblk_vdisk", "blkload", "dm-setcache")
PROGRAM = (ROOT / "tests/guests/setcache_storm.py").read_text()

# An origin of 8 MiB and an SSD of 1: 15 sets of 16 blocks of 4 KiB. So small that blocks are met
# again soon.
SECTORS, WAYS = 16384, 16
C = "/dev/mapper/c"
ENDLESS = "1000s"

SHELL = f"""
export PATH=$PATH:/sbin:/usr/sbin
dm() {{ r=0; dmsetup --noudevsync --noudevrules "$@" || r=$?; dmsetup mknodes; return $r; }}
make() {{ dm create c --table "0 {SECTORS} setcache /dev/slow /dev/fast 8 {WAYS} $1"; }}
# Once all is clean, and what reads have brought is on the SSD.
settle() {{
    dmsetup message c 0 clean
    until dmsetup status c | grep -q ' dirty 0 '; do sleep 1; done
    dmsetup suspend c; dmsetup status c > /run/isoblk/status; dmsetup resume c
}}
"""


@dataclass(frozen=True)
class Pace:
    """How fast disks are, and how many queues they have."""

    slow_ns: int
    fast_ns: int
    queues: int


REAL = Pace(2_000_000, 100_000, 1)
EMULATED = Pace(40_000_000, 10_000_000, 4)
# Four processors of the host's own, under sanitizers.
NATIVE = Pace(4_000_000, 1_000_000, 4)


def disks(pace: Pace, number: str = "") -> str:
    """An origin and an SSD, with a volatile cache."""
    common: dict[str, Value] = {"store": "memory", "hw_queues": pace.queues, "write_cache": 1}
    return "\n".join(
        (
            vdisk(
                f"slow{number}", size="8m", read_ns=pace.slow_ns, write_ns=pace.slow_ns, **common
            ),
            vdisk(
                f"fast{number}", size="1m", read_ns=pace.fast_ns, write_ns=pace.fast_ns, **common
            ),
        )
    )


def storm(pace: Pace, *parts: str) -> str:
    """A script that has the functions above, the program, and disks for two caches."""
    return script(
        SHELL,
        f"cat > /run/storm.py << 'END'\n{PROGRAM}END",
        disks(pace),
        disks(pace, "2"),
        *parts,
    )


def loads(**common: Value) -> str:
    """Tenants of every kind, each with a place of its own."""
    kinds: tuple[dict[str, Value], ...] = (
        {"rw": "randrw", "bssplit": "512/30:4k/40:12k/20:32k/10", "iodepth": 6, "fsync": 20},
        {"rw": "randrw", "bs": "4k", "iodepth": 4, "random_distribution": "zipf:1.2", "fua": 1},
        {"rw": "rw", "bs": "16k", "iodepth": 2, "rwmixread": 30},
        {"rw": "randrw", "bs": "4k", "iodepth": 4, "rwmixread": 80},
    )
    lines = [
        tenant(f"t{i}", device=C, verify=1, offset=f"{i}m", size="512k",
               **{"runtime": ENDLESS, **kind, **common})
        for i, kind in enumerate(kinds)
    ]  # fmt: skip
    lines.append(tenant("trim", device=C, rw="randtrim", bs="16k", thinktime=200_000, offset="4m",
                        size="512k", runtime=ENDLESS))  # fmt: skip
    return "\n".join(lines)


def all_fua() -> str:
    """From the next start on every write is FUA."""
    return "\n".join(f"echo 1 > {BLKLOAD}/t{i}/fua" for i in range(4))


def under_load(task: str, seconds: int, seed: int = 1) -> str:
    """A task of the storm, which leaves a file of its name, and its load, which leaves another."""
    return "\n".join(
        (
            f"python3 -SI /run/storm.py {task} {seconds} {seed} > /run/isoblk/{task}",
            WAIT,
            save(f"results.{task}"),
        )
    )


def rounds(left: Left, task: str) -> dict[str, int]:
    """The counts of the storm: rounds of its threads, and injected faults."""
    words = left.read(task).split()
    return {name: int(count) for name, count in zip(words[::2], words[1::2], strict=True)}


def status(left: Left) -> dict[str, str]:
    """The status line that `settle` left."""
    found = status_of(left.read("status"))
    assert found["block"] == "8"
    return found


def assert_verified(left: Left, label: str, *, errors: bool = False) -> None:
    """The load did something, and all it read was right. errors: requests may have failed."""
    done = results(left, label)
    assert done
    for name, each in done.items():
        for op in each.ops.values():
            assert op.issued > 0, name
            assert op.verify_errors == 0, name
            assert op.errors == 0 or errors, name


def assert_changed(left: Left) -> None:
    """After `changes`: every thread did its work, and no sum is wrong."""
    assert_verified(left, "results.changes")
    assert all(count > 0 for count in rounds(left, "changes").values())
    balance(status(left))


def assert_starved(left: Left, least: int) -> None:
    """After `shortage`. least: allocations that were made to fail."""
    assert_verified(left, "results.shortage")
    assert rounds(left, "shortage")["injected"] > least
    balance(status(left))


def assert_survived(left: Left, task: str) -> None:
    """After `through` or `both`: faults there were, and in the end the SSD is there again."""
    assert_verified(left, f"results.{task}", errors=task == "both")
    found = rounds(left, task)
    assert found["ok"] == 1
    assert found["injected"] > 0
