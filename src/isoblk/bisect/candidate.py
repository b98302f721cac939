# SPDX-License-Identifier: GPL-2.0-only
"""Candidates between two versions, and the kernel or the schedulers of each."""

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

# The directory of the sources in a compiler's message.
_OF_SOURCES = re.compile(r"/\S*/(?:tree|[^/\s]*\.part/sources)/")


@dataclass(frozen=True)
class Candidate:
    """A version to try.

    Attributes:
        id: unique identifier.
        name: name in the output.
        about: description: a commit's subject, or a package.
        to_build: trying it builds a kernel.
    """

    id: str
    name: str
    about: str
    to_build: bool = False


@dataclass(frozen=True)
class Built:
    """A candidate that was built. schedulers: a directory kernel/; None: the installed one."""

    kernel: Kernel
    schedulers: Path | None = None


class NotBuiltError(RunError):
    """A candidate does not build, so it is neither good nor bad.

    The cause is the compiler's message, without the directory of the sources.
    """


class Range(Protocol):
    """What lies from one candidate to another.

    Attributes:
        what: the kind of candidate, such as "commit".
        good, bad: ids of the ends.
        left_out: the candidates that the range omits, in words; "" if it omits none.
    """

    what: str
    good: str
    bad: str
    left_out: str

    def order(self, goods: Collection[str], bad: str) -> Sequence[str]:
        """Return the candidates that may be the first bad one; see search.Order."""

    def candidate(self, name: str) -> Candidate:
        """Return the candidate with this id."""

    def built(self, name: str, progress: Progress) -> AbstractContextManager[Built]:
        """Build a candidate, and keep it while it is measured.

        Raises:
            NotBuiltError: it does not compile.
            UserError, RunError: any other failure.
        """


def built(request: Request, progress: Progress) -> Kernel:
    """Build a candidate's kernel.

    The source is fetched first, since a failed download says nothing about the candidate.

    Raises:
        NotBuiltError: it does not compile, or does not accept the lab's configuration.
        UserError, RunError: any other failure.
    """
    resolve(None, request.source, None, progress)
    with not_built():
        return build(request, progress)


@contextmanager
def not_built() -> Iterator[None]:
    """Turn errors of a build into NotBuiltError."""
    try:
        yield
    except (RunError, ConfigError) as error:
        cause = _OF_SOURCES.sub("", error.cause)
        raise NotBuiltError(cause, where=error.where, next=error.next) from None
