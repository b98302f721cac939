# SPDX-License-Identifier: GPL-2.0-only
"""Which tests `make test` runs, how they are spread over processes, and what holds for all of them.

`make test` builds the default kernel and runs all that is not marked `long`; `make test-all` builds
every kernel and runs everything. A test is `long`

- if it needs another kernel than the default one. Its fixtures say so, nobody by hand: see
  tests/kernels.py. Such a test also has the mark `kernels`.
- if it is marked so by hand, because it takes long: CONTRIBUTING.md lists which.

What is not run is deselected, never skipped: a kernel that a chosen test needs and that was not
built fails it.
"""

import re
import signal

import pytest
from hypothesis import settings
from xdist.remote import Producer  # type: ignore[import-untyped]
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from tests.kernels import FEW, needed

# One at a time, each kind in a process of its own: tests that look at all of this machine's devices
# and cgroups; guests with four processors that are threads of User Mode Linux; and emulated ones.
# These two kinds are most of `make test-all`: in one process they would outlast all others.
_ONE_AT_A_TIME = {
    "host": re.compile(r"tests/host/"),
    "smp": re.compile(r"tests/qemu/(test_smp\.py|.*\[(.*-)?smp\b)"),
    "qemu": re.compile(r"tests/qemu/"),
}

# No test asserts on wall time, so neither does Hypothesis.
settings.register_profile("isoblk", deadline=None)
settings.load_profile("isoblk")

# What runs in the background has SIGINT ignored, and so would isoblk, started by a test.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs further kernels, before `-m` chooses by the marks.

    What is long begins first: what is short then fills the time that is left at the end.
    """
    for item in items:
        if needed(item) - FEW:
            item.add_marker("long")
            item.add_marker("kernels")
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


class _Spread(LoadScopeScheduling):  # type: ignore[misc]
    """What has one scope runs in one process; larger scopes begin first."""

    def _split_scope(self, nodeid: str) -> str:
        return next((kind for kind, of in _ONE_AT_A_TIME.items() if of.match(nodeid)), nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> _Spread:
    """Keep those of a kind together."""
    return _Spread(config, log)
