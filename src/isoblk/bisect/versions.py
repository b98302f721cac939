# SPDX-License-Identifier: GPL-2.0-only
"""Versions of the kernel that can be had: those that are ready, and Debian's packages."""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from isoblk.bisect.candidate import Built, Candidate, built
from isoblk.bisect.search import Order, line
from isoblk.errors import UserError
from isoblk.kernel import Kernel, Progress, Request, hold
from isoblk.kernel.apt import Offer
from isoblk.kernel.store import matches

_VERSION = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?(?:[~-]rc(\d+))?")

# Of a kernel's source: what somebody has published as that version. Not a directory, which may hold
# changes, and not a commit.
_PUBLISHED = ("linux-source-", "deb-", "tarball-")


@dataclass(frozen=True)
class Version:
    """A version of the kernel. name: as 6.12.117. order: by which versions are sorted. kernel: if
    it is ready. offer: where its source is."""

    name: str
    order: tuple[float, ...]
    kernel: Kernel | None = None
    offer: Offer | None = None


def available(ready: Iterable[Kernel], offers: Iterable[Offer]) -> list[Version]:
    """The versions that can be had, one of each, the oldest first.

    Args:
        ready: kernels that need not be built.
        offers: packages, of each the newest first.
    """
    found: dict[tuple[float, ...], Version] = {}
    for kernel in ready:
        order = order_of(kernel.version)
        if order is not None and kernel.source.startswith(_PUBLISHED):
            found.setdefault(order, Version(kernel.version, order, kernel=kernel))
    for offer in offers:
        name = offer.version.rpartition("-")[0]
        order = order_of(name)
        if order is not None:
            found.setdefault(order, Version(name.replace("~", "-"), order, offer=offer))
    return sorted(found.values(), key=lambda version: version.order)


def order_of(version: str) -> tuple[float, ...] | None:
    """What versions are sorted by; None of what is none: 7.3-rc7 is before 7.3.0."""
    match = _VERSION.match(version)
    if match is None:
        return None
    major, minor, patch, candidate = match.groups()
    return (int(major), int(minor), int(patch or 0), int(candidate) if candidate else math.inf)


def choose(asked: str, versions: Sequence[Version]) -> Version:
    """The version that a user means: 6.12 is one of that series that is ready, else its newest.

    Raises:
        UserError: there is none.
    """
    fits = [one for one in versions if matches(one.name, asked)]
    if not fits:
        raise UserError(
            f"no kernel {asked!r} is ready or in Debian's suites",
            next=f"to be had: {', '.join(one.name for one in versions) or 'none'}",
        )
    return ([one for one in fits if one.kernel] or fits)[-1]


class KernelVersions:
    """The versions from one to another, both included."""

    what = "version"

    def __init__(self, versions: Sequence[Version], good: str, bad: str) -> None:
        """Choose the ends.

        Args:
            versions: that can be had, the oldest first.
            good, bad: as the user names them.

        Raises:
            UserError: there is no such version, or the good one is not the older.
        """
        first, last = choose(good, versions), choose(bad, versions)
        if first.order >= last.order:
            raise UserError(
                f"{first.name} is not older than {last.name}",
                next="name the older first, whichever is better",
            )
        self._versions = {
            one.name: one for one in versions if first.order <= one.order <= last.order
        }
        self.good, self.bad = first.name, last.name
        self.left_out = ""
        self._order: Order = line(list(self._versions))

    def order(self, goods: Collection[str], bad: str) -> Sequence[str]:
        """As of the search."""
        return self._order(goods, bad)

    def candidate(self, name: str) -> Candidate:
        """What is told of a version."""
        one = self._versions[name]
        about = one.offer.identity if one.offer else "ready"
        return Candidate(name, name, about, to_build=one.kernel is None)

    @contextmanager
    def built(self, name: str, progress: Progress) -> Iterator[Built]:
        """Have a version's kernel, built if need be."""
        one = self._versions[name]
        kernel = one.kernel or built(Request(source=one.offer, apart=True), progress)
        with hold(kernel):
            yield Built(kernel)
