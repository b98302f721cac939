# SPDX-License-Identifier: GPL-2.0-only
"""Devices on the same sectors are found, whatever their names and the devices between."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoblk.errors import UserError
from isoblk.machine import origins, users
from isoblk.machine.blockdev import Disk
from isoblk.machine.ground import Ground
from tests.examples import at_most
from tests.unit.fakesys import put


class Stack:
    """A /sys with devices on devices."""

    def __init__(self, root: Path) -> None:
        self.root, self.sys, self.dev, self.proc = root, root / "sys", root / "dev", root / "proc"
        self.tables: list[str] = []
        self.count = 0
        for place in ("dev/block", "class/block", "block"):
            (self.sys / place).mkdir(parents=True, exist_ok=True)
        put(self.proc / "self/mountinfo", "")

    def add(self, name: str, size: int, **files: str) -> str:
        """A device; its number. __ in a file's name is a directory."""
        self.count += 1
        number, place = f"8:{self.count}", self.sys / "block" / name
        for path, text in {"size": str(size), "dev": number, "ro": "0", **files}.items():
            put(place / path.replace("__", "/"), f"{text}\n")
        for link in (self.sys / "dev/block" / number, self.sys / "class/block" / place.name):
            link.symlink_to(place)
        return number

    def part(self, disk: str, name: str, start: int, size: int) -> str:
        return self.add(f"{disk}/{name}", size, partition="1", start=str(start))

    def mapped(self, name: str, *rows: str, size: int = 0) -> str:
        """A device-mapper device with a table."""
        self.tables += [f"{name}: {row}" for row in rows]
        whole = size or sum(int(row.split()[1]) for row in rows)
        return self.add(f"dm-{self.count + 1}", whole, dm__name=name, dm__uuid="")

    def loop(self, path: str, offset: int, size: int) -> str:
        return self.add(
            f"loop{self.count + 1}", size, loop__backing_file=path, loop__offset=str(offset * 512)
        )

    def mapper(self, *words: str, table: str = "") -> str:
        assert (words[0], table) == ("table", "")
        return "\n".join(self.tables) + "\n"

    @property
    def ground(self) -> Ground:
        return Ground(self.sys, self.mapper, self.dev)

    def place(self, number: str) -> Path:
        return (self.sys / "dev/block" / number).resolve()

    def share(self, one: str, other: str) -> bool:
        return self.place(other) in self.ground.sharing(self.place(one))

    def refuse(self, number: str) -> None:
        place = self.place(number)
        disk = Disk(f"/dev/{place.name}", place.name, number, place)
        users.refuse_in_use(disk, self.sys, self.proc, on=self.ground)


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    return Stack(tmp_path)


def test_two_names_of_one_disk_are_seen(stack: Stack) -> None:
    disk = stack.add("sda", 1000)
    one = stack.mapped("one", f"0 500 linear {disk} 0")
    two = stack.mapped("two", f"0 500 linear {disk} 499")
    other = stack.mapped("other", f"0 1 linear {disk} 999")
    assert stack.share(one, two) and stack.share(two, one)
    assert not stack.share(one, other)
    with pytest.raises(UserError, match=r"shares sectors with dm-3 \(two\); dmsetup rem"):
        stack.refuse(one)
    stack.refuse(other)


def test_a_volume_does_not_keep_another_one_of_its_group(stack: Stack) -> None:
    """The mounted devices of the same disk."""
    disk = stack.add("sda", 1000)
    group = stack.part("sda", "sda1", 100, 900)
    root = stack.mapped("vg-root", f"0 100 linear {group} 0", f"100 100 linear {group} 700")
    data = stack.mapped("vg-data", f"0 600 linear {group} 100")
    put(stack.proc / "self/mountinfo", f"30 22 {root} / / rw - ext4 /dev/mapper/vg-root rw\n")
    stack.refuse(data)
    assert stack.share(data, disk) and stack.share(data, group)
    put(stack.proc / "self/mountinfo", f"30 22 {disk} / /x rw - ext4 /dev/sda rw\n")
    with pytest.raises(UserError, match="/dev/sda is mounted on /x"):
        stack.refuse(data)


