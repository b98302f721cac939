# SPDX-License-Identifier: GPL-2.0-only
"""What the kernel charged to a cgroup: io.stat on v2, a blkio policy's files on v1."""

from isoblk.guest.plan import CGROUP
from isoblk.result.model import IoStat

_V1_BYTES = {"Read": "rbytes", "Write": "wbytes", "Discard": "dbytes"}
_V1_IOS = {"Read": "rios", "Write": "wios", "Discard": "dios"}


def parse_charged(read_back: dict[str, str], cgroup: str) -> IoStat | None:
    """The charges of one cgroup.

    Args:
        read_back: path to content of the files that were read.
        cgroup: the cgroup's path below the hierarchy's root.

    Returns:
        None if no file of the cgroup says anything, as on v1 without a policy that counts.
    """
    figures: dict[str, int] = {}
    for path, content in read_back.items():
        directory, _, file = path.rpartition("/")
        if directory != f"{CGROUP}/{cgroup}":
            continue
        if file == "io.stat":
            figures |= _parse_v2(content)
        else:
            names = _V1_BYTES if file.endswith("io_service_bytes") else _V1_IOS
            figures |= _parse_v1(content, names)
    if not figures:
        return None
    return IoStat(**{name: figures.get(name, 0) for name in IoStat.__struct_fields__})


def _parse_v2(content: str) -> dict[str, int]:
    """`MAJ:MIN rbytes=1 wbytes=2 ...`; the machine has one device that does I/O."""
    pairs = (word.partition("=") for line in content.splitlines() for word in line.split())
    return {name: int(value) for name, _, value in pairs if name in IoStat.__struct_fields__}


def _parse_v1(content: str, names: dict[str, str]) -> dict[str, int]:
    """`MAJ:MIN Read 1`, a line an operation."""
    figures = {}
    for line in content.splitlines():
        words = line.split()
        if len(words) == 3 and words[1] in names:
            figures[names[words[1]]] = int(words[2])
    return figures
