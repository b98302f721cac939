# SPDX-License-Identifier: GPL-2.0-only
"""What a hunt has tried: a line each, so that a hunt that was ended goes on where it was."""

import os
from pathlib import Path

import msgspec

from isoblk.errors import UserError
from isoblk.hunt.judge import Verdict
from isoblk.hunt.space import Candidate

FORMAT = 1


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """The first line: what determines everything that follows.

    Attributes:
        format: of the file.
        hunt: hash of the hunt's file without its budget.
        scheduler: that is hunted.
        kernel_key, modules_key: what it runs on.
    """

    format: int
    hunt: str
    scheduler: str
    kernel_key: str
    modules_key: str


class _Tried(msgspec.Struct, frozen=True, kw_only=True):
    study: tuple[int, ...]
    tenants: tuple[tuple[int, ...], ...]
    verdict: Verdict


class Journal:
    """The file, and what it holds.

    Raises:
        UserError: it is damaged, or another hunt's.
    """

    def __init__(self, path: Path, begun: Begun) -> None:
        self._path = path
        self._verdicts: dict[Candidate, Verdict] = {}
        if not path.exists():
            self._append(begun)
            return
        self._read(begun)

    def get(self, candidate: Candidate) -> Verdict | None:
        """What came of a candidate; None if it was not tried."""
        return self._verdicts.get(candidate)

    def add(self, candidate: Candidate, verdict: Verdict) -> None:
        """Keep what came of it."""
        self._verdicts[candidate] = verdict
        self._append(_Tried(study=candidate.study, tenants=candidate.tenants, verdict=verdict))

    def _append(self, line: msgspec.Struct) -> None:
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(line) + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _read(self, begun: Begun) -> None:
        lines = self._path.read_bytes().split(b"\n")
        # What was being written when the hunt was killed is no line.
        whole = lines[:-1]
        if lines[-1]:
            self._path.write_bytes(b"".join(line + b"\n" for line in whole))
        try:
            if not whole:
                self._append(begun)
                return
            former = msgspec.json.decode(whole[0], type=Begun)
            for line in whole[1:]:
                one = msgspec.json.decode(line, type=_Tried)
                self._verdicts[Candidate(one.study, one.tenants)] = one.verdict
        except msgspec.MsgspecError as error:
            raise UserError(
                f"damaged: {error}", where=str(self._path), next="choose -o DIR, a new one"
            ) from None
        if former != begun:
            differs = next(
                name
                for name in Begun.__struct_fields__
                if getattr(former, name) != getattr(begun, name)
            )
            raise UserError(
                f"the log is of a hunt with another {differs.replace('_', ' ')}",
                where=str(self._path),
                next="choose -o DIR, a new one",
            )
