# SPDX-License-Identifier: GPL-2.0-only
"""An origin is known by the same identity or word whenever it is looked at, and another disk by
another one."""

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
        (directory / name).symlink_to(f"../../{node}")

    def mapper(self, *words: str, table: str = "") -> str:
        assert (words[0], table) == ("table", "")
        return self.tables[words[1]]

    def identity(self, place: Path) -> str:
        return origins.identity(place, self.dev)

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
        ({"dm__uuid": "LVM-abc"}, "dm:LVM-abc"),
        ({"dm__uuid": ""}, ""),
        ({}, ""),
    ],
)
def test_an_identity_is_what_the_kernel_calls_the_device(
    machine: Machine, files: dict[str, str], identity: str
) -> None:
    assert machine.identity(machine.add("sda", "8:0", **files)) == identity


def test_a_partition_is_one_of_its_disk(machine: Machine) -> None:
    machine.add("sda", "8:0", wwid="eui.1")
    one = machine.add("sda/sda1", "8:1", partition="1", start="2048", uevent="PARTUUID=aa-bb")
    two = machine.add("sda/sda2", "8:2", partition="2", start="4096")
    assert machine.identity(one) == "wwid:eui.1/part:aa-bb"
    assert machine.identity(two) == "wwid:eui.1/start:4096"
    machine.add("vda", "254:0", serial="disk 1")
    part = machine.add("vda/vda1", "254:1", partition="1", start="2048")
    assert machine.identity(part) == ""
    assert machine.word(part).endswith("/start:2048")
    machine.link("by-partuuid", "cc-dd", "vda1")
    assert machine.identity(part) == "part:cc-dd"
    assert machine.word(part) == ""


def test_words_come_from_what_names_a_disk(machine: Machine) -> None:
    assert machine.word(machine.add("vda", "254:0", serial="abc-1")) == "serial:abc-1"
    assert machine.word(machine.add("md0", "9:0", md__uuid="11-22")) == "uuid:11-22"
    usb = machine.add("sdb", "8:16")
    assert machine.word(usb) == ""
    # Not what is on it, and what can be given to another.
    machine.link("by-id", "lvm-pv-uuid-x", "sdb")
    assert machine.word(usb) == ""
    machine.link("by-id", "usb-Stick_123-0:0", "sdb")
    assert machine.word(usb) == "usb-Stick_123-0:0"
    # Two disks of one controller have one serial number.
    assert machine.word(machine.add("nvme0n1", "259:0", device__serial="S")) == ""


def test_a_name_that_is_no_word_still_tells_its_disk_from_others(machine: Machine) -> None:
    one = machine.word(machine.add("vda", "254:0", serial="a b"))
    other = machine.word(machine.add("vdb", "254:16", serial="a  b"))
    assert one.startswith("sha256:") and other.startswith("sha256:") and one != other


def test_a_loop_device_is_its_file(machine: Machine, tmp_path: Path) -> None:
    files = [tmp_path / "image", tmp_path / "other"]
    for file in files:
        file.touch()
    one, again, other = (
        machine.add(f"loop{i}", f"7:{i}", loop__backing_file=str(file))
        for i, file in enumerate([files[0], files[0], files[1]])
    )
    assert machine.word(one) == machine.word(again) != machine.word(other)
    before = machine.word(one)
    # Another file under that name is another disk.
    files[1].rename(files[0])
    assert machine.word(one) not in ("", before)
    files[0].unlink()
    assert machine.word(one) == ""


def test_a_mapped_device_without_a_uuid_is_what_it_is_made_of(machine: Machine) -> None:
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
    assert len(set(words)) == 4 and all(one.startswith("dm:") for one in words)
    # Numbers change with the next boot, disks do not.
    (machine.sys / "dev/block/8:0").rename(machine.sys / "dev/block/8:32")
    machine.tables["v0"] = "0 2048 linear 8:32 0\n"
    assert machine.word(places[0]) == words[0]
    # One of a disk that nothing tells from others is not told either.
    machine.add("sdc", "8:48")
    machine.tables["v1"] = "0 2048 linear 8:48 0\n"
    assert machine.word(places[1]) == ""


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
