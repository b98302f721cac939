# SPDX-License-Identifier: GPL-2.0-only
"""An origin is known by the same identity or word whenever it is looked at, and another disk by
another one."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoblk.errors import UserError
from isoblk.machine import origins


class Machine:
    """A /sys and a /dev."""

    def __init__(self, root: Path) -> None:
        self.sys, self.dev = root / "sys", root / "dev"
        self.tables: dict[str, str] = {}
        for place in (self.sys / "dev/block", self.sys / "class/block", self.sys / "block"):
            place.mkdir(parents=True)

    def add(self, name: str, number: str, **files: str) -> Path:
        """A device, at block/NAME; __ in a file's name is a directory."""
        place = self.sys / "block" / name
        place.mkdir(parents=True)
        (place / "size").write_text("2048\n")
        (place / "dev").write_text(f"{number}\n")
        for path, text in files.items():
            file = place / path.replace("__", "/")
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"{text}\n")
        (self.sys / "dev/block" / number).symlink_to(place)
        (self.sys / "class/block" / place.name).symlink_to(place)
        return place

    def link(self, kind: str, name: str, node: str) -> None:
        directory = self.dev / "disk" / kind
        directory.mkdir(parents=True, exist_ok=True)
        (directory / name).unlink(missing_ok=True)
        (directory / name).symlink_to(f"../../{node}")

    def mapper(self, *words: str, table: str = "") -> str:
        assert (words[0], table) == ("table", "")
        return self.tables[words[1]]

    def identity(self, place: Path) -> str:
        return origins.identity(place)

    def word(self, place: Path) -> str:
        return origins.word(place, self.mapper, self.sys, self.dev)

    def whose(self, named: str) -> str:
        return origins.whose(named, self.mapper, self.sys, self.dev)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize(
    ("files", "identity"),
    [
        ({"wwid": "eui.0025385b71b0a1c2"}, "wwid:eui.0025385b71b0a1c2"),
        ({"device__wwid": "naa.5000c500a1b2c3d4"}, "wwid:naa.5000c500a1b2c3d4"),
        (
            {"wwid": "uuid.1-2", "nguid": "00253854-0000-0000-0000-00000000ABCD"},
            "wwid:eui.0025385400000000000000000000abcd",
        ),
        ({"wwid": "uuid.1-2", "nguid": "0000-00", "eui": "00 25 38 01"}, "wwid:eui.00253801"),
        ({"wwid": "eui.0000000000000000"}, ""),
        ({"device__wwid": "naa.0000000000000000"}, ""),
        ({"wwid": "t10.ATA     some letters"}, ""),
        # LVM and LUKS have it on the disk below, and so has a copy of that disk.
        ({"dm__uuid": "LVM-abc"}, ""),
        ({"dm__uuid": "CRYPT-LUKS2-abc-data", "wwid": "naa.5"}, ""),
        ({}, ""),
    ],
)
def test_an_identity_is_the_name_that_the_kernel_has_for_the_device(
    machine: Machine, files: dict[str, str], identity: str
) -> None:
    assert machine.identity(machine.add("sda", "8:0", **files)) == identity


def test_a_partition_is_its_disk_and_its_first_sector_whatever_its_table_calls_it(
    machine: Machine,
) -> None:
    machine.add("sda", "8:0", wwid="eui.1")
    one = machine.add("sda/sda1", "8:1", partition="1", start="2048", uevent="PARTUUID=aa-bb")
    two = machine.add("sda/sda2", "8:2", partition="2", start="4096")
    assert machine.identity(one) == "wwid:eui.1/start:2048"
    assert machine.identity(two) == "wwid:eui.1/start:4096"
    machine.add("vda", "254:0", serial="disk 1")
    part = machine.add("vda/vda1", "254:1", partition="1", start="2048")
    assert machine.identity(part) == ""
    assert machine.word(part).endswith("/start:2048")


# An MBR without a signature, and a GPT.
@pytest.mark.parametrize("uuid", ["00000000-01", "c12a7328-f81f-11d2-ba4b-00a0c93ec93b"])
def test_a_copy_of_a_disk_is_not_the_disk(machine: Machine, uuid: str) -> None:
    """All that is on it is the same."""
    for name, number in (("vda", "254:0"), ("vdb", "254:16")):
        machine.add(name, number)
        part = f"{name}1"
        uevent = f"PARTUUID={uuid}"
        machine.add(f"{name}/{part}", f"{number}1", partition="1", start="63", uevent=uevent)
        machine.link("by-partuuid", uuid, part)
    for part in ("vda/vda1", "vdb/vdb1"):
        place = machine.sys / "block" / part
        assert machine.identity(place) == machine.word(place) == ""
    for name, serial in (("vda", "one"), ("vdb", "two")):
        (machine.sys / "block" / name / "serial").write_text(serial)
    assert machine.word(machine.sys / "block/vda/vda1") == "serial:one/start:63"
    assert machine.word(machine.sys / "block/vdb/vdb1") == "serial:two/start:63"


