# SPDX-License-Identifier: GPL-2.0-only
"""Commits between two revisions of a git repository: of a kernel, or of isoblk itself."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from isoblk.bisect.candidate import Built, Candidate, NotBuiltError, built
from isoblk.errors import UserError
from isoblk.kernel import Kernel, Progress, Request, git, hold
from isoblk.kernel.source import Revision, extract

OWN_PATHS = ("kernel/sched", "kernel/include")
"""Paths in isoblk's repository that the schedulers are built from."""


class Commits:
    """The commits from one revision to another."""

    what = "commit"
    left_out = ""

    def __init__(self, repository: Path, good: str, bad: str, paths: Sequence[str] = ()) -> None:
        """Resolve the ends.

        Args:
            repository: a git repository's top directory.
            good, bad: revisions in git's syntax.
            paths: only commits that touch one of these paths.

        Raises:
            UserError: there is no such repository or revision, or the first is not in the history
                of the second.
        """
        git.require_repository(repository)
        first, last = git.commit(repository, good), git.commit(repository, bad)
        if first.id == last.id:
            raise UserError(
                f"{good!r} and {bad!r} are the same commit, {first.short}", where=str(repository)
            )
        if not git.is_ancestor(repository, first.id, last.id):
            raise UserError(
                f"{good!r} is not in the history of {bad!r}",
                where=str(repository),
                next="name the older first, even if it is worse; for two branches name their"
                " git merge-base first",
            )
        self.repository = repository
        self.good, self.bad = first.id, last.id
        self._paths = tuple(paths)
        self._known = {first.id: first, last.id: last}
        if paths:
            self.left_out = f"those that do not touch {', '.join(paths)}"

    def order(self, goods: Collection[str], bad: str) -> Sequence[str]:
        """See search.Order."""
        return git.between(self.repository, goods, bad, self._paths)

    def commit(self, name: str) -> git.Commit:
        """Return the commit with this id."""
        if name not in self._known:
            self._known[name] = git.commit(self.repository, name)
        return self._known[name]


class KernelCommits(Commits):
    """Commits of a kernel."""

    def __init__(
        self,
        repository: Path,
        good: str,
        bad: str,
        paths: Sequence[str] = (),
        ready: Iterable[Kernel] = (),
    ) -> None:
        """See Commits. ready: kernels that are built already."""
        super().__init__(repository, good, bad, paths)
        self._ready = frozenset(kernel.source for kernel in ready)

    def candidate(self, name: str) -> Candidate:
        """Return the candidate of a commit."""
        one = self.commit(name)
        to_build = self._revision(name).identity not in self._ready
        return Candidate(one.id, one.short, one.subject, to_build)

    def _revision(self, name: str) -> Revision:
        return Revision(self.repository, self.commit(name).tree)

    @contextmanager
    def built(self, name: str, progress: Progress) -> Iterator[Built]:
        """Return a commit's kernel, built if necessary."""
        kernel = built(Request(source=self._revision(name), apart=True), progress)
        with hold(kernel):
            yield Built(kernel)


class OwnCommits(Commits):
    """Commits of isoblk that touch its schedulers, on one kernel."""

    def __init__(self, repository: Path, good: str, bad: str, kernel: Kernel) -> None:
        """See Commits. kernel: the kernel to build the schedulers for."""
        super().__init__(repository, good, bad, OWN_PATHS)
        self._kernel = kernel

    def candidate(self, name: str) -> Candidate:
        """Return the candidate of a commit."""
        one = self.commit(name)
        return Candidate(one.id, one.short, one.subject)

    @contextmanager
    def built(self, name: str, progress: Progress) -> Iterator[Built]:
        """Check out the schedulers' sources of a commit; make_bench() builds them."""
        present = git.present(self.repository, name, OWN_PATHS)
        if OWN_PATHS[0] not in present:
            raise NotBuiltError(f"it has no {OWN_PATHS[0]}")
        with TemporaryDirectory(prefix="isoblk-bisect-") as temporary, hold(self._kernel):
            archive = Path(temporary) / "tree.tar"
            git.archive(self.repository, name, archive, present)
            extract(["tar", "-x", "-f", str(archive), "-C", temporary], archive)
            yield Built(self._kernel, Path(temporary) / "kernel")
