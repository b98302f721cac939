# SPDX-License-Identifier: GPL-2.0-only
"""The parts of a plan that concern the layers between the disk and the tenants, and data that are
written through them, or through a cache, before a run."""

from isoblk.layers import registry
from isoblk.plan import target
from isoblk.run.extent import usable_bytes
from isoblk.run.shell import Form, Statement, Syntax, run
from isoblk.run.spec import RunSpec
from isoblk.run.tier import Place


class _Line(Form):
    NO_UDEV = "export DM_DISABLE_UDEV=1"
    MAJOR = "major=$(sed -n 's/ device-mapper$//p' /proc/devices)"


DEVICE_MAPPER = (_Line.NO_UDEV, _Line.MAJOR)
"""Statements before devices of device-mapper are made: a guest has no udevd to wait for, and the
major number depends on the kernel's other drivers."""


def make(spec: RunSpec, place: Place) -> list[Statement]:
    """Return the commands that make the layers, and write the tenants' regions if a layer needs
    it."""
    if not spec.stack:
        return []
    lines = registry.make(spec.stack, target.disks(spec, place), spec.device.size)
    if spec.filesystem is None and any(one.keeps for one in registry.layers_of(spec.stack)):
        lines += zeros(spec, target.device(spec, place))
    return [*DEVICE_MAPPER, *lines]


def zeros(spec: RunSpec, path: str) -> list[Statement]:
    """Return the commands that write the tenants' regions sequentially."""
    how = ("iflag=count_bytes", "oflag=direct,seek_bytes", "conv=notrunc", Syntax.QUIET)
    write = ("dd", "if=/dev/zero", f"of={path}", "bs=1M")
    return [run(*write, f"seek={offset}", f"count={size}", *how) for offset, size in regions(spec)]


def regions(spec: RunSpec) -> list[tuple[int, int]]:
    """Return the tenants' regions: first byte, bytes."""
    loads = [tenant.workload for tenant in spec.tenants]
    whole = registry.size_of(spec.stack, usable_bytes(spec.device, spec.caching))
    return sorted({(load.offset, load.size or whole - load.offset) for load in loads})