def test_a_copy_of_a_volume_is_not_the_volume(machine: Machine) -> None:
    """LVM's and LUKS's UUIDs are on the disk, so a copy has them, and the table is the same."""
    machine.add("sda", "8:0", wwid="eui.1")
    place = machine.add("dm-0", "253:0", dm__uuid="LVM-abc", dm__name="vg-data")
    machine.tables = {"vg-data": "0 2048 linear 8:0 4096\n"}
    before = machine.word(place)
    (machine.sys / "block/sda/wwid").write_text("eui.2")
    assert machine.word(place) not in ("", before)
    (machine.sys / "block/sda/wwid").unlink()
    assert machine.word(place) == ""


def test_a_volume_is_another_one_in_the_place_of_a_former_one(machine: Machine) -> None:
    machine.add("sda", "8:0", wwid="eui.1")
    place = machine.add("dm-0", "253:0", dm__uuid="LVM-abc", dm__name="vg-data")
    machine.tables = {"vg-data": "0 2048 linear 8:0 4096\n"}
    before = machine.word(place)
    (place / "dm/uuid").write_text("LVM-other")
    assert machine.word(place) not in ("", before)


def test_options_of_a_volume_that_do_not_move_its_data_do_not_change_its_word(
    machine: Machine,
) -> None:
    for name, number in (("sda", "8:0"), ("sdb", "8:16")):
        machine.add(name, number, wwid="eui.1")
    crypt = machine.add("dm-0", "253:0", dm__uuid="CRYPT-x", dm__name="crypt")
    paths = machine.add("dm-1", "253:1", dm__uuid="mpath-3600", dm__name="paths")
    words = []
    for tables in (
        {
            "crypt": "0 2048 crypt aes-xts-plain64 :64:logon:a 0 8:0 4096\n",
            "paths": "0 2048 multipath 0 0 2 1 service-time 0 1 2 8:0 1 1 8:16 1 1\n",
        },
        {
            "crypt": "0 2048 crypt aes-xts-plain64 0000 0 8:0 4096 1 allow_discards\n",
            "paths": "0 2048 multipath 1 queue_if_no_path 0 1 1 service-time 0 1 2 8:16 1 1\n",
        },
    ):
        machine.tables = tables
        words.append((machine.word(crypt), machine.word(paths)))
    assert words[0] == words[1] and all(words[0])
    assert words[0][1].startswith("wwid:eui.1/start:0/dm:")
    machine.tables["crypt"] = "0 2048 crypt aes-xts-plain64 0000 0 8:0 8192\n"
    assert machine.word(crypt) != words[0][0]


def test_words_come_from_attributes_that_identify_a_disk(machine: Machine) -> None:
    assert machine.word(machine.add("vda", "254:0", serial="abc-1")) == "serial:abc-1"
    assert machine.word(machine.add("mmcblk0", "179:0", device__cid="15ab")) == "cid:15ab"
    # Its members have it on them.
    assert machine.word(machine.add("md0", "9:0", md__uuid="11-22")) == ""
    assert machine.word(machine.add("sdb", "8:16")) == ""
    # Two disks of one controller have one serial number.
    assert machine.word(machine.add("nvme0n1", "259:0", device__serial="S")) == ""
    # A serial number that QEMU makes up depends on the slot of the disk.
    made_up = "t10.ATA     QEMU HARDDISK                           QM00005             "
    assert machine.word(machine.add("sdc", "8:32", device__wwid=made_up)) == ""


def test_a_name_that_is_no_word_still_tells_its_disk_from_others(machine: Machine) -> None:
    one = machine.word(machine.add("vda", "254:0", serial="a b"))
    other = machine.word(machine.add("vdb", "254:16", serial="a  b"))
    assert one.startswith("sha256:") and other.startswith("sha256:") and one != other


