# SPDX-License-Identifier: GPL-2.0-only
"""Check that a study's stack of layers can be created, and that the tenants fit it."""

from isoblk.layers.registry import NO_STACK, disks_of, layers_of, size_of
from isoblk.run import limits
from isoblk.run.field import FieldError
from isoblk.run.spec import NullBlkDevice, RunSpec, VdiskDevice
from isoblk.run.units import format_size
from isoblk.schedulers.registry import kind_of
from isoblk.study.model import Study

_FIELD = ("stack",)


def check_stack(study: Study, spec: RunSpec) -> None:
    """Check the stack at one point of the matrix.

    Raises:
        FieldError: the cause, and the allowed values.
    """
    if not spec.stack:
        return
    if spec.caching is not None:
        raise FieldError(
            _FIELD, "not with an SSD: a cache is a layer of its own", next='set "none"'
        )
    if spec.cgroup != "v2":
        raise FieldError(
            ("run", "cgroup"), "layers pass on the cgroups of v2 alone", next='set "v2"'
        )
    _check_order(spec)
    _check_disk(spec)
    if study.filesystem is not None and (study.filesystem.offset or study.filesystem.size):
        raise FieldError(
            ("filesystem", "size" if study.filesystem.size else "offset"),
            "on layers the file system takes all of the uppermost device",
            next="remove it, or set device.size",
        )
    if disks_of(spec.stack) > 1 and kind_of(spec.scheduler).one_disk:
        raise FieldError(
            _FIELD,
            f"{spec.scheduler.name} is set for one disk, and this stack has {disks_of(spec.stack)}",
            next=f"remove {spec.scheduler.name}, or the layer",
        )


def _check_order(spec: RunSpec) -> None:
    for place, layer in enumerate(layers_of(spec.stack)):
        if layer.name in spec.stack[:place]:
            raise FieldError(_FIELD, f"{layer.name!r} is there twice", next="keep one of them")
        if place and layer.disks > 1:
            raise FieldError(
                _FIELD,
                f"{layer.name!r} is made of disks, not of {spec.stack[place - 1]!r}",
                next=f"put it first, in place of {spec.stack[0]!r}"
                if layers_of(spec.stack)[0].disks > 1
                else "put it first",
            )


def _check_disk(spec: RunSpec) -> None:
    """Check that the disk keeps data, and is large enough for the layers."""
    device = spec.device
    keeping = [layer.name for layer in layers_of(spec.stack) if layer.keeps]
    if keeping and isinstance(device, VdiskDevice) and device.store == "none":
        raise FieldError(
            ("device", "store"),
            f"{keeping[0]!r} has metadata on the disk, and this one keeps nothing",
            next='set store = "memory"',
        )
    if isinstance(device, NullBlkDevice) and (keeping and not device.memory_backed):
        raise FieldError(
            ("device", "memory_backed"),
            f"{keeping[0]!r} has metadata on the disk, and this one keeps nothing",
            next="set memory_backed = true",
        )
    least = limits.STACK_BYTES
    if size_of(spec.stack, device.size) < least:
        raise FieldError(
            ("device", "size"),
            f"{format_size(device.size)} leave the tenants less than {format_size(least)}"
            f" on the stack {' '.join(spec.stack)!r}",
            next=f'give it more, or set stack = "{NO_STACK}"',
        )
