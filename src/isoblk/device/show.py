# SPDX-License-Identifier: GPL-2.0-only
"""Show a preset: its attributes with their units, its state, and its figures."""

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
from msgspec import UNSET
from rich.table import Table

from isoblk.device.text import figure
from isoblk.errors import printable
from isoblk.run.spec import Device, NullBlkDevice, VdiskDevice
from isoblk.run.units import format_size
from isoblk.study.model import ExpectEntry, ExpectLoad
from isoblk.study.presets import OWNERS, SIZES, Preset

_STATES = {
    "none": "fresh: nothing has been written",
    "sequential": "written in order",
    "random": "overwritten at random",
}
_WRITTEN = {"none": "fresh", "sequential": "in order", "random": "at random"}
LIST_KEY = (
    "written: to a flash drive before the first request. in order: once, all of it;"
    "\nat random: again and again, until its throughput no longer changed."
)
# Units of attributes whose names have none, by name; a count has no unit.
_UNITS = {
    "jitter": "per mille",
    "net_spread": "per mille",
    "read_step": "per mille of read_ns",
    "cell_bits": "bits",
    "iops": "requests/s",
    "fill": "per cent",
    "rpm": "turns a minute",
    "spare": "per mille of size",
    "queue_depth": "tags",
    "hw_queue_depth": "tags",
}
_SCALES = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))


@dataclass(frozen=True)
class Attribute:
    """An attribute of a device, as a study sets it.

    name: as "flash.read_ns". value: the model's. unit: of the value; empty for a count, a choice or
    a switch. text: the value for reading, with its unit.
    """

    name: str
    value: int | str | bool
    unit: str
    text: str


def kind(device: Device) -> str:
    """Return the model, as "vdisk flash"."""
    if isinstance(device, VdiskDevice):
        return f"vdisk {device.model}"
    return "null_blk" if isinstance(device, NullBlkDevice) else "host"


def state(device: Device) -> str:
    """Return what was written before the first request; "" if the device has no such state."""
    if not isinstance(device, VdiskDevice) or device.model != "flash":
        return ""
    full = device.flash.fill
    part = f", the first {full} %" if device.flash.precondition != "none" and full < 100 else ""
    return _STATES[device.flash.precondition] + part


def written(device: Device) -> str:
    """Return the state in two words, which LIST_KEY explains; "" if the device has no such
    state."""
    if not isinstance(device, VdiskDevice) or device.model != "flash":
        return ""
    return _WRITTEN[device.flash.precondition]


def attributes(device: Device) -> Iterator[Attribute]:
    """Yield all attributes of the model in use, in the order of the reference."""
    yield from _attributes(device, "", device.model if isinstance(device, VdiskDevice) else "")


def _attributes(struct: msgspec.Struct, prefix: str, model: str) -> Iterator[Attribute]:
    for name in struct.__struct_fields__:
        value = getattr(struct, name)
        if not prefix and OWNERS.get(name, model) != model:
            continue
        if isinstance(value, msgspec.Struct):
            yield from _attributes(value, f"{name}.", model)
        else:
            yield Attribute(prefix + name, value, _unit(name, value), _text(name, value))


def _unit(name: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int):
        return ""
    if name.endswith(("_ns", "_nsec")):
        return "ns"
    if name == "bps" or name.endswith("_bps"):
        return "bytes/s"
    return "bytes" if name in SIZES else _UNITS.get(name, "")


def _text(name: str, value: int | str | bool) -> str:
    unit = _unit(name, value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if unit == "ns":
        return _time(value)
    if unit == "bytes/s":
        return figure(value, "bps") if value else "no limit"
    if unit == "bytes":
        return format_size(value)
    return f"{value:,} {unit}".rstrip()


def _time(value: int) -> str:
    scale, unit = next((pair for pair in _SCALES if value >= pair[0]), _SCALES[-1])
    return f"{value / scale:,.6g} {unit}"


def record(name: str, preset: Preset, device: Device) -> dict[str, object]:
    """Return the JSON document of a preset."""
    return {
        "preset": name,
        "title": preset.title,
        "source": preset.source.strip(),
        "kind": kind(device),
        "state": state(device),
        "attributes": {
            attribute.name: {"value": attribute.value, "unit": attribute.unit}
            for attribute in attributes(device)
        },
        "expect": [msgspec.to_builtins(entry) for entry in preset.expect],
    }


def attribute_table(device: Device) -> Table:
    """Return a table with a row for each attribute."""
    shown = Table("attribute", box=None, pad_edge=False)
    shown.add_column("value", justify="right", no_wrap=True)
    for attribute in attributes(device):
        shown.add_row(attribute.name, attribute.text)
    return shown


def size_note(device: Device) -> str:
    """Return why a flash drive's model is smaller than the drive; "" for other devices."""
    if not isinstance(device, VdiskDevice) or device.model != "flash":
        return ""
    return (
        f"size: a model of {format_size(device.size)} stands for the whole drive, so that a run can"
        " fill it. What decides about\nthroughput and latency is kept. A study may set another."
    )


def expect_table(expect: tuple[ExpectEntry, ...]) -> Table:
    """Return a table with a row for each figure: the load, the source's value, and its place
    there."""
    shown = Table("figure", "load", "state", box=None, pad_edge=False)
    shown.add_column("published", justify="right", no_wrap=True)
    shown.add_column("source")
    for one in expect:
        state = one.state + ("" if one.fitted else ", unfitted")
        value = figure(one.value, one.metric)
        shown.add_row(printable(one.what), _load(one), state, value, printable(one.source))
    return shown


def _load(one: ExpectEntry) -> str:
    text = _pattern(one)
    if one.beside is not UNSET:
        text += f"; beside {_pattern(one.beside)}"
    if one.scheduler != "none":
        text += f"; {one.scheduler}"
    return text + "".join(f", {name} {value}" for name, value in one.iosched.items())


def _pattern(load: ExpectEntry | ExpectLoad) -> str:
    block = load.bs if isinstance(load.bs, str) else format_size(load.bs)
    jobs = f", {load.numjobs} jobs" if load.numjobs > 1 else ""
    return f"{load.rw} {block}, iodepth {load.iodepth}{jobs}"
