# SPDX-License-Identifier: GPL-2.0-only
"""Damage on the SSD of a cache of dm-setcache: refused by the kernel with a reason, repaired by
`isoblk cache check`, loaded by the kernel again, and every dirty block that can be read is there.

A guest writes, and leaves images of the SSD. They are damaged and repaired here, and a second guest
tries them.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from isoblk.cachectl.volumes import open_ssd
from isoblk.caches.ondisk import format as layout
from isoblk.caches.ondisk.format import CLEAN, DIRTY, FREE, Superblock, parse_super
from isoblk.caches.ondisk.fsck import Report, examine, repair
from tests.lab.guest import BARE_PYTHON, PYTHON, ROOT, Guest, on_host
from tests.lab.load import START, VDISK, WAIT, tenant

MODULES = ("isoblk_vdisk", "blkload", "dm-setcache")
# An origin of 16 MiB, an SSD of 4: 15 sets of 64 blocks of 4 KiB.
ORIGIN, WAYS = 32768, 64
THIRD = (4 << 20) - 4096
DIRTIED = range(0, 4095, 13)
C = "/dev/mapper/c"

SHELL = f"""
export PATH=$PATH:/sbin:/usr/sbin
dm() {{ r=0; dmsetup --noudevsync --noudevrules "$@" || r=$?; dmsetup mknodes; return $r; }}
disk() {{ mkdir {VDISK}/$1; echo $2 > {VDISK}/$1/size; echo memory > {VDISK}/$1/store
  echo 1 > {VDISK}/$1/write_cache; echo 2 > {VDISK}/$1/servers; echo $3 > {VDISK}/$1/read_ns
  echo $3 > {VDISK}/$1/write_ns; echo 1 > {VDISK}/$1/power; }}
disk slow 16m 500000; disk fast 4m 100000; disk other 16m 500000
fault() {{ echo "$2" > {VDISK}/fast/fault/$1; }}
make() {{ dm create c --table "0 {ORIGIN} setcache /dev/slow /dev/fast 8 {WAYS} writeback lru 2 \
set_high 100"; }}
image() {{ dd if=/dev/fast of=/run/isoblk/$1 bs=1M iflag=direct 2> /dev/null; }}
use() {{ dd if=$1 of=/dev/fast bs=1M oflag=direct 2> /dev/null; }}
"""
# Each block has a content of its own. Nothing is cleaned: the origin stays empty.
FILL = f"""
make
{BARE_PYTHON} - <<'END'
import mmap, os, struct
disk = os.open("{C}", os.O_RDWR | os.O_DIRECT)
page = mmap.mmap(-1, 4096)
for block in {DIRTIED}:
    page[:] = struct.pack("<Q", block + 1) * 512
    os.pwritev(disk, [page], block * 4096)
    os.preadv(disk, [page], (block + 5) * 4096)
os.fsync(disk)
END
"""
LOOK = f"""
import mmap, os, struct
disk = os.open("{C}", os.O_RDONLY | os.O_DIRECT)
page = mmap.mmap(-1, 4096)
for block in {DIRTIED}:
    os.preadv(disk, [page], block * 4096)
    data = bytes(page)
    whole = data == struct.pack("<Q", block + 1) * 512
    print(block, "whole" if whole else "gone" if not any(data) else "wrong")
"""
TRY = f"""
try() {{
  use $2
  if make 2> /dev/null; then
    {BARE_PYTHON} {{look}} > /run/isoblk/$1.seen
    dm remove c
  else
    dm remove c 2> /dev/null || true
    dmesg | grep 'device-mapper: setcache' | tail -n 1 > /run/isoblk/$1.why
  fi
}}
"""


def _images(guest: Guest, script: str, names: tuple[str, ...]) -> dict[str, bytes]:
    left = guest.run(SHELL + script, modules=MODULES)
    return {name: (left.dir / name).read_bytes() for name in names}


def _check(path: Path) -> Report:
    with open_ssd(str(path), write=False) as ssd:
        return examine(ssd).report


def test_an_ssd_is_sound_whenever_the_kernel_leaves_it(guest: Guest, tmp_path: Path) -> None:
    """Whenever it was stopped or cut short, and whatever went on."""
    load = tenant(
        "a", device=C, rw="randrw", bssplit="512/20:4k/50:64k/30", iodepth=16, fsync=20,
        runtime="1500ms",
    )  # fmt: skip
    changes = (
        "",
        "dm message c 0 clean",
        f"dm message c 0 mode writearound; blkdiscard -l 4194304 {C}",
        "dm message c 0 mode writethrough; dm message c 0 policy fifo",
    )
    script = "".join(
        f"""