def test_a_mount_of_an_overlapping_partition_is_seen_from_a_loop_device(stack: Stack) -> None:
    disk = stack.add("sda", 1000)
    part = stack.part("sda", "sda1", 100, 100)
    (stack.dev / "sda").parent.mkdir()
    above = stack.mapped("copy", f"0 50 linear {disk} 150")
    put(stack.proc / "self/mountinfo", f"30 22 {part} / /x rw - ext4 /dev/sda1 rw\n")
    with pytest.raises(UserError, match="sectors with /dev/sda1, which is mounted on /x"):
        stack.refuse(above)


@pytest.mark.parametrize(
    ("row", "shares"),
    [
        ("0 100 crypt aes-xts-plain64 :64:logon:x 0 {0} 900", [True, False]),
        ("0 100 crypt aes-xts-plain64 00 0 {0} 0", [False, False]),
        ("0 200 striped 2 8 {0} 900 {1} 0", [True, True]),
        ("0 200 striped 2 8 {0} 800 {1} 100", [False, False]),
        ("0 100 mirror core 1 1024 2 {0} 0 {1} 0", [True, True]),
        ("0 100 raid raid1 3 0 region_size 1024 2 - {0} - {1}", [True, True]),
        ("0 100 cache {0} {1} {1} 512 0 default 0", [True, True]),
        ("0 100 multipath 0 0 1 1 service-time 0 1 1 {0} 1", [True, False]),
        ("0 100 snapshot {0} {1} P 8", [False, True]),
        ("0 100 zero", [False, False]),
    ],
)
def test_targets_stand_on_the_devices_of_their_table(
    stack: Stack, row: str, shares: list[bool]
) -> None:
    disks = [stack.add(name, 1000) for name in ("sda", "sdb")]
    ends = [
        stack.mapped("a", f"0 50 linear {disks[0]} 950"),
        stack.mapped("b", f"0 50 linear {disks[1]} 50"),
    ]
    made = stack.mapped("made", row.format(*disks))
    assert [stack.share(made, end) for end in ends] == shares


def test_volumes_of_a_thin_pool_are_apart(stack: Stack) -> None:
    disk = stack.add("sda", 1000)
    pool = stack.mapped("pool", f"0 1000 thin-pool {disk} {disk} 128 0 0")
    one, two = (stack.mapped(f"v{i}", f"0 5000 thin {pool} {i}") for i in range(2))
    again = stack.mapped("w", f"0 100 linear {one} 4000")
    assert not stack.share(one, two) and stack.share(one, again)
    assert stack.share(pool, disk)


def test_two_paths_to_one_disk_are_one_disk(stack: Stack) -> None:
    paths = [stack.add(name, 1000, device__wwid="naa.5000c5") for name in ("sda", "sdb")]
    third = stack.add("sdc", 1000, device__wwid="naa.5000c6")
    whole = stack.mapped("mpath", f"0 1000 multipath 0 0 1 1 x 0 1 1 {paths[0]} 1")
    assert stack.share(paths[1], whole) and not stack.share(third, whole)
    with pytest.raises(UserError, match="sectors with dm-4"):
        stack.refuse(paths[1])
    stack.refuse(third)


def test_a_path_that_the_kernel_joins_itself_is_no_other_disk(stack: Stack) -> None:
    disk = stack.add("nvme0n1", 1000, wwid="eui.1")
    path = stack.place(stack.add("nvme0c0n1", 1000, wwid="eui.1"))
    (path / "dev").unlink()
    stack.refuse(disk)
    origins.refuse_alike(stack.place(disk), "x", stack.mapper, stack.sys, stack.dev)
    stack.add("nvme1n1", 1000, wwid="eui.1")
    with pytest.raises(UserError, match=r"nvme1n1 has the same name wwid:eui\.1"):
        origins.refuse_alike(stack.place(disk), "x", stack.mapper, stack.sys, stack.dev)


def test_arrays_of_one_container_are_apart(stack: Stack) -> None:
    disk = stack.add("sda", 1000)
    arrays = []
    for name, offset in (("md0", 0), ("md1", 500)):
        arrays.append(stack.add(name, 400, md__level="raid1"))
        slaves = stack.sys / "block" / name / "slaves"
        slaves.mkdir()
        (slaves / "sda").symlink_to(stack.place(disk))
        for file, text in (("offset", str(offset)), ("size", "200")):
            put(stack.sys / "block" / name / "md/dev-sda" / file, text)
    assert not stack.share(*arrays)
    assert all(stack.share(one, disk) for one in arrays)
    assert stack.share(arrays[1], stack.mapped("v", f"0 10 linear {disk} 890"))


