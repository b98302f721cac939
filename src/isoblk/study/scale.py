# SPDX-License-Identifier: GPL-2.0-only
"""Divide a study's sizes and counts of requests by one number: "8g/scale"."""

import re
from typing import Any

from isoblk.run.field import Field, FieldError
from isoblk.run.units import format_size, parse_size

_SCALED = re.compile(r"(?P<number>\d+)(?P<suffix>[kmgt]?)/scale", re.ASCII | re.IGNORECASE)


def scaled(document: dict[str, Any]) -> dict[str, Any]:
    """Return a decoded study with its `scale` applied: text of the form "8g/scale" becomes the
    size, "4096/scale" the number.

    Raises:
        FieldError: `scale` is not a whole number above 0, or does not divide a value.
    """
    scale = document.get("scale", 1)
    if type(scale) is not int or scale < 1:
        raise FieldError(("scale",), f"{scale!r} divides nothing", next="allowed: 1 and more")
    return {name: _scaled(value, scale, (name,)) for name, value in document.items()}


def _scaled(value: Any, scale: int, field: Field) -> Any:
    if isinstance(value, dict):
        return {name: _scaled(one, scale, (*field, name)) for name, one in value.items()}
    if isinstance(value, list):
        return [_scaled(one, scale, (*field, index)) for index, one in enumerate(value)]
    found = _SCALED.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return value
    whole, rest = divmod(parse_size(found["number"] + found["suffix"]), scale)
    if rest or not whole:
        raise FieldError(
            field,
            f"{value}: {scale} does not divide it",
            next="choose a scale that divides all sizes, as powers of two do",
        )
    return format_size(whole) if found["suffix"] else whole