make; {load if not number else ""}
{START}
sleep 1.3
{change}
sleep 0.0{number}
fault state cut
{WAIT}
dm remove c; fault state ok; image cut{number}
make; dm message c 0 mode writeback; dm remove c; image stopped{number}
"""
        for number, change in enumerate(changes)
    )
    names = [f"{kind}{number}" for number in range(len(changes)) for kind in ("cut", "stopped")]
    images = _images(guest, script, tuple(names))
    dirty = 0
    for name, data in images.items():
        path = tmp_path / name
        path.write_bytes(data)
        found = _check(path)
        assert not found.damage, (name, found.damage)
        assert found.state == ("in use" if "cut" in name else "clean")
        assert found.identity and found.identity.startswith("wwid:naa.")
        # The third copy alone tells as much, except for clean blocks.
        with path.open("r+b") as file:
            file.write(bytes(8192))
        with open_ssd(str(path), write=True) as ssd:
            alone = repair(ssd, drop=False)
        assert not alone.damage
        assert (alone.state, alone.dirty, alone.identity) == ("in use", found.dirty, found.identity)
        dirty += found.dirty or 0
    assert dirty > 100


@dataclass(frozen=True)
class Case:
    """A damage. refused: what the kernel says, "" if it loads the SSD; drop: is needed."""

    image: str
    hurt: Callable[[bytearray, Superblock], None]
    refused: str
    drop: bool = False


def _records(data: bytearray, superblock: Superblock) -> layout.Records:
    return np.frombuffer(bytes(data), layout.RECORD, superblock.geometry.slots, layout.RECORDS_AT)


def _slot(data: bytearray, superblock: Superblock, state: int) -> int:
    """The first one of a state."""
    return int(np.flatnonzero(layout.states(_records(data, superblock)) == state)[0])


def _spoil(*states: int) -> Callable[[bytearray, Superblock], None]:
    def hurt(data: bytearray, superblock: Superblock) -> None:
        for state in states:
            data[layout.RECORDS_AT + 16 * _slot(data, superblock, state) + 9] ^= 4

    return hurt


def _zero(start: int, stop: int) -> Callable[[bytearray, Superblock], None]:
    def hurt(data: bytearray, _: Superblock) -> None:
        data[start:stop] = bytes(stop - start)

    return hurt


def _noise(start: int, stop: int) -> Callable[[bytearray, Superblock], None]:
    def hurt(data: bytearray, _: Superblock) -> None:
        data[start:stop] = random.Random(start).randbytes(stop - start)

    return hurt


def _put(data: bytearray, superblock: Superblock, slot: int, state: int, block: int) -> None:
    made = layout.records(
        np.array([state]), np.array([block]), superblock.commits, slot, superblock.seed
    )
    data[layout.RECORDS_AT + 16 * slot : layout.RECORDS_AT + 16 * slot + 16] = made.tobytes()


def _twice(data: bytearray, superblock: Superblock) -> None:
    """A dirty block is also in the next slot of its set that is free."""
    slot = _slot(data, superblock, DIRTY)
    records = _records(data, superblock)
    home = range(slot // WAYS * WAYS, (slot // WAYS + 1) * WAYS)
    free = next(one for one in home if layout.states(records)[one] == FREE)
    _put(data, superblock, free, CLEAN, int(layout.blocks(records)[slot]))


def _beyond(data: bytearray, superblock: Superblock) -> None:
    _put(data, superblock, _slot(data, superblock, FREE), CLEAN, ORIGIN)


def _much(data: bytearray, _: Superblock) -> None:
    rng = random.Random(5)
    for at in [rng.randrange(4096, 8192), *(rng.randrange(8192, 20000) for _ in range(9))]:
        count = rng.choice((1, 16, 100))
        data[at : at + count] = rng.randbytes(count)


DAMAGED = "is damaged: run isoblk cache check"
CASES: Mapping[str, Case] = {
    "copy0": Case("stopped", _zero(0, 512), ""),
    "copy1": Case("cut", _noise(4096, 8192), ""),
    "copy2": Case("stopped", _noise(THIRD, THIRD + 4096), ""),
    "copies": Case("cut", _noise(0, 8192), ""),
    "copies_stopped": Case("stopped", _noise(10, 8192), ""),
    "clean": Case("stopped", _spoil(CLEAN, FREE), DAMAGED),
    "dirty": Case("stopped", _spoil(DIRTY), DAMAGED, drop=True),
    "dirty_cut": Case("cut", _spoil(DIRTY, CLEAN, FREE), DAMAGED, drop=True),
    "sector": Case("stopped", _noise(8192 + 512, 8192 + 1024), DAMAGED, drop=True),
    "page": Case("cut", _noise(8192 + 4096, 8192 + 8192), DAMAGED, drop=True),
    "twice": Case("stopped", _twice, "does not fit the others: run isoblk cache check"),
    "beyond": Case("stopped", _beyond, "does not fit the others: run isoblk cache check"),
    "much": Case("cut", _much, DAMAGED, drop=True),
    "all": Case("cut", _noise(0, 9100), DAMAGED, drop=True),
}


def test_damage_is_refused_repaired_and_nothing_readable_is_lost(
    guest: Guest, tmp_path: Path
) -> None:
    images = _images(
        guest,
        f"{FILL} dm remove c; image stopped; make; fault state cut; dm remove c; fault state ok;"
        " image cut",
        ("stopped", "cut"),
    )
    # An origin that was never written is the same for all.
    readable: dict[str, set[int]] = {}
    for name, case in CASES.items():
        data = bytearray(images[case.image])
        copies = [parse_super(bytes(data[at : at + 4096]), at // 4096) for at in (0, 4096)]
        superblock = max(copies, key=lambda one: one.sequence)
        before = _records(data, superblock).copy()
        assert {int(block) for block in layout.blocks(before)[layout.states(before) == DIRTY]} == {
            *DIRTIED
        }
        case.hurt(data, superblock)
        same = _records(data, superblock) == before
        readable[name] = {
            int(block) for block in layout.blocks(before)[same & (layout.states(before) == DIRTY)]
        }
        for path in (tmp_path / f"{name}.bad", tmp_path / name):
            path.write_bytes(data)
        with open_ssd(str(tmp_path / name), write=True) as ssd:
            found = repair(ssd, drop=False)
            assert bool(found.damage) == case.drop, (name, found.damage)
            if case.drop:
                found = repair(ssd, drop=True)
            assert found.mended
        assert not _check(tmp_path / name).damage
    look = tmp_path / "look.py"
    look.write_text(LOOK)
    script = TRY.replace("{look}", on_host(look)) + "\n".join(
        f"try {name} {tmp_path}/{name}; try {name}.bad {tmp_path}/{name}.bad" for name in CASES
    )
    left = guest.run(SHELL + script, modules=MODULES)
    for name, case in CASES.items():
        if case.refused:
            assert case.refused in left.read(f"{name}.bad.why"), name
        seen = dict(line.split() for line in left.read(f"{name}.seen").splitlines())
        assert len(seen) == len(DIRTIED)
        for block, how in seen.items():
            assert how == "whole" or (how == "gone" and int(block) not in readable[name]), name
        if not case.drop:
            assert set(seen.values()) == {"whole"}, name


# One process for all: Python takes its time to start in a guest.
COMMANDS = f"""
import json, subprocess, sys
from isoblk.cli.main import main
def cache(*words):
    sys.argv = ["isoblk", "cache", *words]
    try:
        main()
    except SystemExit as ended:
        print("=", ended.code or 0, flush=True)
