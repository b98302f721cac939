# SPDX-License-Identifier: GPL-2.0-only
"""Devices: from a preset's file, a table, or both."""

import functools
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from isoblk import paths, toml
from isoblk.errors import UserError
from isoblk.files import read_text
from isoblk.run import limits
from isoblk.run.field import Field, FieldError, suggest
from isoblk.run.limits import Range
from isoblk.run.spec import (
    AttributeValue,
    Device,
    DiskModel,
    FlashModel,
    HostDevice,
    NullBlkDevice,
    VdiskDevice,
)
from isoblk.run.typed import build
from isoblk.run.units import SIZE_HINT, TIME_HINT, format_size, parse_size, parse_time
from isoblk.study.model import DeviceTable, ExpectEntry

DRIVERS: dict[str, type[VdiskDevice] | type[NullBlkDevice]] = {
    "vdisk": VdiskDevice,
    "null_blk": NullBlkDevice,
}
_FRESH: Field = ("device", "fresh")
# Driver of the device on the command line, whose table isoblk writes.
HOST = "host"
# Attributes in bytes, besides rates (*_bps).
SIZES = frozenset(
    {
        *("size", "logical_block_size", "blocksize", "zone_size", "page_size", "buffer", "slc"),
        *("cache", "readahead"),
    }
)
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
    "flush_ns": limits.SERVICE_NS,
    "read_bps": limits.BPS,
    "write_bps": limits.BPS,
    "jitter": limits.JITTER,
    "completion_nsec": limits.SERVICE_NS,
    **{f"flash.{name}": allowed for name, allowed in limits.FLASH.items()},
    **{f"disk.{name}": allowed for name, allowed in limits.DISK.items()},
    **{f"volume.{name}": allowed for name, allowed in limits.VOLUME.items()},
}

# The model of a vdisk that has the attribute; all others belong to every model.
OWNERS = {
    **dict.fromkeys(("servers", "read_ns", "write_ns", "trim_ns", "flush_ns", "volume"), "fixed"),
    "flash": "flash",
    "disk": "disk",
}
# Attributes of a running vdisk that can be changed (kernel/README.md).
_CHANGEABLE = (
    *("servers", "read_ns", "write_ns", "trim_ns", "flush_ns", "read_bps", "write_bps", "jitter"),
    *(f"flash.{name}" for name in limits.FLASH_CHANGEABLE),
    *(f"disk.{name}" for name in limits.DISK_CHANGEABLE),
    *(f"volume.{name}" for name in limits.VOLUME),
)


