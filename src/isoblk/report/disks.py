# SPDX-License-Identifier: GPL-2.0-only
"""What a report calls the disks of a study: by the titles of their presets."""

from isoblk.analysis.metrics import Analysis, RunView
from isoblk.report import text
from isoblk.result.study import preset_of
from isoblk.run.numbers import time
from isoblk.run.spec import Device, NullBlkDevice, VdiskDevice

MOST_NAMED = 3
FRESH, USED = ", fresh", ", used"
_STATES = {"none": FRESH, "random": USED, "sequential": ", filled in order"}


def disks(analysis: Analysis) -> list[str]:
    """The disks under test, in order."""
    return list(dict.fromkeys(disk(analysis, view) for view in analysis.views if view.run))


def disk(analysis: Analysis, view: RunView) -> str:
    """A finished run's disk: its preset's title, else the preset's name and what the device is."""
    assert view.run is not None
    record = view.run.record
    device = record.spec.device
    title = _title(analysis, view, "device")
    own = _model(device)
    # A model's title begins with its preset's name, and tells what is told here.
    if own and (not title or ":" in title.partition(" ")[0]):
        return own
    if not title:
        return text.device(record)
    return f"{title}{_state(device)}"


def _model(device: Device) -> str:
    """What a disk is that is a model of nothing that is sold; "" of another."""
    if isinstance(device, NullBlkDevice):
        return f"a model disk (null_blk): {time(device.completion_nsec)} a request"
    if not isinstance(device, VdiskDevice) or device.model == "disk":
        return ""
    if device.model == "flash":
        dies = device.flash.channels * device.flash.dies
        return f"a model SSD of {dies} flash dies{_state(device)}"
    read, write = time(device.read_ns), time(device.write_ns)
    each = read if read == write else f"{read} to read, {write} to write"
    return f"a model disk: {device.servers} servers of {each}"


def _state(device: Device) -> str:
    """What was written to a flash drive before: nothing, all in order, or all at random."""
    if isinstance(device, VdiskDevice) and device.model == "flash":
        return _STATES[device.flash.precondition]
    return ""


def ssd(analysis: Analysis, view: RunView) -> str:
    """The title of the SSD's preset; "" if that is not known."""
    return _title(analysis, view, "ssd")


def few(names: list[str]) -> str:
    """The names, or how many there are. Of disks that all are fresh and used, each once."""
    if len(names) <= MOST_NAMED:
        for state in _STATES.values():
            if len(names) > 1 and all(name.endswith(state) for name in names):
                return "; ".join(
                    [*(name.removesuffix(state) for name in names), f"each{state[1:]}"]
                )
        return "; ".join(names)
    once = list(dict.fromkeys(name.removesuffix(FRESH).removesuffix(USED) for name in names))
    both = {f"{name}{state}" for name in once for state in (FRESH, USED)}
    if set(names) == both and len(once) <= MOST_NAMED:
        return f"{'; '.join(once)}; {'each ' if len(once) > 1 else ''}fresh and used"
    return f"{len(names)} disks"


def footer(analysis: Analysis) -> str:
    """The line below every figure's title: what the runs were made with."""
    known = dict(text.provenance(analysis))
    return (
        f"tier {known['tier']} · {known['kernel']} · isoblk {known['isoblk']}"
        f" · modules {known['modules']} · {few(disks(analysis))}"
        + (f" · SSD: {few(ssds)}" if (ssds := _ssds(analysis)) else "")
    )


def _ssds(analysis: Analysis) -> list[str]:
    """The SSDs before them, in order."""
    cached = [view for view in analysis.views if view.run and view.run.record.spec.caching]
    return list(
        dict.fromkeys(
            ssd(analysis, view) or text.ssd(view.run.record) for view in cached if view.run
        )
    )


def _title(analysis: Analysis, view: RunView, part: str) -> str:
    record = analysis.results.record
    name = preset_of(record.study, view.spec.point, "ssd" if part == "ssd" else "device")
    return record.presets.get(name, "")
