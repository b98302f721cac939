# SPDX-License-Identifier: GPL-2.0-only
"""The records of options, each next to its field.

Derived from the records of a load's options: a study's fields (isoblk.study.model), their checks,
the arguments of the generators, the schema and docs/reference/options.md.
"""

from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from isoblk.run.limits import Range

SIZE = "A number of bytes, or text with k, m or g (powers of 1024)."
SECONDS = "Seconds, or text with ns, us, ms, s, m, h or d."


class OptionError(ValueError):
    """An option of a program is wrong.

    Args:
        option: its name; "" if the error concerns no single option.
        cause: the cause.
        next: the allowed values.
    """

    def __init__(self, option: str, cause: str, *, next: str = "") -> None:
        self.option, self.cause, self.next = option, cause, next
        super().__init__(f"{option}: {cause}")


def said(text: str, allowed: Range | None = None) -> msgspec.Meta:
    """Return the description of a study's field and its range, for the schema and the reference.
    The checks are elsewhere, because they cover several fields."""
    limits = {"minimum": allowed.low, "maximum": allowed.high} if allowed else None
    return msgspec.Meta(description=text, extra_json_schema=limits)


@dataclass(frozen=True)
class LoadOption:
    """An option of a load, of fio or of blkload alone.

    Attributes:
        text: its description.
        name: in a study; "" if it is that of the field.
        written: its type in a study; None if it is that of the field.
        read: how a study's value is converted: as it is; as a number of bytes; as a time in ns,
            whose plain numbers are in `unit`; or by its own function.
        unit: of a plain number: "s", "us", "ns".
        allowed: range of the field's value.
        about: what it describes: a pattern, which a trace replaces; a trace; or any load.
        of_programs: whether it applies to a program with its own options.
        blkload_only: whether no other generator has it.
        blkload: how blkload gets it: from other code; from its file if it is not at its default;
            from a 1 in its file if it is set.
        fio_takes: whether fio has the option, and gets the field's value unless that is 0.
    """

    text: str
    name: str = ""
    written: Any = None
    read: Literal["as it is", "size", "time", "otherwise"] = "as it is"
    unit: str = ""
    allowed: Range | None = None
    about: Literal["pattern", "trace", "any"] = "any"
    of_programs: bool = False
    blkload_only: bool = False
    blkload: Literal["by code", "if set", "mark"] = "by code"
    fio_takes: bool = False
