# SPDX-License-Identifier: GPL-2.0-only
"""What the help of all commands has in common."""


def examples(*lines: str) -> str:
    """The end of a command's help: what a user would type, a line each."""
    return "\n\n".join(("Examples:", *lines))
