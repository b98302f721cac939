# SPDX-License-Identifier: GPL-2.0-only
"""What of a disk decides whether weights hold on it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from isoblk.machine import system
from isoblk.schedulers.isoblk import BYTES as BYTES_MODEL
from isoblk.schedulers.isoblk import COST_MODEL, shown
from isoblk.weights.cgroup import BFQ_WEIGHT, IO_WEIGHT, OUR_WEIGHT

OURS: Final = ("isoblk", "kyber-fair", "feedbac", "cfq")
_PAGE: Final = 4096


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


def find(name: str, root: Path, sys: Path = system.SYS) -> Chosen:
    """How the disk is set.

    Args:
        name: the kernel's.
        root: where the unified hierarchy is mounted.
        sys: where sysfs is.
    """
    place = sys / "block" / name
    scheduler = system.chosen((place / "queue/scheduler").read_text().strip())
    number = (place / "dev").read_text().strip()
    divides, prices = _divides(place / "queue/iosched")
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


def _divides(tunables: Path) -> tuple[str, Mapping[str, Price]]:
    try:
        word, model = shown((tunables / COST_MODEL).read_text())
        if word != BYTES_MODEL:
            # io.stat does not tell which requests were sequential.
            return "time of the device, each request as a random one", _prices(model)
    except (OSError, ValueError, KeyError, ZeroDivisionError):
        # The scheduler has no cost model, or one that cannot be read.
        pass
    return "bytes", BYTES


def _prices(model: Mapping[str, int]) -> Mapping[str, Price]:
    """Seconds of the device, by the linear model: a page takes what it takes in a large request,
    and the rest of what a small one takes is the request's own."""
    prices = {}
    for kind in "rw":
        byte = 1 / model[f"{kind}bps"]
        request = 1 / model[f"{kind}randiops"] - _PAGE * byte
        prices[kind] = Price(max(0.0, request), byte)
    # A discard costs what a write of a page does, whatever its length.
    return {**prices, "d": Price(prices["w"].request + _PAGE * prices["w"].byte, 0)}


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
