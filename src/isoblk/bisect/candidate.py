# SPDX-License-Identifier: GPL-2.0-only
"""What is between two versions: candidates, and a kernel or schedulers of each."""

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from isoblk.errors import RunError
from isoblk.kernel import Kernel, Progress, Request, build
from isoblk.kernel.builder import ConfigError
from isoblk.kernel.source import resolve

# In what a compiler says, the directory of a kernel's or of the schedulers' sources.
_OF_SOURCES = re.compile(r"/\S*/(?:tree|[^/\s]*\.part/sources)/")


@dataclass(frozen=True)
class Candidate:
    """A version that may be tried.

    Attributes:
        id: names it, and nothing else.
        name: for people.
        about: what else is to be said of it: a commit's subject, a package.
        to_build: trying it builds a kernel.
    """

    id: str
    name: str
    about: str
    to_build: bool = False


@dataclass(frozen=True)
class Built:
    """What a candidate is measured with. schedulers: a directory kernel/, None for today's."""

    kernel: Kernel
    schedulers: Path | None = None


class NotBuiltError(RunError):
    """A candidate does not build: it can be neither good nor bad. Its cause is as the compiler has
    it, but for the directory that the sources are in."""


class Range(Protocol):
    """What lies from one candidate to another.

    Attributes:
        what: a candidate is called.
        good, bad: ids of the ends.
        left_out: what is not in it, for the end that is in none; "" if nothing is left out.
    """

    what: str
    good: str
    bad: str
    left_out: str

    def order(self, goods: Collection[str], bad: str) -> Sequence[str]:
        """As of the search: what may be the first bad one, and is best tried next."""

    def candidate(self, name: str) -> Candidate:
        """What is told of a candidate of this id."""

    def built(self, name: str, progress: Progress) -> AbstractContextManager[Built]:
        """Have it built, and keep it while it is measured.

        Raises:
            NotBuiltError: it does not compile.
            UserError, RunError: something else is wrong.
        """


def built(request: Request, progress: Progress) -> Kernel:
    """Build a kernel that is only held against others.

    Its source is fetched first: that it cannot be is no fault of the candidate.

    Raises:
        NotBuiltError: it does not compile, or is not what the lab's configuration is for.
        UserError, RunError: something else is wrong.
    """
    resolve(None, request.source, None, progress)
    with not_built():
        return build(request, progress)


@contextmanager
def not_built() -> Iterator[None]:
    """Turn what a build fails with into NotBuiltError."""
    try:
        yield
    except (RunError, ConfigError) as error:
        cause = _OF_SOURCES.sub("", error.cause)
        raise NotBuiltError(cause, where=error.where, next=error.next) from None
