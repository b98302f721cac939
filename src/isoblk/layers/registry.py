# SPDX-License-Identifier: GPL-2.0-only
"""The layers of a study's stack, and the stack as a whole."""

from collections.abc import Sequence

from isoblk.layers.base import Layer
from isoblk.layers.dm import Crypt, Integrity, Linear, Thin
from isoblk.layers.loop import Loop
from isoblk.layers.md import Raid
from isoblk.run.shell import Statement

NO_STACK = "none"
"""Name of the stack without layers."""

LAYERS: dict[str, Layer] = {
    layer.name: layer
    for layer in (
        *(Linear(), Crypt(), Thin(), Integrity(), Loop()),
        *(Raid("raid0", 2, 2), Raid("raid1", 2, 1), Raid("raid5", 3, 2)),
    )
}


def layers_of(stack: Sequence[str]) -> list[Layer]:
    """Return the layers, from the disk up."""
    return [LAYERS[name] for name in stack]


def disks_of(stack: Sequence[str]) -> int:
    """Return the number of disks of a run with this stack."""
    return max((layer.disks for layer in layers_of(stack)), default=1)


def size_of(stack: Sequence[str], disk: int) -> int:
    """Return the bytes that tenants have on disks of that size; 0 or less if they are too small."""
    size = disk
    for layer in layers_of(stack):
        size = layer.size(size)
    return size


def make(stack: Sequence[str], disks: Sequence[str], size: int) -> list[Statement]:
    """Return the commands that make the stack's devices. disks: the kernel's names; size: bytes of
    each."""
    lines: list[Statement] = []
    below = disks
    for layer in layers_of(stack):
        lines += layer.make(below, size)
        below, size = [layer.block], layer.size(size)
    return lines
