# SPDX-License-Identifier: GPL-2.0-only
"""Parts of the help that all commands share."""


def examples(*lines: str) -> str:
    """Return the end of a command's help: example command lines."""
    # Lines after \\b are not joined.
    return "\n".join(("\b", "Examples:", *(f"  {line}" for line in lines)))
