# SPDX-License-Identifier: GPL-2.0-only
"""The kernels that the lab's tests run on. `make test` builds the default one, `make test-all` the
others, too; `isoblk kernel build [--version newest] [--debug]` does by hand."""

from pathlib import Path

import pytest

from isoblk.campaign.execute import Bench, make_bench
from isoblk.kernel import DEFAULT_VERSION, Kernel, find, host_library, list_kernels
from isoblk.machine.uml import Uml
from tests.kernels import On
from tests.lab.guest import Guest

# A guest that takes longer has hung; the debug kernel on a busy machine needs minutes.
TIME_LIMIT_S = 900


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How much the sweeps of dm-setcache have tried."""
    counts = {"lives": 0, "disks": 0}
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, count in getattr(report, "user_properties", ()):
                if name in counts and getattr(report, "when", "") == "call":
                    counts[name] += count
    if any(counts.values()):
        lives, disks = counts.values()
        terminalreporter.write_line(f"sweep: {lives} lives with a fault, {disks} disks after a cut")


def _bench(kernel: Kernel) -> Bench:
    return make_bench(Uml(kernel, host_library(kernel), time_limit_s=TIME_LIMIT_S), kernel)


@pytest.fixture(scope="session")
def default_bench() -> Bench:
    """The default kernel."""
    return _bench(find(DEFAULT_VERSION))


@pytest.fixture(scope="session")
def newest_bench() -> Bench:
    """The newest kernel in the cache: that of Debian's testing suite."""
    kernels = [one for one in list_kernels() if not one.debug and one.arch == "um"]
    newest = max(
        kernels, key=lambda kernel: tuple(map(int, kernel.version.split("-")[0].split(".")))
    )
    assert newest.version.split(".")[:2] != DEFAULT_VERSION.split("."), (
        "only the default kernel is built; run: isoblk kernel build --version newest"
    )
    return _bench(newest)


@pytest.fixture(scope="session")
def debug_bench() -> Bench:
    """The default kernel with KASAN and lockdep."""
    return _bench(find(DEFAULT_VERSION, debug=True))


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


@pytest.fixture(params=[On.DEFAULT, On.NEWEST])
def any_guest(request: pytest.FixtureRequest, tmp_path: Path) -> Guest:
    """A guest with each of the two kernels."""
    return Guest(request.getfixturevalue(f"{request.param}_bench"), tmp_path)
