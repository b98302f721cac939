# SPDX-License-Identifier: GPL-2.0-only
"""What is kept of a study."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from isoblk.run.spec import PlannedRun
from isoblk.study.model import Study


class StudyRun(msgspec.Struct, frozen=True, kw_only=True):
    """One of a study's runs. id: "" until the runs it leans on have ended.
    failure: one line, "" unless it failed."""

    planned: PlannedRun
    id: str = ""
    failure: str = ""


class StudyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """study.json. runs: in the order of the expansion; planned.calibrate, .reference and
    .alone are indexes into it. source: the study file's text. presets: the title of each preset
    that the study names. made: the day on which the last of the runs was made, as 2026-01-31, in
    UTC. Both are empty in results of an isoblk that did not keep them."""

    format: int
    study: Study
    source: str
    runs: list[StudyRun]
    presets: dict[str, str] = {}
    made: str = ""


def preset_of(study: Study, point: Mapping[str, str], part: Literal["device", "ssd"]) -> str:
    """The preset that a point's device, or its SSD, is one of; "" if it is of none."""
    for key in (part, f"{part}.preset"):
        if key in point:
            return point[key]
    entry = study.device if part == "device" else study.ssd
    return entry if isinstance(entry, str) else str((entry or {}).get("preset", ""))
