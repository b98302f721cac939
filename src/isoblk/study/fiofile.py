# SPDX-License-Identifier: GPL-2.0-only
"""Read fio's job files: sections, options and their lines (HOWTO, "Job file format")."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from isoblk.errors import UserError
from isoblk.files import read_text

_SHOWN = 80  # characters of a line that a message shows
_SYNONYMS = {
    "readwrite": "rw",
    "blocksize": "bs",
    "blocksize_range": "bsrange",
    "fdatasync": "fsync",
    "io_limit": "io_size",
    "timeout": "runtime",
    "start_delay": "startdelay",
    "ratemin": "rate_min",
}


@dataclass(frozen=True)
class Option:
    """An option of a job as written. where: FILE:LINE."""

    value: str
    where: str

    def bad(self, name: str, allowed: str) -> UserError:
        """Return the error for a value that the option cannot have."""
        return UserError(f"{name}={self.value}", where=self.where, next=f"allowed: {allowed}")


Section = tuple[str, dict[str, Option]]


def _lines(path: Path, outer: tuple[Path, ...] = ()) -> Iterator[tuple[str, str]]:
    """Yield lines without comments, and their FILE:LINE, with included files in place."""
    text = read_text(path, "the job file", next="name a fio job file")
    for number, raw in enumerate(text.splitlines(), start=1):
        line, where = raw.strip(), f"{path}:{number}"
        if not line or line[0] in "#;":
            continue
        if line.startswith("include "):
            inner = path.parent / line.removeprefix("include ").strip()
            if inner in (*outer, path):
                raise UserError("the file includes itself", where=where, next="remove the include")
            # Job files come from other people, and messages show their lines: an include must not
            # reveal a file outside the job's directory.
            top = (*outer, path)[0].resolve().parent
            strange = inner.exists() and not inner.is_file()
            if strange or not inner.resolve().is_relative_to(top):
                raise UserError(
                    "the included file is not in or below the directory of the job",
                    where=where,
                    next="copy it there, or remove the include",
                )
            yield from _lines(inner, (*outer, path))
        else:
            yield line, where


def read_jobs(path: Path) -> list[Section]:
    """Return the jobs and their options, with those of the [global] sections before them.

    Raises:
        UserError: the file cannot be read, or is malformed; names FILE:LINE.
    """
    shared: dict[str, Option] = {}
    jobs: list[Section] = []
    current: dict[str, Option] | None = None
    for line, where in _lines(path):
        if line.startswith("["):
            name, closed, rest = line[1:].partition("]")
            if not closed or not name.strip() or (rest.strip() and rest.strip()[0] not in "#;"):
                raise UserError(
                    f"malformed section {_shown(line)}", where=where, next="allowed: [NAME]"
                )
            if name.strip().lower() == "global":
                current = shared
            else:
                current = dict(shared)
                jobs.append((name.strip(), current))
            continue
        if current is None:
            raise UserError(
                f"{_shown(line)} before any section",
                where=where,
                next="begin with [global] or [NAME]",
            )
        key, _, value = re.split(r"\s[#;]", line, maxsplit=1)[0].partition("=")
        key = key.strip().lower()
        if not re.fullmatch(r"[a-z][a-z0-9_-]*", key):
            raise UserError(
                f"malformed line {_shown(line)}", where=where, next="allowed: OPTION=VALUE"
            )
        current[_SYNONYMS.get(key, key)] = Option(value.strip(), where)
    return jobs


def _shown(line: str) -> str:
    """Return a line for a message, truncated if it is long."""
    return repr(line if len(line) <= _SHOWN else f"{line[:_SHOWN]}...")
