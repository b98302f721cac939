# SPDX-License-Identifier: GPL-2.0-only
"""How the tests are spread over processes (`make test`)."""

import pytest

# Guests with four processors, and tests that look at all of this machine's devices and
# cgroups: one at a time, each kind in a process of its own.
_ONE_AT_A_TIME = ("qemu", "host")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep those of a kind together."""
    tests = config.rootpath / "tests"
    for item in items:
        kind = item.path.relative_to(tests).parts[0]
        if kind in _ONE_AT_A_TIME:
            item.add_marker(pytest.mark.xdist_group(kind))
