# SPDX-License-Identifier: GPL-2.0-only
"""A machine of plain files: enough of /sys and /proc for a disk."""

from dataclasses import dataclass
from pathlib import Path

from isoblk.machine.blockdev import Disk, disk_of

NUMBER = "8:16"


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@dataclass(frozen=True)
class FakeMachine:
    """A disk sdb with one partition, on which nothing happens."""

    root: Path

    @property
    def sys(self) -> Path:
        return self.root / "sys"

    @property
    def proc(self) -> Path:
        return self.root / "proc"

    @property
    def place(self) -> Path:
        return self.sys / "block/sdb"

    def show(self, *names: str) -> None:
        """Have /sys/class/block list devices of /sys/block."""
        for name in names:
            link = self.sys / "class/block" / name
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(self.sys / "block" / name)

    def disk(self) -> Disk:
        return disk_of("/dev/sdb", NUMBER, self.sys)


def machine(root: Path) -> FakeMachine:
    made = FakeMachine(root)
    disk = made.place
    for name, text in {
        "dev": NUMBER,
        "ro": "0",
        "size": "2097152",
        "device/model": "FAST SSD  ",
        "mq/0/nr_tags": "128",
        "mq/1/nr_tags": "127",
        "queue/scheduler": "none [mq-deadline] kyber bfq",
        "queue/nr_requests": "256",
        "queue/rotational": "0",
        "queue/logical_block_size": "512",
        "queue/discard_max_bytes": "0",
        "queue/iosched/read_expire": "250",
        "sdb1/partition": "1",
        "sdb1/dev": "8:17",
    }.items():
        put(disk / name, f"{text}\n")
    (disk / "queue/logical_block_size").chmod(0o444)
    numbers = made.sys / "dev/block"
    numbers.mkdir(parents=True)
    (numbers / NUMBER).symlink_to(disk)
    (numbers / "8:17").symlink_to(disk / "sdb1")
    put(made.proc / "self/mountinfo", "22 1 254:0 / / rw - ext4 /dev/root rw\n")
    put(made.proc / "swaps", "Filename Type Size Used Priority\n")
    return made
