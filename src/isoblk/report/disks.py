# SPDX-License-Identifier: GPL-2.0-only
"""Names of a study's disks in a report: the titles of their presets."""

from isoblk.analysis.metrics import Analysis, RunView
from isoblk.report import text
from isoblk.result.study import preset_of
from isoblk.run.numbers import time
from isoblk.run.spec import Device, NullBlkDevice, VdiskDevice

MOST_NAMED = 3
FRESH, USED = ", fresh", ", used"
_STATES = {"none": FRESH, "random": USED, "sequential": ", filled in order"}


def disks(analysis: Analysis) -> list[str]:
    """Return the names of the disks under test, in order."""
    return list(dict.fromkeys(disk(analysis, view) for view in analysis.views if view.run))


def disk(analysis: Analysis, view: RunView) -> str:
    """Return the name of a finished run's disk: its preset's title, else the preset's name and the
    device."""
    assert view.run is not None
    record = view.run.record
    device = record.spec.device
    title = _title(analysis, view, "device")
    own = _model(device)
    # The title of a generic model begins with its preset's name, which is shown anyway.
    if own and (not title or ":" in title.partition(" ")[0]):
        return own
    if not title:
        return text.device(record)
    return f"{title}{_state(device)}"


def _model(device: Device) -> str:
    """Return the description of a generic model; "" for a model of a product."""
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
    """Return the state of a flash drive: erased, written sequentially, or at random."""
    if isinstance(device, VdiskDevice) and device.model == "flash":
        return _STATES[device.flash.precondition]
    return ""


def ssd(analysis: Analysis, view: RunView) -> str:
    """Return the title of the SSD's preset; "" if it is unknown."""
    return _title(analysis, view, "ssd")


def few(names: list[str]) -> str:
    """Return the names, or their number. For disks in both states, each name once."""
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
    """Return the line below every figure's title: disk, machine and software of the runs."""
    known = dict(text.provenance(analysis))
    return (
        f"tier {known['tier']} · {known['kernel']} · isoblk {known['isoblk']}"
        f" · modules {known['modules']} · {few(disks(analysis))}"
        + (f" · SSD: {few(ssds)}" if (ssds := _ssds(analysis)) else "")
    )


def _ssds(analysis: Analysis) -> list[str]:
    """Return the names of the caching SSDs, in order."""
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