class Preset(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A preset's file: title, source, device and figures."""

    title: str
    source: str
    device: DeviceTable
    expect: tuple[ExpectEntry, ...] = ()


def preset_names() -> list[str]:
    """Return the names of all presets, sorted."""
    return sorted(path.stem for path in paths.presets_dir().glob("*.toml"))


def load_device(entry: str | Mapping[str, object]) -> Device:
    """Return the device in a study's `device`.

    A flash drive of a preset has been written: as the preset says, else sequentially once. It is
    erased only if the table has `fresh = true`. A table without a preset is used as it is.

    Args:
        entry: a preset's name or file; or a table with `preset`, `driver`, or both, and the
            attributes to set. Sizes and times may be text with a suffix; a time without one is in
            nanoseconds.

    Raises:
        FieldError: unknown preset, driver or attribute, or a value that is not allowed.
        UserError: a preset's file is damaged.
    """
    table: dict[str, object] = {"preset": entry} if isinstance(entry, str) else dict(entry)
    preset = table.pop("preset", None)
    fresh = _fresh(table)
    if preset is not None:
        field: Field = ("device",) if isinstance(entry, str) else ("device", "preset")
        base = _load_preset(str(preset), field).device
        # Another driver has other attributes: drop those of the preset.
        if table.get("driver", base["driver"]) != base["driver"]:
            raise FieldError(
                ("device", "driver"),
                f"preset {preset!r} has driver {base['driver']!r}",
                next="remove 'driver' or 'preset'",
            )
        table = _merged(_in_state(base, fresh=fresh), table)
    elif fresh:
        raise FieldError(_FRESH, "is of a preset", next="a table without one is erased: remove it")
    driver = table.pop("driver", None)
    if driver == HOST and "name" in table:
        return build({"driver": HOST, **table}, HostDevice)
    if driver is None:
        raise FieldError(
            ("device",),
            "names neither a preset nor a driver",
            next="add preset = one of " + ", ".join(preset_names()),
        )
    if not isinstance(driver, str) or driver not in DRIVERS:
        raise FieldError(
            ("device", "driver"), f"unknown driver {driver!r}", next=suggest(str(driver), DRIVERS)
        )
    device = _with(DRIVERS[driver](), table, ("device",))
    if fresh:
        _check_fresh(device)
    if isinstance(device, VdiskDevice):
        for name in table:
            _check_owner(device, name)
    _check(device)
    return device


def load_preset(name: str) -> Preset:
    """Read a preset by its name, or by its file's name if that ends in .toml.

    Raises:
        UserError: it does not exist, or its file is damaged.
    """
    try:
        return _load_preset(name, ("preset",))
    except FieldError as error:
        raise UserError(error.cause, next=error.next) from None


def load_change(device: Device, entry: Mapping[str, object]) -> dict[str, int]:
    """Return the changes of an event's `device` table to a running device.

    Args:
        device: before the change.
        entry: the attributes that change, as for load_device().

    Returns:
        The new values by the attributes' files, as "servers" or "flash/program_ns".

    Raises:
        FieldError: the device or the attribute cannot be changed, or not to that value.
    """
    if not isinstance(device, VdiskDevice):
        raise FieldError(
            ("device",), "only a vdisk can change while it runs", next="use a vdisk preset"
        )
    changed = _with(device, entry, ("device",))
    names = list(_names(entry))
    for parts in names:
        _check_owner(device, parts[0])
        if ".".join(parts) not in _CHANGEABLE:
            raise FieldError(
                ("device", *parts),
                "cannot change while the device runs",
                next=suggest(".".join(parts), _CHANGEABLE),
            )
    _check(changed)
    return {"/".join(parts): _attribute(changed, parts) for parts in names}


def _names(table: Mapping[str, object]) -> Iterator[tuple[str, ...]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from ((name, *rest) for rest in _names(value))
        else:
            yield (name,)


def _attribute(device: VdiskDevice, parts: tuple[str, ...]) -> int:
    at: object = device
    for part in parts:
        at = getattr(at, part)
    return int(typing.cast(int, at))


def _load_preset(name: str, field: Field) -> Preset:
    if name.endswith(".toml"):
        path = Path(name)
        try:
            there = path.is_file()
        except OSError as error:
            raise FieldError(field, f"{name!r}: {error.strerror}") from None
        if not there:
            raise FieldError(field, f"no such file {name!r}")
    elif name in preset_names():
        path = paths.presets_dir() / f"{name}.toml"
    else:
        raise FieldError(field, f"unknown preset {name!r}", next=_nearest(name))
    try:
        return _parse_preset(read_text(path, "the preset"))
    except ValueError as error:
        raise UserError(f"damaged preset: {error}", where=str(path)) from None


@functools.lru_cache(maxsize=64)
def _parse_preset(text: str) -> Preset:
    """Parse a preset. The result is cached, so callers must not change it: a campaign reads its
    presets once per run.

    Raises:
        ValueError: the text is not a preset.
    """
    preset = build(toml.parse(text), Preset)
    if str(preset.device.get("driver")) not in DRIVERS:
        raise ValueError("[device] names no driver")
    return preset


def _fresh(table: dict[str, object]) -> bool:
    """Remove `fresh` from a study's table and return it."""
    fresh = table.pop("fresh", False)
    if not isinstance(fresh, bool):
        raise FieldError(_FRESH, f"expected true or false, got {fresh!r}")
    return fresh


def _in_state(base: Mapping[str, object], *, fresh: bool) -> Mapping[str, object]:
    """Return a preset's table with the state of its flash."""
    if base.get("model") != "flash":
        return base
    stated = base.get("flash")
    flash = stated if isinstance(stated, Mapping) else {}
    state = "none" if fresh else flash.get("precondition", "sequential")
    return {**base, "flash": {**flash, "precondition": state}}


def _check_fresh(device: Device) -> None:
    """Check that a fresh device is flash, and has no precondition."""
    if not isinstance(device, VdiskDevice) or device.model != "flash":
        raise FieldError(
            _FRESH, "is for flash drives: earlier writes affect no other device", next="remove it"
        )
    if device.flash.precondition != "none":
        raise FieldError(
            _FRESH,
            f"the table has flash.precondition = {device.flash.precondition!r} too",
            next="remove one of them",
        )


def _nearest(name: str) -> str:
    names = preset_names()
    begin = [one for one in names if one.startswith(name)]
    return f"did you mean {begin[0]!r}?" if name and begin else suggest(name, names)


def _merged(base: Mapping[str, object], change: Mapping[str, object]) -> dict[str, object]:
    """Return `base` with the values of `change`, table by table."""
    both = {
        name: _merged(typing.cast(Mapping[str, object], base[name]), value)
        for name, value in change.items()
        if isinstance(value, Mapping) and isinstance(base.get(name), Mapping)
    }
    return {**base, **change, **both}


StructT = typing.TypeVar("StructT", bound=msgspec.Struct)


def _with(struct: StructT, table: Mapping[str, object], field: Field) -> StructT:
    """Return the struct with the attributes of a table set."""
    names = struct.__struct_fields__
    values: dict[str, object] = {}
    for name, value in table.items():
        here = (*field, name)
        if name not in names:
            raise FieldError(here, f"unknown attribute {name!r}", next=suggest(name, names))
        part = getattr(struct, name)
        if not isinstance(part, msgspec.Struct):
            values[name] = _value(type(struct), here, value)
        elif isinstance(value, Mapping):
            values[name] = _with(part, value, here)
        else:
            raise FieldError(here, f"expected a table, got {value!r}")
    return msgspec.structs.replace(struct, **values)


@functools.cache
def _types(kind: type[msgspec.Struct]) -> dict[str, typing.Any]:
    return typing.get_type_hints(kind)


def _value(kind: type[msgspec.Struct], field: Field, value: object) -> AttributeValue:
    name = str(field[-1])
    hint = _types(kind)[name]
    if typing.get_origin(hint) is typing.Literal:
        choices = typing.get_args(hint)
        if value not in choices:
            raise FieldError(
                field, f"unknown {name} {value!r}", next="allowed: " + ", ".join(choices)
            )
        return str(value)
    is_size = name in SIZES or name == "bps" or name.endswith("_bps")
    is_time = name.endswith(("_ns", "_nsec"))
    if hint is int and isinstance(value, str) and (is_size or is_time):
        try:
            return parse_size(value) if is_size else parse_time(value, "ns")
        except ValueError as error:
            hint_text = SIZE_HINT if is_size else TIME_HINT
            raise FieldError(field, str(error), next=hint_text) from None
    if type(value) is not hint:
        words = {int: "a whole number", bool: "true or false"}
        raise FieldError(field, f"expected {words[hint]}, got {value!r}")
    return typing.cast(AttributeValue, value)


def _check_owner(device: VdiskDevice, name: str) -> None:
    """Check that the model in use has the attribute, which would else have no effect."""
    if name in OWNERS and OWNERS[name] != device.model:
        raise FieldError(
            ("device", name),
            f"is of model {OWNERS[name]!r}, and the device's model is {device.model!r}",
            next=f"set model = {OWNERS[name]!r}, or remove it",
        )


def _check(device: Device) -> None:
    _check_ranges(device, ())
    if isinstance(device, VdiskDevice):
        _check_flash(device.flash)
        _check_disk(device.disk)
    name = "logical_block_size" if isinstance(device, VdiskDevice) else "blocksize"
    block = logical_block(device)
    if block & (block - 1):
        raise FieldError(
            ("device", name), f"{block} is not a power of two", next="allowed: 512, 1k, 2k, 4k"
        )
    unit = limits.MEBIBYTE if isinstance(device, NullBlkDevice) else limits.PHYSICAL_BLOCK
    if device.size == 0 or device.size % unit:
        raise FieldError(
            ("device", "size"),
            f"{device.size} is not a multiple of {unit}",
            next=f"allowed: multiples of {unit} bytes above 0",
        )
    if isinstance(device, NullBlkDevice) and device.zone_size:
        _check_zones(device)


def _check_zones(device: NullBlkDevice) -> None:
    zone = device.zone_size
    if zone & (zone - 1) or zone % limits.MEBIBYTE or device.size % zone:
        raise FieldError(
            ("device", "zone_size"),
            f"{zone} is not a power of two that divides the size, {format_size(device.size)}",
            next="allowed: 1m, 2m, 4m, ...; 0: no zones",
        )


def _check_flash(flash: FlashModel) -> None:
    if flash.page_size % limits.PHYSICAL_BLOCK:
        raise FieldError(
            ("device", "flash", "page_size"),
            f"{flash.page_size} is not a multiple of 4096",
            next="allowed: 4k, 8k, 16k, ...",
        )
    units = flash.block_pages * flash.planes * flash.page_size // limits.PHYSICAL_BLOCK
    if units > limits.FLASH_BLOCK_UNITS:
        raise FieldError(
            ("device", "flash", "block_pages"),
            f"a block of {flash.planes} planes has {units} units of 4 KiB",
            next=f"allowed: up to {limits.FLASH_BLOCK_UNITS}",
        )
    if flash.gc_low >= flash.gc_high:
        raise FieldError(
            ("device", "flash", "gc_low"),
            f"{flash.gc_low} is not below gc_high",
            next=f"allowed: less than {flash.gc_high}",
        )


def _check_disk(disk: DiskModel) -> None:
    for low, high in (
        ("seek_min_ns", "seek_avg_ns"),
        ("seek_avg_ns", "seek_max_ns"),
        ("inner_bps", "outer_bps"),
    ):
        if getattr(disk, low) > getattr(disk, high):
            raise FieldError(
                ("device", "disk", low),
                f"{getattr(disk, low)} is above {high}",
                next=f"allowed: up to {getattr(disk, high)}",
            )


def _check_ranges(struct: msgspec.Struct, parts: tuple[str, ...]) -> None:
    for name in struct.__struct_fields__:
        value = getattr(struct, name)
        here = (*parts, name)
        allowed = _RANGES.get(".".join(here))
        if isinstance(value, msgspec.Struct):
            _check_ranges(value, here)
        elif allowed is not None and value not in allowed:
            raise FieldError(
                ("device", *here), f"{value} is out of range", next=f"allowed: {allowed}"
            )
        elif isinstance(value, int) and value < 0:
            raise FieldError(("device", *here), f"{value} is negative", next="allowed: 0 and more")


def hardware_tags(device: Device) -> int:
    """Return the number of requests that a hardware queue of the device takes."""
    return device.hw_queue_depth if isinstance(device, NullBlkDevice) else device.queue_depth


def logical_block(device: Device) -> int:
    """Return the device's logical block size, bytes: offsets and sizes are multiples of it."""
    return device.blocksize if isinstance(device, NullBlkDevice) else device.logical_block_size


def memory_bytes(device: Device, used: int = 0) -> int:
    """Return the most memory of the machine that the device takes, bytes: the map of its flash, and
    the data that it keeps, at most `used` bytes if that is not 0."""
    if isinstance(device, HostDevice):
        return 0
    if isinstance(device, NullBlkDevice):
        return device.size if device.memory_backed else 0
    kept = (used or device.size) if device.store == "memory" else 0
    if device.model != "flash":
        return kept
    flash_bytes = device.size * (1000 + device.flash.spare) // 1000 + device.flash.slc
    return kept + flash_bytes // limits.PHYSICAL_BLOCK * limits.FLASH_MAP_BYTES
