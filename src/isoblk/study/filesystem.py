# SPDX-License-Identifier: GPL-2.0-only
"""The arguments of mkfs and mount that a study may set. Both run as root, also on the host machine.

Excluded are options that name other files, devices or programs, and those that stop the machine at
an error.
"""

import re
from collections.abc import Mapping, Sequence

from isoblk.run.field import Field, FieldError, suggest
from isoblk.run.spec import FilesystemType

_NUMBER = r"[0-9]+(?:\.[0-9]+)?[bkmgs]?"
_WORD = r"[A-Za-z0-9_.-]+"


def _list(*names: str) -> str:
    """Return a pattern for NAME or NAME=VALUE, separated by commas."""
    one = f"(?:{'|'.join(names)})(?:={_WORD})?"
    return f"{one}(?:,{one})*"


_EXT4_EXTENDED = (
    *("assume_storage_prezeroed", "desc-size", "discard", "hash_seed", "lazy_itable_init"),
    *("lazy_journal_init", "nodiscard", "num_backup_sb", "orphan_file_size", "packed_meta_blocks"),
    *("resize", "stride", "stripe-width", "stripe_width"),
)
# By type, mkfs's options with an argument, and the pattern of the argument.
MKFS: Mapping[FilesystemType, Mapping[str, str]] = {
    "ext4": {
        **dict.fromkeys(("-b", "-C", "-g", "-G", "-i", "-I", "-m", "-N"), _NUMBER),
        "-E": _list(*_EXT4_EXTENDED),
        "-J": _list("fast_commit_size", "size"),
        "-O": r"\^?[a-z0-9_]+(?:,\^?[a-z0-9_]+)*",
        "-T": r"[a-z0-9]+(?:,[a-z0-9]+)*",
    },
    "xfs": {
        "-b": _list("size"),
        "-d": _list(
            *("agcount", "agsize", "cowextsize", "extszinherit", "noalign", "su", "sunit"),
            *("sw", "swidth"),
        ),
        "-i": _list("align", "attr", "exchange", "maxpct", "nrext64", "size", "sparse"),
        "-l": _list("lazy-count", "size", "su", "sunit", "version"),
        "-m": _list("bigtime", "crc", "finobt", "inobtcount", "reflink", "rmapbt"),
        "-n": _list("ftype", "size", "version"),
        "-s": _list("size"),
    },
    "btrfs": {
        **dict.fromkeys(("-n", "--nodesize", "-s", "--sectorsize"), _NUMBER),
        **dict.fromkeys(("-d", "--data", "-m", "--metadata"), r"single|dup"),
        "--csum": r"crc32c|xxhash|sha256|blake2",
        **dict.fromkeys(("-O", "--features"), r"\^?[a-z0-9-]+(?:,\^?[a-z0-9-]+)*"),
    },
}
_ANY = (
    *("async", "dirsync", "discard", "lazytime", "noatime", "nodev", "nodiratime", "nodiscard"),
    *("noexec", "nolazytime", "nosuid", "relatime", "strictatime", "sync"),
)
MOUNT: Mapping[FilesystemType, Sequence[str]] = {
    "ext4": (
        *_ANY,
        *("auto_da_alloc", "barrier", "block_validity", "commit", "data", "delalloc"),
        *("dioread_lock", "dioread_nolock", "init_itable", "inode_readahead_blks"),
        *("journal_async_commit", "journal_checksum", "journal_ioprio", "max_batch_time"),
        *("mb_optimize_scan", "min_batch_time", "noauto_da_alloc", "nobarrier"),
        *("noblock_validity", "nodelalloc", "noinit_itable", "nojournal_checksum", "stripe"),
    ),
    "xfs": (
        *_ANY,
        *("allocsize", "filestreams", "inode32", "inode64", "largeio", "logbsize", "logbufs"),
        *("noalign", "nolargeio", "sunit", "swalloc", "swidth", "wsync"),
    ),
    "btrfs": (
        *_ANY,
        *("autodefrag", "barrier", "commit", "compress", "compress-force", "datacow", "datasum"),
        *("flushoncommit", "max_inline", "metadata_ratio", "noautodefrag", "nobarrier"),
        *("nodatacow", "nodatasum", "noflushoncommit", "nospace_cache", "nossd", "nossd_spread"),
        *("notreelog", "space_cache", "ssd", "ssd_spread", "thread_pool", "treelog"),
    ),
}


def check_options(kind: FilesystemType, mkfs: Sequence[str], mount: str) -> None:
    """Check a study's arguments of mkfs and mount.

    Args:
        kind: type of the file system.
        mkfs: further arguments of mkfs.
        mount: options, as of mount -o; "" for none.

    Raises:
        FieldError: an option is not allowed.
    """
    known = MKFS[kind]
    for at in range(0, len(mkfs), 2):
        field: Field = ("filesystem", "mkfs", at)
        option, *argument = mkfs[at : at + 2]
        if option not in known:
            raise FieldError(
                field,
                f"{option!r} is not an option of mkfs.{kind} that a study may give",
                next='allowed: each with its argument, as in ["-b", "4096"]: ' + ", ".join(known),
            )
        if not argument or not re.fullmatch(known[option], argument[0], re.ASCII):
            given = repr(argument[0]) if argument else "nothing"
            raise FieldError(
                field, f"{given} is not an argument of {option}", next="see docs/guides/programs.md"
            )
    for one in mount.split(",") if mount else []:
        name, equals, value = one.partition("=")
        if name not in MOUNT[kind] or (equals and not re.fullmatch(_WORD, value, re.ASCII)):
            raise FieldError(
                ("filesystem", "mount"),
                f"{one!r} is not an option of mount for {kind} that a study may give",
                next=suggest(name, MOUNT[kind]),
            )
