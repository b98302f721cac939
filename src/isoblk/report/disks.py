# SPDX-License-Identifier: GPL-2.0-only
"""What a report calls the disks of a study: by the titles of their presets."""

from isoblk.analysis.metrics import Analysis, RunView
from isoblk.report import text
from isoblk.result.study import preset_of

MOST_NAMED = 3


def disks(analysis: Analysis) -> list[str]:
    """The disks under test, in order."""
    return list(dict.fromkeys(disk(analysis, view) for view in analysis.views if view.run))


def disk(analysis: Analysis, view: RunView) -> str:
    """A finished run's disk: its preset's title, else the preset's name and what the device is."""
    assert view.run is not None
    record = view.run.record
    title = _title(analysis, view, "device")
    if not title:
        return text.device(record.spec, record.tier)
    return f"{title}, fresh" if text.is_fresh(record.spec.device) else title


def ssd(analysis: Analysis, view: RunView) -> str:
    """The title of the SSD's preset; "" if that is not known."""
    return _title(analysis, view, "ssd")


def few(names: list[str]) -> str:
    """The names, or how many there are."""
    return "; ".join(names) if len(names) <= MOST_NAMED else f"{len(names)} disks"


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
