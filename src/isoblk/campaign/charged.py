# SPDX-License-Identifier: GPL-2.0-only
"""Parse the kernel's charges to a cgroup: io.stat on v2, a blkio policy's files on v1."""

from collections.abc import Mapping

from isoblk.run.record import IoStat

_V1_BYTES = {"Read": "rbytes", "Write": "wbytes", "Discard": "dbytes"}
_V1_IOS = {"Read": "rios", "Write": "wios", "Discard": "dios"}


def parse_charged(read_back: Mapping[str, str], cgroup: str, device: str = "") -> IoStat | None:
    """Return the charges of one cgroup.

    Args:
        read_back: path to content of the files that were read.
        cgroup: the cgroup's directory.
        device: MAJ:MIN of the device that counts; "": all, of which one does I/O.

    Returns:
        None if no file of the cgroup has charges, as on v1 without a policy that counts.
    """
    figures: dict[str, int] = {}
    for path, content in read_back.items():
        directory, _, file = path.rpartition("/")
        if directory != cgroup:
            continue
        lines = [
            words
            for words in map(str.split, content.splitlines())
            if words and device in ("", words[0])
        ]
        if file == "io.stat":
            figures |= _parse_v2(lines)
        else:
            names = _V1_BYTES if "io_service_bytes" in file else _V1_IOS
            figures |= _parse_v1(lines, names)
    if not figures:
        return None
    return IoStat(**{name: figures.get(name, 0) for name in IoStat.__struct_fields__})


def parse_completed(text: str, cgroup: str) -> IoStat | None:
    """Return the requests that the disk completed for a cgroup.

    Args:
        text: the generator's file: a cgroup's path and its counters per line.
        cgroup: its path, from the root of the hierarchy.

    Returns:
        None if the cgroup has no line.

    Raises:
        ValueError: requests were not counted, for lack of memory.
    """
    rows = [line.rpartition(" rbytes=") for line in text.splitlines()]
    if any(line.startswith("lost ") for line in text.splitlines()):
        raise ValueError("the guest had no memory to count what its disk completed")
    found = [f"rbytes={figures}".split() for path, _, figures in rows if path == cgroup]
    if not found:
        return None
    figures = _parse_v2(found)
    return IoStat(**{name: figures.get(name, 0) for name in IoStat.__struct_fields__})


def _parse_v2(lines: list[list[str]]) -> dict[str, int]:
    """Parse `MAJ:MIN rbytes=1 wbytes=2 ...`, a line per device."""
    pairs = (word.partition("=") for words in lines for word in words)
    return {name: int(value) for name, _, value in pairs if name in IoStat.__struct_fields__}


def _parse_v1(lines: list[list[str]], names: dict[str, str]) -> dict[str, int]:
    """Parse `MAJ:MIN Read 1`, a line per operation."""
    figures = {}
    for words in lines:
        if len(words) == 3 and words[1] in names:
            figures[names[words[1]]] = int(words[2])
    return figures