def sh(line):
    subprocess.run(line, shell=True, check=True)
def create(origin="/dev/slow"):
    # It cleans nothing.
    options = ["--like", "flashcache", "--assoc", "{WAYS}", "--set", "set_high=100"]
    cache("create", *options, "c", origin, "/dev/fast")
errors = "{VDISK}/fast/fault/errors"
cache("check", "/dev/fast")
sh("dmsetup remove c")
cache("check", "/dev/fast")
sh("dd if=/dev/zero of=/dev/fast bs=512 seek=17 count=1 oflag=direct 2> /dev/null")
create()
sh("! dmsetup info c > /dev/null 2>&1")
cache("check", "--repair", "--drop-damaged", "/dev/fast")
create()
sh("dmsetup remove c")
sh(f"echo 8704 512 read > {{errors}}")
create()
cache("check", "/dev/fast")
sh(f"echo none > {{errors}}")
sh("dd if=/dev/zero of=/dev/fast bs=4k count=2 oflag=direct 2> /dev/null")
cache("check", "/dev/fast")
cache("check", "--repair", "/dev/fast")
create()
sh("dmsetup remove c")
# After a copy of the disk to another one.
create("/dev/other")
cache("check", "--repair", "--was", "wwid:naa.0", "/dev/fast")
identity = json.loads(subprocess.check_output(
    [sys.executable, "-m", "isoblk", "cache", "check", "--json", "/dev/fast"]))["identity"]
