# SPDX-License-Identifier: GPL-2.0-only
"""The kernels that the lab's tests run on, and the guests that are kept. `make test` builds the
default kernel, `make test-all` the others, too."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from isoblk.campaign.execute import Bench, make_bench
from isoblk.kernel import DEFAULT_VERSION, Kernel, find, list_kernels
from isoblk.paths import cache_dir
from tests.kernels import On
from tests.lab.guest import Guest
from tests.lab.kept import KeptUml, prune

_GUESTS = ("guests_new", "guests_kept", "guests_again")
# A guest that takes longer has hung; the debug kernel on a busy machine needs minutes.
TIME_LIMIT_S = 900


def pytest_sessionstart(session: pytest.Session) -> None:
    """Remove guests that were not used for long; one process of several does."""
    if not hasattr(session.config, "workerinput"):
        prune(cache_dir() / "guests")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many guests were run, and how much the sweeps of dm-setcache have tried."""
    counts: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            # Each of a test's reports has the properties it had by then.
            if getattr(report, "when", "") == "teardown":
                for name, value in getattr(report, "user_properties", ()):
                    counts[name] += value
    if counts["lives"] or counts["disks"]:
        terminalreporter.write_line(
            f"sweep: {counts['lives']} lives with a fault, {counts['disks']} disks after a cut"
        )
    if any(counts[name] for name in _GUESTS):
        terminalreporter.write_line(
            f"guests: {counts['guests_new']} run, {counts['guests_kept']} kept,"
            f" {counts['guests_again']} run again with equal results"
        )


@pytest.fixture(scope="session")
def machines() -> list[KeptUml]:
    """The machines that this process has made."""
    return []


@pytest.fixture(autouse=True)
def _count_guests(request: pytest.FixtureRequest, machines: list[KeptUml]) -> Iterator[None]:
    """Record how many guests a test has run, and how many were kept."""
    for one in machines:
        one.begin_test()
    before = sum((one.counts for one in machines), Counter())
    yield
    after = sum((one.counts for one in machines), Counter())
    request.node.user_properties += [
        (f"guests_{name}", count) for name, count in (after - before).items()
    ]


Make = Callable[[Kernel], Bench]


@pytest.fixture(scope="session")
def make(machines: list[KeptUml]) -> Make:
    """Makes a bench of a kernel, whose guests are kept."""

    def made(kernel: Kernel) -> Bench:
        machines.append(KeptUml(kernel, time_limit_s=TIME_LIMIT_S))
        return make_bench(machines[-1], kernel)

    return made


@pytest.fixture(scope="session")
def default_bench(make: Make) -> Bench:
    """The default kernel."""
    return make(find(DEFAULT_VERSION))


@pytest.fixture(scope="session")
def newest_bench(make: Make) -> Bench:
    """The newest kernel in the cache: that of Debian's testing suite."""
    kernels = [one for one in list_kernels() if not one.debug and one.arch == "um"]
    newest = max(
        kernels, key=lambda kernel: tuple(map(int, kernel.version.split("-")[0].split(".")))
    )
    assert newest.version.split(".")[:2] != DEFAULT_VERSION.split("."), (
        "only the default kernel is built; run: isoblk kernel build --version newest"
    )
    return make(newest)


@pytest.fixture(scope="session")
def debug_bench(make: Make) -> Bench:
    """The default kernel with KASAN and lockdep."""
    return make(find(DEFAULT_VERSION, debug=True))


@pytest.fixture(scope="session")
def lean_bench(make: Make) -> Bench:
    """The default kernel without what it has for other schedulers and controllers."""
    return make(find(DEFAULT_VERSION, arch="um-lean"))


@pytest.fixture(params=[On.DEFAULT, On.NEWEST])
def bench(request: pytest.FixtureRequest) -> Bench:
    """Each of the two kernels."""
    chosen = request.getfixturevalue(f"{request.param}_bench")
    assert isinstance(chosen, Bench)
    return chosen


@pytest.fixture
def guest(default_bench: Bench, tmp_path: Path) -> Guest:
    """A guest with the default kernel."""
    return Guest(default_bench, tmp_path)


@pytest.fixture
def debug_guest(debug_bench: Bench, tmp_path: Path) -> Guest:
    """A guest that notices bad memory accesses and bad locking."""
    return Guest(debug_bench, tmp_path)


@pytest.fixture
def lean_guest(lean_bench: Bench, tmp_path: Path) -> Guest:
    """A guest with that kernel."""
    return Guest(lean_bench, tmp_path)


@pytest.fixture(params=[On.DEFAULT, On.NEWEST])
def any_guest(request: pytest.FixtureRequest, tmp_path: Path) -> Guest:
    """A guest with each of the two kernels."""
    return Guest(request.getfixturevalue(f"{request.param}_bench"), tmp_path)
