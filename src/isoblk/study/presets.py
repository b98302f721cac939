# SPDX-License-Identifier: GPL-2.0-only
"""Devices: from a preset's file, a table, or both."""

import tomllib
from collections.abc import Mapping

import msgspec

from isoblk import paths
from isoblk.errors import UserError
from isoblk.study import limits
from isoblk.study.limits import Range
from isoblk.study.model import Device, NullBlkDevice, VdiskDevice
from isoblk.study.source import Field, FieldError, suggest
from isoblk.study.units import SIZE_HINT, TIME_HINT, parse_size, parse_time

DRIVERS: dict[str, type[VdiskDevice] | type[NullBlkDevice]] = {
    "vdisk": VdiskDevice,
    "null_blk": NullBlkDevice,
}
_SIZES = frozenset({"size", "logical_block_size", "blocksize", "read_bps", "write_bps"})
_TIMES = frozenset({"read_ns", "write_ns", "trim_ns", "completion_nsec"})
_RANGES: dict[str, Range] = {
    "logical_block_size": limits.LOGICAL_BLOCK,
    "blocksize": limits.LOGICAL_BLOCK,
    "queue_depth": limits.QUEUE_DEPTH,
    "hw_queue_depth": limits.QUEUE_DEPTH,
    "hw_queues": limits.HW_QUEUES,
    "servers": limits.SERVERS,
    "read_ns": limits.SERVICE_NS,
    "write_ns": limits.SERVICE_NS,
    "trim_ns": limits.SERVICE_NS,
    "completion_nsec": limits.SERVICE_NS,
}

# Of a vdisk, while it runs (kernel/README.md).
_CHANGEABLE = ("servers", "read_ns", "write_ns", "trim_ns", "read_bps", "write_bps")

Value = str | int | bool


class _PresetFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    title: str
    source: str
    device: dict[str, Value]


def preset_names() -> list[str]:
    """Names of the presets there are, sorted."""
    return sorted(path.stem for path in paths.presets_dir().glob("*.toml"))


def load_device(entry: str | Mapping[str, Value]) -> Device:
    """The device that a study's `device` names.

    Args:
        entry: a preset's name; or a table with `preset`, `driver`, or both, and the
            attributes to set. Sizes and times may be text with a suffix; a time without
            one is in nanoseconds.

    Raises:
        FieldError: unknown preset, driver or attribute, or a value that is not allowed.
        UserError: a preset's file is damaged.
    """
    table: dict[str, Value] = {"preset": entry} if isinstance(entry, str) else dict(entry)
    preset = table.pop("preset", None)
    if preset is not None:
        field: Field = ("device",) if isinstance(entry, str) else ("device", "preset")
        base = _preset(str(preset), field)
        # Another driver has other attributes: keep none of the preset's.
        if table.get("driver", base["driver"]) != base["driver"]:
            raise FieldError(
                ("device", "driver"),
                f"preset {preset!r} has driver {base['driver']!r}",
                next="remove 'driver' or 'preset'",
            )
        table = {**base, **table}
    driver = table.pop("driver", None)
    if driver is None:
        raise FieldError(
            ("device",),
            "names neither a preset nor a driver",
            next="add preset = one of " + ", ".join(preset_names()),
        )
    if driver not in DRIVERS:
        raise FieldError(
            ("device", "driver"), f"unknown driver {driver!r}", next=suggest(str(driver), DRIVERS)
        )
    kind = DRIVERS[str(driver)]
    values = {name: _value(kind, name, value) for name, value in table.items()}
    device = msgspec.convert(values | {"driver": driver}, kind)
    _check(device)
    return device


def load_change(device: Device, entry: Mapping[str, Value]) -> dict[str, int]:
    """What an event's `device` table changes of a device that runs.

    Args:
        device: before.
        entry: the attributes that change, as load_device() takes them.

    Raises:
        FieldError: the device or the attribute cannot be changed, or not to that value.
    """
    if not isinstance(device, VdiskDevice):
        raise FieldError(
            ("device",), "only a vdisk can change while it runs", next="use a vdisk preset"
        )
    for name in entry:
        if name not in _CHANGEABLE:
            raise FieldError(
                ("device", name),
                "cannot change while the device runs",
                next=suggest(name, _CHANGEABLE),
            )
    values = {name: _value(VdiskDevice, name, value) for name, value in entry.items()}
    changed = msgspec.structs.replace(device, **values)
    _check(changed)
    return {name: getattr(changed, name) for name in entry}


def _preset(name: str, field: Field) -> dict[str, Value]:
    if name not in preset_names():
        raise FieldError(
            field, f"unknown preset {name!r}", next="presets: " + ", ".join(preset_names())
        )
    path = paths.presets_dir() / f"{name}.toml"
    try:
        table = msgspec.convert(tomllib.loads(path.read_text("utf-8")), _PresetFile).device
        if table.get("driver") not in DRIVERS:
            raise ValueError("[device] names no driver")
    except (OSError, ValueError) as error:  # both decoders' errors are ValueErrors
        raise UserError(f"damaged preset: {error}", where=str(path)) from None
    return table


def _value(kind: type[VdiskDevice] | type[NullBlkDevice], name: str, value: Value) -> Value:
    field = ("device", name)
    if name not in kind.__struct_fields__:
        raise FieldError(
            field, f"unknown attribute {name!r}", next=suggest(name, kind.__struct_fields__)
        )
    wanted = type(getattr(kind(), name))
    if wanted is int and isinstance(value, str) and name in _SIZES | _TIMES:
        try:
            return parse_size(value) if name in _SIZES else parse_time(value, "ns")
        except ValueError as error:
            hint = SIZE_HINT if name in _SIZES else TIME_HINT
            raise FieldError(field, str(error), next=hint) from None
    if wanted is str and value != getattr(kind(), name):
        raise FieldError(
            field, f"unknown {name} {value!r}", next=f"allowed: {getattr(kind(), name)}"
        )
    if type(value) is not wanted:
        words = {int: "a whole number", bool: "true or false", str: "text"}
        raise FieldError(field, f"expected {words[wanted]}, got {value!r}")
    return value


def _check(device: Device) -> None:
    for name in device.__struct_fields__:
        value = getattr(device, name)
        if name in _RANGES and value not in _RANGES[name]:
            raise FieldError(
                ("device", name), f"{value} is out of range", next=f"allowed: {_RANGES[name]}"
            )
        if isinstance(value, int) and value < 0:
            raise FieldError(("device", name), f"{value} is negative", next="allowed: 0 and more")
    name = "logical_block_size" if isinstance(device, VdiskDevice) else "blocksize"
    block = logical_block(device)
    if block & (block - 1):
        raise FieldError(
            ("device", name), f"{block} is not a power of two", next="allowed: 512, 1k, 2k, 4k"
        )
    unit = limits.MEBIBYTE if isinstance(device, NullBlkDevice) else block
    if device.size == 0 or device.size % unit:
        raise FieldError(
            ("device", "size"),
            f"{device.size} is not a multiple of {unit}",
            next=f"allowed: multiples of {unit} bytes above 0",
        )


def hardware_tags(device: Device) -> int:
    """Requests that a hardware queue of the device takes at once."""
    return device.queue_depth if isinstance(device, VdiskDevice) else device.hw_queue_depth


def logical_block(device: Device) -> int:
    """Bytes of the device's logical block: offsets and sizes are multiples of it."""
    return device.logical_block_size if isinstance(device, VdiskDevice) else device.blocksize
