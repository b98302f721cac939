# SPDX-License-Identifier: GPL-2.0-only
"""The kernels that the SMP tests run on. `make test-smp` builds and fetches them; `isoblk
kernel build --arch x86_64 --debug`, `--arch um-smp --debug` and `--stock` do by hand."""

from pathlib import Path

import pytest

from isoblk.campaign.execute import Bench, make_bench
from isoblk.kernel import DEFAULT_VERSION, find, host_library, stock
from isoblk.machine.qemu import Qemu
from isoblk.machine.smp import Smp
from isoblk.run.tier import SMP
from tests.kernels import On
from tests.qemu.guest import TIME_LIMIT_S, Guest


@pytest.fixture(scope="session")
def debug_bench() -> Bench:
    """Our x86-64 kernel with KASAN, lockdep and poisoned slabs."""
    kernel = find(DEFAULT_VERSION, debug=True, arch="x86_64")
    return make_bench(Qemu(kernel, time_limit_s=TIME_LIMIT_S), kernel)


@pytest.fixture
def debug_guest(debug_bench: Bench, tmp_path: Path) -> Guest:
    """A guest that notices bad memory accesses, bad locking and sleeping where one may not."""
    return Guest(debug_bench, tmp_path)


@pytest.fixture(scope="session")
def smp_bench() -> Bench:
    """User Mode Linux with four processors, with KASAN and lockdep."""
    kernel = find(debug=True, arch="um-smp")
    return make_bench(Smp(kernel, host_library(kernel), time_limit_s=TIME_LIMIT_S), kernel)


@pytest.fixture
def smp_guest(smp_bench: Bench, tmp_path: Path) -> Guest:
    """A guest on the host's own processors, which may lose one at any instruction."""
    return Guest(smp_bench, tmp_path)


@pytest.fixture(params=[1, 16])
def queues(request: pytest.FixtureRequest) -> int:
    """Hardware queues of a disk."""
    count: int = request.param
    return count


# More guest processors than this livelock on two cores: a queued spinlock passes to the waiter that
# is next, and all other waiters spin until it gets a core. With 16, 4 of 49 storms never ended.
_MOST_CPUS = 8


@pytest.fixture
def wide_guest(smp_bench: Bench, tmp_path: Path, queues: int) -> Guest:
    """Such a guest whose disks may have `queues` hardware queues: no disk has more than the kernel
    has processors, be they absent."""
    cpus = min(max(queues, SMP.cpus), _MOST_CPUS)
    return Guest(smp_bench, tmp_path, cpus=cpus, absent=max(queues - cpus, 0))


@pytest.fixture(params=[On.DEBUG, On.SMP])
def stress_guest(request: pytest.FixtureRequest, tmp_path: Path) -> Guest:
    """Each of the two whose kernel has KASAN and lockdep: emulated, and native and newer."""
    return Guest(request.getfixturevalue(f"{request.param}_bench"), tmp_path)


@pytest.fixture(scope="session")
def stock_bench() -> Bench:
    """Debian's own kernel, as users have it."""
    kernel = stock.find(DEFAULT_VERSION)
    return make_bench(Qemu(kernel, time_limit_s=TIME_LIMIT_S), kernel)


@pytest.fixture
def stock_guest(stock_bench: Bench, tmp_path: Path) -> Guest:
    """A guest as a user of Debian has it. It boots twice as fast as the debug kernel."""
    return Guest(stock_bench, tmp_path)


@pytest.fixture(params=[On.STOCK, On.DEBUG])
def guest(request: pytest.FixtureRequest, tmp_path: Path) -> Guest:
    """A guest with each of the two kernels."""
    return Guest(request.getfixturevalue(f"{request.param}_bench"), tmp_path)
