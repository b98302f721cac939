# SPDX-License-Identifier: GPL-2.0-only
"""What of a disk decides whether weights hold on it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from isoblk.machine import system
from isoblk.weights.cgroup import BFQ_WEIGHT, IO_WEIGHT, OUR_WEIGHT

OURS: Final = ("isoblk", "kyber-fair", "feedbac", "cfq")
_DEBUG: Final = Path("/sys/kernel/debug/block")


@dataclass(frozen=True)
class Price:
    """What a request of a kind costs, in any unit: on its own, and for each byte."""

    request: float
    byte: float


BYTES: Final[Mapping[str, Price]] = {kind: Price(0, 1) for kind in "rwd"}
"""If bytes are what is divided, or nobody says otherwise."""


@dataclass(frozen=True)
class Chosen:
    """A disk, as it is set now.

    Attributes:
        name: the kernel's. number: MAJ:MIN.
        scheduler: what queue/scheduler says.
        file: of the weight that counts there; "" if none does.
        nr_requests: tags of a hardware queue.
        prices: of kinds of requests, "r", "w", "d", by what the scheduler divides.
        divides: that, in words.
    """

    name: str
    number: str
    scheduler: str
    file: str
    nr_requests: int
    prices: Mapping[str, Price]
    divides: str


def find(name: str, root: Path, sys: Path = system.SYS, debug: Path = _DEBUG) -> Chosen:
    """How the disk is set.

    Args:
        name: the kernel's.
        root: where the unified hierarchy is mounted.
        sys: where sysfs is.
        debug: where debugfs shows disks.
    """
    place = sys / "block" / name
    scheduler = system.chosen((place / "queue/scheduler").read_text().strip())
    number = (place / "dev").read_text().strip()
    divides, prices = _divides(place / "queue/iosched", debug / name / "sched/prices")
    return Chosen(
        name=name,
        number=number,
        scheduler=scheduler,
        file=_file(scheduler, number, root),
        nr_requests=int((place / "queue/nr_requests").read_text()),
        prices=prices,
        divides=divides,
    )


def _file(scheduler: str, number: str, root: Path) -> str:
    if scheduler in OURS:
        return OUR_WEIGHT
    if scheduler == "bfq":
        return BFQ_WEIGHT
    # io.cost works beside any scheduler.
    if "enable=1" in system.line_of(number, root / "io.cost.qos").split():
        return IO_WEIGHT
    return ""


def _divides(tunables: Path, prices: Path) -> tuple[str, Mapping[str, Price]]:
    try:
        account = (tunables / "account").read_text().strip()
    except OSError:
        return "bytes", BYTES
    if account == "ios":
        return "requests", {kind: Price(1, 0) for kind in "rwd"}
    if account == "time":
        found = _prices(prices)
        what = "time of the device"
        return (what, found) if found else (f"{what} (told in bytes: its prices are root's)", BYTES)
    return "bytes", BYTES


def _prices(path: Path) -> Mapping[str, Price]:
    """As the scheduler has learned them; {} if that cannot be read: only root can."""
    try:
        lines = [line.split() for line in path.read_text().splitlines()]
        # "read request 12 sector 3 of 4096"
        return {
            words[0][0]: Price(int(words[2]) / int(words[6]), int(words[4]) / int(words[6]) / 512)
            for words in lines
        }
    except (OSError, ValueError, IndexError, ZeroDivisionError):
        return {}


def with_weights(root: Path, sys: Path = system.SYS) -> list[str]:
    """Names of the disks on which some weight counts."""
    found = []
    for place in sorted((sys / "block").iterdir()):
        try:
            if find(place.name, root, sys).file:
                found.append(place.name)
        except (OSError, ValueError):
            # It has no queue, or is gone.
            continue
    return found


def ours(sys: Path = system.SYS) -> list[str]:
    """Numbers of the disks that have a scheduler of ours."""
    found = []
    for place in sorted((sys / "block").iterdir()):
        try:
            if system.chosen((place / "queue/scheduler").read_text().strip()) in OURS:
                found.append((place / "dev").read_text().strip())
        except OSError:
            continue
    return found
