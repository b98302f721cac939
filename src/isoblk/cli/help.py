# SPDX-License-Identifier: GPL-2.0-only
"""What the help of all commands has in common."""


def examples(*lines: str) -> str:
    """The end of a command's help: what a user would type, a line each."""
    # Lines after \\b are not joined.
    return "\n".join(("\b", "Examples:", *(f"  {line}" for line in lines)))
