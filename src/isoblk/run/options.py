# SPDX-License-Identifier: GPL-2.0-only
"""What is known of an option: one record each, beside the field that holds it.

From the records of a load's options follow a study's fields (isoblk.study.model), their checks,
what the generators are told, the schema and docs/reference/options.md.
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
        option: its name; "" if it is not about a single one.
        cause: what is wrong.
        next: what is allowed.
    """

    def __init__(self, option: str, cause: str, *, next: str = "") -> None:
        self.option, self.cause, self.next = option, cause, next
        super().__init__(f"{option}: {cause}")


def said(text: str, allowed: Range | None = None) -> msgspec.Meta:
    """What a field of a study is, and its range, for the schema and the reference. The checks,
    which know what belongs together, are elsewhere."""
    limits = {"minimum": allowed.low, "maximum": allowed.high} if allowed else None
    return msgspec.Meta(description=text, extra_json_schema=limits)


@dataclass(frozen=True)
class LoadOption:
    """An option of a load, as fio has it, or as blkload has it besides.

    Attributes:
        text: what it is.
        name: in a study; "" if the field has the same.
        written: its type in a study; None if that is the field's own.
        read: how a study's value becomes the field's: as it is; as a number of bytes; as a time in
            ns, of which a plain number is in `unit`; or by a reader of its own.
        unit: of a plain number: "s", "us", "ns".
        allowed: range of the field's value.
        about: what it says something of: a pattern, which a trace has itself; a trace, which a
            pattern has not; or any load.
        of_programs: it has a meaning for a program that has options of its own.
        blkload_only: no other generator has it.
        blkload: how blkload is told: by code that knows more than this option; by its file if it is
            not at its default; by a 1 in its file if it is set.
        fio_takes: fio has the option, and takes the field's value unless that is 0.
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
