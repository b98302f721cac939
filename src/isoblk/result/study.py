# SPDX-License-Identifier: GPL-2.0-only
"""What is kept of a study."""

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
    .alone are indexes into it. source: the study file's text."""

    format: int
    study: Study
    source: str
    runs: list[StudyRun]