def test_loop_devices_of_a_hard_link_and_of_a_part_are_of_one_file(stack: Stack) -> None:
    file, link = stack.root / "image", stack.root / "link"
    file.touch()
    link.hardlink_to(file)
    (stack.root / "other").touch()
    one, two = stack.loop(str(file), 0, 100), stack.loop(str(link), 99, 1)
    rest, other = stack.loop(str(file), 100, 100), stack.loop(str(stack.root / "other"), 0, 100)
    assert stack.share(one, two)
    assert not stack.share(one, rest) and not stack.share(one, other)
    above = stack.mapped("v", f"0 1 linear {two} 0")
    assert stack.share(one, above)


def test_disks_of_one_bcache_are_apart(stack: Stack) -> None:
    ssd = stack.add("sdc", 1000)
    made = []
    for name, disk in (("bcache0", "sda"), ("bcache1", "sdb")):
        lower = stack.add(disk, 1000, bcache__state="clean")
        made.append(stack.add(name, 900))
        place = stack.place(made[-1])
        (place / "bcache").symlink_to(stack.place(lower) / "bcache")
        (place / "slaves").mkdir()
        for number in (lower, ssd):
            (place / "slaves" / stack.place(number).name).symlink_to(stack.place(number))
        assert stack.share(made[-1], lower)
    assert not stack.share(*made)


def test_without_a_word_of_device_mapper_a_volume_stands_on_all_of_its_disks(stack: Stack) -> None:
    disk = stack.add("sda", 1000)
    volume = stack.mapped("v", f"0 10 linear {disk} 0")
    slaves = stack.place(volume) / "slaves"
    slaves.mkdir()
    (slaves / "sda").symlink_to(stack.place(disk))
    end = stack.part("sda", "sda1", 900, 100)

    def refuses(*words: str, table: str = "") -> str:
        raise UserError("no permission to use device-mapper")

    ground = Ground(stack.sys, refuses, stack.dev)
    assert stack.place(end) in ground.sharing(stack.place(volume))
    assert not stack.share(volume, end)


# -- any stack --

layers = st.lists(
    st.tuples(
        st.sampled_from(["part", "linear", "two", "loop", "crypt"]),
        st.integers(0, 20),
        st.integers(0, 63),
        st.integers(1, 64),
    ),
    max_size=8,
)


@settings(max_examples=at_most(40))
@given(layers)
def test_sectors_in_common_are_found_in_any_stack(
    tmp_path_factory: pytest.TempPathFactory, made: list[tuple[str, int, int, int]]
) -> None:
    """Against the sectors themselves."""
    stack = Stack(tmp_path_factory.mktemp("stack"))
    file = stack.root / "file"
    file.touch()
    known: list[tuple[str, list[tuple[str, int]]]] = []
    for name in ("sda", "sdb"):
        known.append((stack.add(name, 64), [(name, i) for i in range(64)]))
    for kind, which, start, size in made:
        number, sectors = known[which % len(known)]
        below = stack.place(number)
        covered = sectors[start : start + size]
        if not covered:
            continue
        if kind == "part":
            if (below / "partition").exists():
                continue
            name = f"{below.name}p{stack.count}"
            found = stack.part(below.name, name, start, len(covered))
        elif kind == "loop":
            found = stack.loop(str(file), start, len(covered))
            covered = [("file", start + i) for i in range(len(covered))]
        elif kind == "crypt":
            found = stack.mapped(
                f"v{stack.count}", f"0 {len(covered)} crypt c k 0 {number} {start}"
            )
        elif kind == "linear":
            found = stack.mapped(f"v{stack.count}", f"0 {len(covered)} linear {number} {start}")
        else:
            other, more = known[(which + 1) % len(known)]
            rows = f"0 {len(covered)} linear {number} {start}", f"{len(covered)} 8 linear {other} 0"
            found = stack.mapped(f"v{stack.count}", *rows)
            covered = covered + more[:8]
        known.append((found, covered))
    ground = stack.ground
    for number, sectors in known:
        sharing = set(ground.sharing(stack.place(number)))
        for other, others in known:
            common = bool(set(sectors) & set(others))
            assert (stack.place(other) in sharing) == common, (number, other, stack.tables)
