# SPDX-License-Identifier: GPL-2.0-only
"""The record of a study."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from isoblk.run.spec import PlannedRun
from isoblk.study.model import Study


class StudyRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run of a study. id: "" until the runs that it depends on have ended. failure: one line, ""
    unless it failed."""

    planned: PlannedRun
    id: str = ""
    failure: str = ""


class StudyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """study.json. runs: in the order of the expansion; planned.calibrate, .reference and .alone are
    indices into it. source: the study file's text. presets: the title of each preset in the study.
    made: UTC day of the last run, as 2026-01-31. presets and made are empty in results of an older
    isoblk."""

    format: int
    study: Study
    source: str
    runs: list[StudyRun]
    presets: dict[str, str] = {}
    made: str = ""


def preset_of(study: Study, point: Mapping[str, str], part: Literal["device", "ssd"]) -> str:
    """Return the preset of a point's device or SSD; "" without one."""
    for key in (part, f"{part}.preset"):
        if key in point:
            return point[key]
    entry = study.device if part == "device" else study.ssd
    return entry if isinstance(entry, str) else str((entry or {}).get("preset", ""))
