# SPDX-License-Identifier: GPL-2.0-only
"""The settings of a disk that decide which weights apply on it."""

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
    """Cost of a kind of request, in any unit: fixed, and for each byte."""

    request: float
    byte: float


BYTES: Final[Mapping[str, Price]] = {kind: Price(0, 1) for kind in "rwd"}
"""Cost if bytes are divided, which is also the default."""


@dataclass(frozen=True)
class Chosen:
    """A disk and its current settings.

    Attributes:
        name: the kernel's. number: MAJ:MIN.
        scheduler: the scheduler in use.
        file: the weight file that applies; "" if none does.
        nr_requests: tags of a hardware queue.
        prices: cost of reads, writes and discards, "r", "w", "d", in the divided quantity.
        divides: the quantity that the scheduler divides, in words.
    """

    name: str
    number: str
    scheduler: str
    file: str
    nr_requests: int
    prices: Mapping[str, Price]
    divides: str


def find(name: str, root: Path, sys: Path = system.SYS) -> Chosen:
    """Read the settings of a disk.

    Args:
        name: the kernel's.
        root: mount point of the unified hierarchy.
        sys: mount point of sysfs.
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
    # io.cost works with any scheduler.
    if "enable=1" in system.line_of(number, root / "io.cost.qos").split():
        return IO_WEIGHT
    return ""


def _divides(tunables: Path) -> tuple[str, Mapping[str, Price]]:
    try:
        word, model = shown((tunables / COST_MODEL).read_text())
        if word != BYTES_MODEL:
            # io.stat does not count sequential requests separately.
            return "time of the device, each request as a random one", _prices(model)
    except (OSError, ValueError, KeyError, ZeroDivisionError):
        # The scheduler has no cost model, or an unreadable one.
        pass
    return "bytes", BYTES


def _prices(model: Mapping[str, int]) -> Mapping[str, Price]:
    """Return device time in seconds by the linear model.

    A page costs its part of a large request; the rest of a small request's cost is fixed.
    """
    prices = {}
    for kind in "rw":
        byte = 1 / model[f"{kind}bps"]
        request = 1 / model[f"{kind}randiops"] - _PAGE * byte
        prices[kind] = Price(max(0.0, request), byte)
    # A discard of any length costs as much as a write of a page.
    return {**prices, "d": Price(prices["w"].request + _PAGE * prices["w"].byte, 0)}


def with_weights(root: Path, sys: Path = system.SYS) -> list[str]:
    """Return names of the disks on which a weight applies."""
    found = []
    for place in sorted((sys / "block").iterdir()):
        try:
            if find(place.name, root, sys).file:
                found.append(place.name)
        except (OSError, ValueError):
            # The device has no queue, or is gone.
            continue
    return found


def ours(sys: Path = system.SYS) -> list[str]:
    """Return numbers of the disks with a scheduler of isoblk."""
    found = []
    for place in sorted((sys / "block").iterdir()):
        try:
            if system.chosen((place / "queue/scheduler").read_text().strip()) in OURS:
                found.append((place / "dev").read_text().strip())
        except OSError:
            continue
    return found
