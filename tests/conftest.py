# SPDX-License-Identifier: GPL-2.0-only
"""How the tests are spread over processes (`make test`), and what holds for all of them."""

import signal

import pytest
from hypothesis import settings
from xdist.remote import Producer  # type: ignore[import-untyped]
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

# Guests with four processors, and tests that look at all of this machine's devices and
# cgroups: one at a time, each kind in a process of its own.
_ONE_AT_A_TIME = ("tests/qemu", "tests/host")

# No test asserts on wall time, so neither does Hypothesis.
settings.register_profile("isoblk", deadline=None)
settings.load_profile("isoblk")

# What runs in the background has SIGINT ignored, and so would isoblk, started by a test.
signal.signal(signal.SIGINT, signal.default_int_handler)


class _Spread(LoadScopeScheduling):  # type: ignore[misc]
    """What has one scope runs in one process; larger scopes begin first."""

    def _split_scope(self, nodeid: str) -> str:
        return next((kind for kind in _ONE_AT_A_TIME if nodeid.startswith(f"{kind}/")), nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> _Spread:
    """Keep those of a kind together."""
    return _Spread(config, log)
