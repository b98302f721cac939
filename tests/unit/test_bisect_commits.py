# SPDX-License-Identifier: GPL-2.0-only
"""A bisection over a git repository: merges, commits that do not build, names that are none."""

import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from isoblk.bisect.candidate import Built, Candidate, NotBuiltError
from isoblk.bisect.commits import Commits, KernelCommits, OwnCommits
from isoblk.bisect.measure import Value
from isoblk.bisect.session import Session, Tried, announce, sentence
from isoblk.errors import RunError, UserError
from isoblk.kernel import Kernel, Progress, Silent, git
from isoblk.metrics.stats import estimate

KERNEL = Kernel(
    key="key", version="6.12.1", source="s", compiler="gcc", debug=False, dir=Path("/nonexistent")
)


class Repository:
    """A git repository, a file "value" in it."""

    def __init__(self, top: Path) -> None:
        self.top = top
        top.mkdir()
        self.run("init", "-q", "-b", "main")
        self.run("config", "user.name", "a")
        self.run("config", "user.email", "a@example.org")

    def run(self, *arguments: str) -> str:
        env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
        return subprocess.run(
            ["git", "-C", str(self.top), *arguments],
            check=True,
            capture_output=True,
            text=True,
            env=env,
        ).stdout.strip()

    def commit(self, subject: str, **files: str) -> str:
        for name, text in files.items():
            path = self.top / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.run("add", "-A")
        self.run("commit", "-q", "--allow-empty", "-m", subject)
        return self.run("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


class Plain(Commits):
    """Commits of anything."""

    def candidate(self, name: str) -> Candidate:
        one = self.commit(name)
        return Candidate(one.id, one.short, one.subject)

    @contextmanager
    def built(self, name: str, progress: Progress) -> Iterator[Built]:
        yield Built(KERNEL)


def measurer(
    repository: Repository, tried: list[str]
) -> Callable[[str], tuple[Value, float, float]]:
    def measure(name: str) -> tuple[Value, float, float]:
        tried.append(name)
        text = repository.run("show", f"{name}:value")
        if text == "broken":
            raise NotBuiltError("building the modules failed: oops")
        if text == "hangs":
            raise RunError("a run hangs")
        return Value(estimate([float(text)]), {}, Path("/nonexistent")), 1.0, 2.0

    return measure


def bisected(
    repository: Repository, good: str, bad: str, paths: Sequence[str] = ()
) -> tuple[str, list[str], list[Tried]]:
    """The sentence, the subjects of the commits tried, and the trials."""
    range_ = Plain(repository.top, good, bad, paths)
    names: list[str] = []
    outcome = Session(range_, "p99.a", measurer(repository, names)).run(None)
    subjects = [range_.commit(name).subject for name in names]
    return sentence(range_, "p99.a", outcome), subjects, list(outcome.tried)


def test_the_first_bad_commit_is_named_with_its_subject(repository: Repository) -> None:
    for at in range(12):
        repository.commit(f"step {at}", value="1000" if at < 7 else "3000", other=str(at))
    text, tried, _ = bisected(repository, "HEAD~11", "HEAD")
    found = repository.run("rev-parse", "--short=12", "HEAD~4")
    assert text == f"the first commit with p99.a above 2.00 µs is {found} step 7"
    assert len(tried) <= 2 + 4


def test_a_culprit_that_a_merge_brought_in_is_found_on_its_branch(repository: Repository) -> None:
    repository.commit("begin", value="1000")
    repository.run("checkout", "-q", "-b", "side")
    repository.commit("side 1", side="1")
    repository.commit("culprit", value="5000")
    repository.commit("side 3", side="3")
    repository.run("checkout", "-q", "main")
    for at in range(6):
        repository.commit(f"main {at}", main=str(at))
    repository.run("merge", "-q", "--no-ff", "-m", "merge", "side")
    repository.commit("end", main="end")
    text, _, _ = bisected(repository, "HEAD~8", "HEAD")
    assert text.endswith("culprit")


def test_a_commit_that_does_not_build_is_skipped_and_reported(repository: Repository) -> None:
    repository.commit("begin", value="1000")
    for at in range(3):
        repository.commit(f"before {at}", other=str(at))
    repository.commit("broken", value="broken")
    repository.commit("mended, and worse", value="4000")
    repository.commit("end", other="end")
    text, _, tried = bisected(repository, "HEAD~6", "HEAD")
    short = repository.run("rev-parse", "--short=12", "HEAD~2")
    assert text.endswith(f"mended, and worse, or one of those that were skipped: {short}")
    (skipped,) = [one for one in tried if one.verdict == "skipped"]
    assert skipped.reason == "does not build: building the modules failed: oops"


def test_a_run_that_fails_is_skipped_too(repository: Repository) -> None:
    repository.commit("begin", value="1000")
    for at in range(3):
        repository.commit(f"before {at}", other=str(at))
    repository.commit("hangs", value="hangs")
    repository.commit("goes on", value="1000")
    repository.commit("culprit", value="4000")
    repository.commit("end", other="end")
    text, _, tried = bisected(repository, "HEAD~7", "HEAD")
    assert text.endswith("culprit")
    assert [one.reason for one in tried if one.verdict == "skipped"] in ([], ["a run hangs"])


def test_an_end_that_cannot_be_measured_ends_all(repository: Repository) -> None:
    repository.commit("begin", value="broken")
    repository.commit("end", value="1000")
    with pytest.raises(RunError, match=r"the good commit \w{12} cannot be measured: building"):
        bisected(repository, "HEAD~1", "HEAD")


def test_only_commits_that_touch_a_path_are_tried(repository: Repository) -> None:
    repository.commit("begin", block__a="1", value="1000")
    for at in range(4):
        repository.commit(f"other {at}", other=str(at))
    repository.commit("block 1", block__a="2")
    repository.commit("block 2", block__a="3", value="2000")
    for at in range(4):
        repository.commit(f"more {at}", other=f"more {at}")
    text, tried, _ = bisected(repository, "HEAD~10", "HEAD", ["block"])
    assert text.endswith("block 2")
    assert set(tried) <= {"begin", "more 3", "block 1", "block 2"}


def test_a_change_outside_the_paths_is_not_blamed_on_commits_inside(repository: Repository) -> None:
    repository.commit("begin", block__a="1", value="1000")
    repository.commit("block 1", block__a="2")
    repository.commit("elsewhere", value="2000")
    with pytest.raises(RunError, match="one of those that do not touch block"):
        bisected(repository, "HEAD~2", "HEAD", ["block"])


@pytest.mark.parametrize(
    "name",
    ["--output=/tmp/x", "-h", "main; touch x", "$(touch x)", "main\x1b[31m", "", "main:value"],
)
def test_a_revision_is_never_an_option_or_a_command(
    repository: Repository, tmp_path: Path, name: str
) -> None:
    repository.commit("begin", value="1")
    with pytest.raises(UserError, match="no revision") as caught:
        git.commit(repository.top, name)
    assert "\x1b" not in str(caught.value)
    assert not (tmp_path / "x").exists()
    assert not (repository.top / "x").exists()


def test_a_subject_obeys_no_terminal(repository: Repository) -> None:
    repository.commit("red \x1b[31m alert", value="1")
    assert git.commit(repository.top, "HEAD").subject == "red \\x1b[31m alert"


def test_ends_that_are_no_history_are_refused(repository: Repository, tmp_path: Path) -> None:
    repository.commit("begin", value="1")
    repository.commit("end", value="2")
    with pytest.raises(
        UserError, match=r"'HEAD' is not in the history of 'HEAD~1'; name the older"
    ):
        Plain(repository.top, "HEAD", "HEAD~1")
    with pytest.raises(UserError, match="are the same commit"):
        Plain(repository.top, "HEAD", "main")
    with pytest.raises(UserError, match="no such directory"):
        Plain(tmp_path / "gone", "a", "b")
    (tmp_path / "bare").mkdir()
    with pytest.raises(UserError, match="not a git repository"):
        Plain(tmp_path / "bare", "a", "b")
    (repository.top / "below").mkdir()
    with pytest.raises(
        UserError, match="is a subdirectory of a git repository; name its top directory"
    ):
        Plain(repository.top / "below", "HEAD~1", "HEAD")


def test_the_checkout_is_not_touched(repository: Repository) -> None:
    first = repository.commit("begin", kernel__sched__Kbuild="1", kernel__include__compat_h="1")
    repository.commit("end", kernel__sched__Kbuild="2")
    (repository.top / "kernel/sched/Kbuild").write_text("being edited")
    before = repository.run("status", "--porcelain"), repository.run("worktree", "list")
    commits = OwnCommits(repository.top, "HEAD~1", "HEAD", KERNEL)
    assert commits.good == first
    archive = repository.top.parent / "one.tar"
    git.archive(repository.top, first, archive, ["kernel"])
    assert archive.stat().st_size
    assert (repository.run("status", "--porcelain"), repository.run("worktree", "list")) == before


def test_git_is_asked_of_that_repository_whatever_the_environment_says(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = repository.commit("begin", value="1")
    monkeypatch.setenv("GIT_DIR", "/nonexistent")
    assert git.commit(repository.top, "HEAD").id == head


def test_the_number_of_steps_and_builds_is_announced(repository: Repository) -> None:
    for at in range(9):
        repository.commit(f"step {at}", value=str(at))
    commits = KernelCommits(repository.top, "HEAD~8", "HEAD")
    assert announce(commits) == (7, 5, 5)
    ready = replace(KERNEL, source=f"git-{commits.commit(commits.bad).tree[:16]}")
    assert (
        not KernelCommits(repository.top, "HEAD~8", "HEAD", (), [ready])
        .candidate(commits.bad)
        .to_build
    )


def test_a_commit_without_schedulers_does_not_build(repository: Repository) -> None:
    repository.commit("begin", other="1")
    repository.commit("end", kernel__sched__Kbuild="2")
    commits = OwnCommits(repository.top, "HEAD~1", "HEAD", KERNEL)
    with (
        pytest.raises(NotBuiltError, match="it has no kernel/sched"),
        commits.built(commits.good, Silent()),
    ):
        pass