print("identity", identity, flush=True)
cache("check", "--repair", "--was", identity, "/dev/fast")
create("/dev/other")
sh("dmsetup remove c")
cache("check", "/dev/fast")
"""


def test_the_device_itself_is_checked_and_the_kernels_reason_is_told(
    guest: Guest, tmp_path: Path
) -> None:
    commands = tmp_path / "commands.py"
    commands.write_text(COMMANDS)
    left = guest.run(
        SHELL
        + FILL
        + f"""
dm remove c
# One copy that cannot be read does not matter.
fault errors '0 4096 read'; make; fault errors none
export DM_DISABLE_UDEV=1 PYTHONPATH={on_host(ROOT / "src")} PYTHONDONTWRITEBYTECODE=1 HOME=/run
{PYTHON} {on_host(commands)} > /run/isoblk/said 2>&1
""",
        modules=MODULES,
        memory_mib=1024,
    )
    said = [
        line
        for line in left.read("said").splitlines()
        if line.startswith(("isoblk:", "slots ", "repaired:", "=", "/dev/fast: ", "again:"))
    ]
    identity = next(
        line.split()[1] for line in left.read("said").splitlines() if "identity ww" in line
    )
    other = left.read("said").split(", not of ")[1].split(";")[0]
    lost = len(DIRTIED) - int(left.read("said").split(" dirty blocks,")[1].split()[-1])
    assert said == [
        "isoblk: /dev/fast: /dev/fast is held by dm-0 (c); remove it from that device",
        "= 2",
        "/dev/fast: sound",
        "= 0",
        "isoblk: c: the kernel refuses: the record of slot 32 is damaged; isoblk cache check"
        " /dev/fast",
        "= 1",
        "repaired: slots 32 to 63: the record's checksum is wrong; dirty blocks missing:"
        f" {lost}; free them, and lose the data at byte 196608, 131072 bytes",
        "/dev/fast: sound",
        "= 0",
        "again: /dev/mapper/c, writeback, fifo; use it, not /dev/slow",
        "= 0",
        "isoblk: c: the kernel refuses: cannot read the records; isoblk cache check /dev/fast",
        "= 1",
        "slots 32 to 63: the record cannot be read; no dirty block is missing; --repair: free them",
        "isoblk: /dev/fast: 1 damage; isoblk cache check --repair /dev/fast",
        "= 1",
        "isoblk: /dev/fast: 2 damages; isoblk cache check --repair /dev/fast",
        "= 1",
        *(
            f"repaired: superblock copy {copy}: it is all zeros; restore it from copy 2, as in use"
            for copy in (0, 1)
        ),
        "/dev/fast: sound",
        "= 0",
        "again: /dev/mapper/c, writeback, fifo; use it, not /dev/slow",
        "= 0",
        f"isoblk: /dev/fast: the SSD is the cache of {identity} (/dev/slow), not of {other}; name"
        " that origin; if it is gone or was copied to this one: isoblk cache check --repair --was"
        f" {identity} /dev/fast;"
        " if the data on the SSD are not needed: blkdiscard --zeroout /dev/fast",
        "= 2",
        f"isoblk: /dev/fast: its origin is {identity}, not wwid:naa.0; name the identity that"
        " isoblk cache check shows",
        "= 2",
        "/dev/fast: sound",
        "= 0",
        "again: /dev/mapper/c, writeback, fifo; use it, not /dev/other",
        "= 0",
        "/dev/fast: sound",
        "= 0",
    ]
    assert identity != other
    # The last one shows whose it is now.
    assert left.read("said").count(identity) > 3
    assert f"{other}, 16777216 bytes" in left.read("said")
