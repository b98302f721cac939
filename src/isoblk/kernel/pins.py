# SPDX-License-Identifier: GPL-2.0-only
"""Pinned kernel sources: kernel/pins.toml names the package of each series.

The source determines the key of each run and its exact figures. A pinned source is the same on
every machine and every day, as long as Debian's archive has the package. `make pins` pins the
current packages.
"""

import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path

from isoblk.errors import RunError
from isoblk.kernel import apt
from isoblk.kernel.apt import Offer
from isoblk.paths import kernel_tree


@dataclass(frozen=True)
class Pin:
    """A linux-source package, and the SHA-256 of its file."""

    offer: Offer
    sha256: str


def pins() -> list[Pin]:
    """Return all pins. Of the pins of a series, the first that the archive has applies."""
    document = tomllib.loads((kernel_tree() / "pins.toml").read_text())
    return [
        Pin(Offer(f"linux-source-{one['series']}", one["version"], one["suite"]), one["sha256"])
        for one in document["pin"]
    ]


def of_package(package: str) -> list[Pin]:
    """Return the pins of a linux-source package."""
    return [pin for pin in pins() if pin.offer.package == package]


def newest_series() -> str:
    """Return the newest pinned series, as N.M."""
    series = [pin.offer.package.removeprefix("linux-source-") for pin in pins()]
    return max(series, key=lambda name: [int(part) for part in name.split(".")])


def fetch(pin: Pin, directory: Path) -> Path:
    """Download a pinned package into an empty directory.

    Raises:
        UserError: apt or Debian's keyring is not installed.
        RunError: the archive lacks the package, or its file has another checksum.
    """
    path = apt.download(pin.offer, directory).path
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != pin.sha256:
        raise RunError(f"the SHA-256 of {path.name} is {found}, not the pinned {pin.sha256}")
    return path