def test_a_loop_device_is_its_file_on_its_disk(machine: Machine, tmp_path: Path) -> None:
    files = [tmp_path / "image", tmp_path / "other"]
    for file in files:
        file.touch()
    (tmp_path / "hard").hardlink_to(files[0])
    on = tmp_path.stat().st_dev
    machine.add("sda", f"{os.major(on)}:{os.minor(on)}", wwid="eui.1")
    one, again, other, beside = (
        machine.add(f"loop{i}", f"7:{i}", loop__backing_file=str(file), loop__offset=str(offset))
        for i, (file, offset) in enumerate(
            [(files[0], 0), (tmp_path / "hard", 0), (files[1], 0), (files[0], 4096)]
        )
    )
    before = machine.word(one)
    assert before == machine.word(again)
    assert len({machine.word(place) for place in (one, other, beside)}) == 3
    # A copy of the disk has the same file.
    (machine.sys / "block/sda/wwid").write_text("eui.2")
    assert machine.word(one) not in ("", before)
    # Another file under that name is another disk.
    (machine.sys / "block/sda/wwid").write_text("eui.1")
    files[1].rename(files[0])
    assert machine.word(one) not in ("", before)
    files[0].unlink()
    assert machine.word(one) == ""


def test_a_mapped_device_without_a_uuid_is_identified_by_its_table(machine: Machine) -> None:
    machine.add("sda", "8:0", wwid="eui.1")
    machine.add("sdb", "8:16", wwid="eui.2")
    places = [machine.add(f"dm-{i}", f"253:{i}", dm__uuid="", dm__name=f"v{i}") for i in range(4)]
    machine.tables = {
        "v0": "0 2048 linear 8:0 0\n",
        "v1": "0 2048 linear 8:16 0\n",
        "v2": "0 2048 linear 8:0 4096\n",
        "v3": "0 2048 linear 253:0 0\n",
    }
    words = [machine.word(place) for place in places]
    assert len(set(words)) == 4 and all("/dm:" in one for one in words)
    # In order on one disk, they say where; else they do not.
    assert words[2].startswith("wwid:eui.1/start:4096/dm:")
    machine.tables["v3"] = "0 1024 linear 8:0 0\n1024 1024 linear 8:16 0\n"
    assert machine.word(places[3]).startswith("dm:")
    # Numbers change with the next boot, disks do not.
    (machine.sys / "dev/block/8:0").rename(machine.sys / "dev/block/8:32")
    machine.tables["v0"] = "0 2048 linear 8:32 0\n"
    assert machine.word(places[0]) == words[0]
    # One of a disk that nothing tells from others is not told either.
    machine.add("sdc", "8:48")
    machine.tables["v1"] = "0 2048 linear 8:48 0\n"
    assert machine.word(places[1]) == ""


def test_the_disk_below_a_removed_volume_is_known(machine: Machine) -> None:
    """Its blocks on an SSD are newer than those of the disk, by whatever name that is asked for."""
    machine.add("sda", "8:0", wwid="eui.1")
    place = machine.add("dm-0", "253:0", dm__uuid="LVM-x", dm__name="v")
    machine.tables["v"] = "0 1024 linear 8:0 512\n"
    named = f"id:{machine.word(place)}"
    (machine.sys / "dev/block/253:0").unlink()

    def stands(place: Path) -> bool:
        return origins.stands_on(place, named, 1024, machine.mapper, machine.sys, machine.dev)

    assert stands(machine.sys / "block/sda")
    parts = [
        machine.add(f"sda/sda{i}", f"8:{i}", partition=str(i), start=start, size=size)
        for i, start, size in ((1, "0", "512"), (2, "511", "2"), (3, "1536", "512"))
    ]
    assert [stands(part) for part in parts] == [False, True, False]
    (machine.sys / "block/sda/wwid").write_text("eui.2")
    assert not stands(machine.sys / "block/sda")


def test_the_disk_with_an_identity_is_found(machine: Machine) -> None:
    machine.add("sda", "8:0", wwid="eui.1")
    machine.add("vda", "254:0", serial="abc")
    machine.add("cciss!c0d0", "104:0", device__wwid="naa.3")
    assert machine.whose("wwid:eui.1") == "/dev/sda"
    assert machine.whose("id:serial:abc") == "/dev/vda"
    assert machine.whose("wwid:naa.3") == "/dev/cciss/c0d0"
    assert machine.whose("wwid:eui.7") == machine.whose("id:x") == ""


@given(st.text(max_size=120))
def test_a_word_of_the_users_is_one_the_target_takes_or_refused(word: str) -> None:
    try:
        origins.refuse_word(word)
    except UserError as error:
        assert "\n" not in str(error)
    else:
        assert 1 <= len(word) <= 100
        assert all("!" <= letter <= "~" and letter != "\\" for letter in word)
