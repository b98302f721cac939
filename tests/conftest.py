# SPDX-License-Identifier: GPL-2.0-only
"""How the tests are spread over processes (`make test`), and what holds for all of them."""

import pytest
from hypothesis import settings

# Guests with four processors, and tests that look at all of this machine's devices and
# cgroups: one at a time, each kind in a process of its own.
_ONE_AT_A_TIME = ("qemu", "host")

# No test asserts on wall time, so neither does Hypothesis.
settings.register_profile("isoblk", deadline=None)
settings.load_profile("isoblk")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep those of a kind together."""
    tests = config.rootpath / "tests"
    for item in items:
        kind = item.path.relative_to(tests).parts[0]
        if kind in _ONE_AT_A_TIME:
            item.add_marker(pytest.mark.xdist_group(kind))
