# SPDX-License-Identifier: GPL-2.0-only
"""Machines: each runs a plan and leaves a finished run directory."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from isoblk.errors import RunError
from isoblk.run.tier import Tier


class StoppedError(RunError):
    """The user stopped the run, which did not fail."""


@dataclass(frozen=True)
class Ran:
    """Cost of a finished machine. wall_s, cpu_s: of its process."""

    wall_s: float
    cpu_s: float


class Machine(Protocol):
    """Runs `directory`/plan.sh as a guest's init, with `directory` as /run/isoblk.

    tier: the tier for which plans must be made.
    """

    @property
    def tier(self) -> Tier: ...  # noqa: D102

    def run(self, directory: Path, modules: Sequence[Path], *, seed: int, memory_mib: int) -> Ran:
        """Run the script to its end; leave its output and console.log in `directory`.

        Raises:
            RunError: it failed.
            UserError: it could not be started.
        """

    def stop(self) -> None:
        """End all runs; no more can be started."""
