# SPDX-License-Identifier: GPL-2.0-only
"""Record each candidate and its verdict in a line, so that an interrupted hunt can be resumed."""

import os
from pathlib import Path

import msgspec

from isoblk.errors import UserError
from isoblk.hunt.judge import Verdict
from isoblk.hunt.space import Candidate

FORMAT = 1


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """The first line: the inputs that determine all later lines.

    Attributes:
        format: of the file.
        hunt: hash of the hunt's file without its budget.
        scheduler: the scheduler under test.
        kernel_key, modules_key: the kernel and modules of the runs.
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
    """The file and its verdicts.

    Raises:
        UserError: the file is damaged, or of another hunt.
    """

    def __init__(self, path: Path, begun: Begun) -> None:
        self._path = path
        self._verdicts: dict[Candidate, Verdict] = {}
        if not path.exists():
            self._append(begun)
            return
        self._read(begun)

    def get(self, candidate: Candidate) -> Verdict | None:
        """Return the verdict on a candidate; None if it was not tried."""
        return self._verdicts.get(candidate)

    def add(self, candidate: Candidate, verdict: Verdict) -> None:
        """Record the verdict on a candidate."""
        self._verdicts[candidate] = verdict
        self._append(_Tried(study=candidate.study, tenants=candidate.tenants, verdict=verdict))

    def _append(self, line: msgspec.Struct) -> None:
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(line) + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _read(self, begun: Begun) -> None:
        lines = self._path.read_bytes().split(b"\n")
        # A line that was cut off when the hunt was killed does not count.
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
