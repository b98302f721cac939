# SPDX-License-Identifier: GPL-2.0-only
"""Read revisions and files of a git repository.

A user's name of a revision is resolved to an id first, and git gets an end-of-options mark, so that
no name is taken for an option. Nothing is checked out.
"""

import os
import re
import subprocess
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from isoblk.errors import RunError, UserError, printable

_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SHORT = 12


@dataclass(frozen=True)
class Commit:
    """A commit.

    Attributes:
        id: full hash.
        tree: hash of its tree.
        date: day of the commit, as 2026-01-31.
        subject: first line of the message.
    """

    id: str
    tree: str
    date: str
    subject: str

    @property
    def short(self) -> str:
        """Return the abbreviated hash."""
        return self.id[:_SHORT]


def require_repository(directory: Path) -> None:
    """Check that a directory is the top of a git repository.

    Raises:
        UserError: it is not, or git is not installed.
    """
    if not directory.is_dir():
        raise UserError("no such directory", where=str(directory))
    result = _run(directory, "rev-parse", "--show-prefix")
    if result.returncode:
        raise UserError(
            f"is not a git repository: {_complaint(result)}",
            where=str(directory),
            next="name the top directory of a repository",
        )
    if result.stdout.strip():
        raise UserError(
            "is a subdirectory of a git repository",
            where=str(directory),
            next="name its top directory",
        )


def commit(repository: Path, revision: str) -> Commit:
    """Resolve a revision.

    Raises:
        UserError: there is no such revision.
    """
    result = _run(
        repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"
    )
    found = result.stdout.decode(errors="replace").strip()
    if result.returncode or not _ID.fullmatch(found):
        raise UserError(f"no revision {printable(revision)!r}", where=str(repository))
    text = _output(
        repository, "show", "-s", "--no-show-signature", "--format=%T%x00%cs%x00%s", found
    )
    tree, date, subject = text.strip("\n").split("\0", 2)
    return Commit(found, tree, date, printable(subject))


def is_ancestor(repository: Path, first: str, second: str) -> bool:
    """Return whether the history of commit `second` contains commit `first`. Both are ids."""
    return _run(repository, "merge-base", "--is-ancestor", first, second).returncode == 0


def between(
    repository: Path, without: Collection[str], tip: str, paths: Sequence[str] = ()
) -> list[str]:
    """Return the commits of tip's history outside the histories of `without`, best bisection point
    first.

    Args:
        repository: the repository.
        without: ids of commits.
        tip: id of a commit.
        paths: only commits that touch one of these.
    """
    text = _output(
        repository,
        *("rev-list", "--bisect-all", tip, *(f"^{commit_id}" for commit_id in without)),
        *("--", *paths),
    )
    return [line.split()[0] for line in text.splitlines()]


def present(repository: Path, tree: str, paths: Sequence[str]) -> list[str]:
    """Return the paths that exist in a tree."""
    return _output(repository, "ls-tree", "--name-only", tree, "--", *paths).splitlines()


def archive(
    repository: Path, tree: str, target: Path, paths: Sequence[str] = (), top: str = ""
) -> None:
    """Write a tree's files, or those below some paths, as a tar archive.

    Args:
        repository: the repository.
        tree: id of a tree or a commit.
        target: file of the archive.
        paths: existing paths in the tree.
        top: prefix of all names, as "linux/".

    Raises:
        RunError: git failed.
    """
    options = (f"--output={target.absolute()}", f"--prefix={top}")
    _output(repository, "archive", "--format=tar", *options, tree, "--", *paths)


def _output(repository: Path, *arguments: str) -> str:
    result = _run(repository, *arguments)
    if result.returncode:
        raise RunError(f"git {arguments[0]}: {_complaint(result)}", where=str(repository))
    return result.stdout.decode("utf-8", "replace")


def _complaint(result: subprocess.CompletedProcess[bytes]) -> str:
    lines = result.stderr.decode("utf-8", "replace").splitlines()
    return lines[0].removeprefix("fatal: ") if lines else f"status {result.returncode}"


def _run(repository: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    # GIT_ variables could name another repository, or make git ask questions.
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env |= {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    # Paths are literal, not patterns.
    env["GIT_LITERAL_PATHSPECS"] = "1"
    try:
        return subprocess.run(
            ["git", "-C", str(repository), *arguments],
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        raise UserError("git is not on this machine", next="run: apt install git") from None
