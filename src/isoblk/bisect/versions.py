# SPDX-License-Identifier: GPL-2.0-only
"""Available versions of the kernel: built kernels, and Debian's packages."""

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

# Kinds of sources that are a published version. A directory may have local changes, and a commit is
# not published.
_PUBLISHED = ("linux-source-", "deb-", "tarball-")


@dataclass(frozen=True)
class Version:
    """A version of the kernel.

    name: as 6.12.117. order: the key for sorting. kernel: if it is built. offer: its source
    package.
    """

    name: str
    order: tuple[float, ...]
    kernel: Kernel | None = None
    offer: Offer | None = None


def available(ready: Iterable[Kernel], offers: Iterable[Offer]) -> list[Version]:
    """Return the available versions without duplicates, the oldest first.

    Args:
        ready: kernels that are built already.
        offers: packages, of each version the newest first.
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
    """Return the key for sorting; None if it is not a version. 7.3-rc7 is before 7.3.0."""
    match = _VERSION.match(version)
    if match is None:
        return None
    major, minor, patch, candidate = match.groups()
    return (int(major), int(minor), int(patch or 0), int(candidate) if candidate else math.inf)


def choose(asked: str, versions: Sequence[Version]) -> Version:
    """Find the user's version: 6.12 means a built kernel of that series, else its newest.

    Raises:
        UserError: no such version is available.
    """
    fits = [version for version in versions if matches(version.name, asked)]
    if not fits:
        raise UserError(
            f"no kernel {asked!r} is ready or in Debian's suites",
            next=f"available: {', '.join(version.name for version in versions) or 'none'}",
        )
    return ([one for one in fits if one.kernel] or fits)[-1]


class KernelVersions:
    """The versions from one to another, inclusive."""

    what = "version"

    def __init__(self, versions: Sequence[Version], good: str, bad: str) -> None:
        """Choose the ends.

        Args:
            versions: the available versions, the oldest first.
            good, bad: the user's names of the ends.

        Raises:
            UserError: there is no such version, or the good one is not the older.
        """
        first, last = choose(good, versions), choose(bad, versions)
        if first.order >= last.order:
            raise UserError(
                f"{first.name} is not older than {last.name}",
                next="name the older first, even if it is worse",
            )
        self._versions = {
            version.name: version
            for version in versions
            if first.order <= version.order <= last.order
        }
        self.good, self.bad = first.name, last.name
        self.left_out = ""
        self._order: Order = line(list(self._versions))

    def order(self, goods: Collection[str], bad: str) -> Sequence[str]:
        """See search.Order."""
        return self._order(goods, bad)

    def candidate(self, name: str) -> Candidate:
        """Return the candidate of a version."""
        one = self._versions[name]
        about = one.offer.identity if one.offer else "ready"
        return Candidate(name, name, about, to_build=one.kernel is None)

    @contextmanager
    def built(self, name: str, progress: Progress) -> Iterator[Built]:
        """Return a version's kernel, built if necessary."""
        one = self._versions[name]
        kernel = one.kernel or built(Request(source=one.offer, apart=True), progress)
        with hold(kernel):
            yield Built(kernel)
