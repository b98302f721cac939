# SPDX-License-Identifier: GPL-2.0-only
"""Options that a study gives to a program or a cache."""


class OptionError(ValueError):
    """An option of a program is wrong.

    Args:
        option: its name; "" if it is not about a single one.
        cause: what is wrong.
        next: what is allowed.
    """

    def __init__(self, option: str, cause: str, *, next: str = "") -> None:
        self.option, self.cause, self.next = option, cause, next
        super().__init__(f"{option}: {cause}")
