# SPDX-License-Identifier: GPL-2.0-only
"""Parse untrusted TOML: the result is a document or a ValueError with the reason. Format values as
TOML."""

import json
import tomllib
from typing import Any

# Depth of nested tables and lists; files of isoblk have at most four.
_DEEPEST = 16


def parse(text: str) -> dict[str, Any]:
    """Parse a document.

    Raises:
        ValueError: it is not TOML, is nested too deeply, or has a number that is too long.
    """
    try:
        document = tomllib.loads(text)
    except RecursionError:
        raise ValueError(_too_deep()) from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:
        # Python refuses to convert thousands of digits, and tomllib passes on its error.
        raise ValueError("a number that is too long") from None
    layer: list[Any] = [document]
    for _ in range(_DEEPEST):
        layer = [inner for value in layer for inner in _inside(value)]
    if layer:
        raise ValueError(_too_deep())
    return document


def written(value: object) -> str:
    """Format a text, number, boolean or list of these as TOML. JSON has the same escapes, except
    for DEL, and for characters beyond 16 bits, which JSON writes as two escapes."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _inside(value: object) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _too_deep() -> str:
    return f"tables or lists in each other, more than {_DEEPEST}"
