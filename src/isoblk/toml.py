# SPDX-License-Identifier: GPL-2.0-only
"""TOML of users and of others: whatever it is, a document or a ValueError that says why not. And
values as TOML."""

import json
import tomllib
from typing import Any

# Of tables and lists in each other. No file of isoblk's has five.
_DEEPEST = 16


def parse(text: str) -> dict[str, Any]:
    """The document that a text is.

    Raises:
        ValueError: it is not TOML, or so deep or with such numbers that nothing here can take it.
    """
    try:
        document = tomllib.loads(text)
    except RecursionError:
        raise ValueError(_too_deep()) from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:
        # Python makes no number of thousands of digits; tomllib passes on what it says of that.
        raise ValueError("a number that is too long") from None
    layer: list[Any] = [document]
    for _ in range(_DEEPEST):
        layer = [inner for value in layer for inner in _inside(value)]
    if layer:
        raise ValueError(_too_deep())
    return document


def written(value: object) -> str:
    """A text, number, boolean or list of these as TOML: JSON has the same escapes, but for DEL, and
    for what is beyond 16 bits, which JSON makes two of and TOML one."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _inside(value: object) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _too_deep() -> str:
    return f"tables or lists in each other, more than {_DEEPEST}"
