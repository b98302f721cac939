# SPDX-License-Identifier: GPL-2.0-only
"""A runnable example study, with comments on further fields."""

import re
from pathlib import Path

from isoblk.run import limits

_TEMPLATE = Path(__file__).with_name("new.toml")
_NAME = "NAME"


def new_study(file: Path) -> str:
    """Return the text of a study, named after the file that it is written to."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", file.stem).lstrip("-.")[: limits.NAME_MAX]
    text = _TEMPLATE.read_text("utf-8")
    return text.replace(_NAME, name or "study")
