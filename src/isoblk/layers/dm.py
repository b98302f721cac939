# SPDX-License-Identifier: GPL-2.0-only
"""Layers of device-mapper, set up as in the kernel's Documentation/admin-guide/device-mapper:
linear (LVM's plain volumes), crypt (LUKS), thin (LVM's thin volumes) and integrity."""

from collections.abc import Mapping, Sequence

from isoblk.layers.base import MIB, SECTOR, Layer, dm_device, zeros
from isoblk.run.shell import Statement, run

# The minor number of each layer's own device; a thin volume has three more below it.
_MINORS = {"linear": 0, "crypt": 1, "integrity": 2, "thin": 3}
_THIN_POOL, _THIN_METADATA, _THIN_DATA = 4, 5, 6

# Not secret: AES-256 in XTS mode takes two keys of 32 bytes, which must differ.
_KEY = "0f" * 32 + "f0" * 32

_THIN_METADATA_BYTES = 8 * MIB
_THIN_BLOCK = 64 << 10

# Bytes per checksum, the page size: 512 would take eight times the metadata.
_INTEGRITY_BLOCK = 4096


class _Dm(Layer):
    """Common parts of all device-mapper targets."""

    @property
    def block(self) -> str:  # type: ignore[override]
        return f"dm-{_MINORS[self.name]}"

    @property
    def device(self) -> str:  # type: ignore[override]
        return f"/dev/mapper/{self.name}"

    def needs(self) -> Mapping[str, str]:
        return {"dmsetup": "dmsetup"}

    def target(self, below: str) -> str:
        """Return the target's line, from its name on. below: path of the device below."""
        raise NotImplementedError

    def make(self, below: Sequence[str], size: int) -> list[Statement]:
        target = self.target(f"/dev/{below[0]}")
        return [dm_device(self.name, _MINORS[self.name], self.size(size), target)]


class Linear(_Dm):
    """The same bytes at the same offsets."""

    name = "linear"

    def target(self, below: str) -> str:  # noqa: D102
        return f"linear {below} 0"


class Crypt(_Dm):
    """AES-256 in XTS mode, the default of LUKS."""

    name = "crypt"

    def target(self, below: str) -> str:  # noqa: D102
        return f"crypt aes-xts-plain64 {_KEY} 0 {below} 0"


class Integrity(_Dm):
    """A CRC32C of each 4 KiB. Data and checksums go through a journal.

    All of the device is written once, as by integritysetup: a block that was never written has no
    checksum, and a read of it fails.
    """

    name = "integrity"
    keeps = True

    def size(self, below: int) -> int:
        """Return the size: journal and checksums together are less than a 64th; the kernel refuses
        more."""
        return (below - below // 64) // MIB * MIB - MIB

    def target(self, below: str) -> str:  # noqa: D102
        return f"integrity {below} 0 - J 2 internal_hash:crc32c block_size:{_INTEGRITY_BLOCK}"

    def make(self, below: Sequence[str], size: int) -> list[Statement]:  # noqa: D102
        return [
            # Zeros make the target format its metadata; a layer below may not return zeros by
            # itself.
            zeros(f"/dev/{below[0]}", 1),
            *super().make(below, size),
            zeros(self.device, self.size(size) // MIB),
        ]


class Thin(_Dm):
    """A thin volume as large as its pool. Blocks that were never written are not on the disk."""

    name = "thin"
    keeps = True

    def size(self, below: int) -> int:
        """Return the size without the pool's metadata, which are on the same disk."""
        return (below - _THIN_METADATA_BYTES) // _THIN_BLOCK * _THIN_BLOCK

    def make(self, below: Sequence[str], size: int) -> list[Statement]:  # noqa: D102
        disk = f"/dev/{below[0]}"
        data = self.size(size)
        parts = "/dev/mapper/thin-metadata /dev/mapper/thin-data"
        pool = f"thin-pool {parts} {_THIN_BLOCK // SECTOR} 0"
        start = _THIN_METADATA_BYTES // SECTOR
        return [
            # As for integrity.
            zeros(disk, 1),
            dm_device("thin-metadata", _THIN_METADATA, _THIN_METADATA_BYTES, f"linear {disk} 0"),
            dm_device("thin-data", _THIN_DATA, data, f"linear {disk} {start}"),
            dm_device("thin-pool", _THIN_POOL, data, pool),
            run("dmsetup", "message", "thin-pool", 0, "create_thin 0"),
            dm_device(self.name, _MINORS[self.name], data, "thin /dev/mapper/thin-pool 0"),
        ]
