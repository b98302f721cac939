# SPDX-License-Identifier: GPL-2.0-only
"""The contents of a weight file: io.weight, io.bfq.weight, io.isoblk.weight.

A line "default 100", and one for each disk that has its own: "259:0 500".
"""

from typing import Final

DEFAULT: Final = "default"
UNSET: Final = 100
"""The kernel's default in each of these files; it counts as unset."""

Weights = dict[str, int]
"""Weight by "default" or by a disk's number."""
Several = dict[str, tuple[int, ...]]
"""The weights that each line may have."""


def parse(text: str) -> Weights:
    """Return the weights that are set, without a default of UNSET. Unknown lines are skipped.

    >>> parse("default 100\\n259:0 500\\n")
    {'259:0': 500}
    """
    found = {key: weights[0] for key, weights in parse_several(text).items()}
    if found.get(DEFAULT) == UNSET:
        del found[DEFAULT]
    return found


def parse_several(text: str) -> Several:
    """Parse lines of a key and one or more weights.

    >>> parse_several("default 300 400")
    {'default': (300, 400)}
    """
    found: Several = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) == 1:
            # The format of io.bfq.weight on older kernels and on cgroup v1.
            fields.insert(0, DEFAULT)
        if len(fields) > 1 and all(field.isascii() and field.isdecimal() for field in fields[1:]):
            found[fields[0]] = tuple(map(int, fields[1:]))
    return found


def written(several: Several) -> str:
    """Format weights as text for parse_several().

    >>> written({"259:0": (500,), "default": (300, 400)})
    '259:0 500\\ndefault 300 400'
    """
    return "\n".join(f"{key} {' '.join(map(str, some))}" for key, some in sorted(several.items()))
