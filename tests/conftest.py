# SPDX-License-Identifier: GPL-2.0-only
"""Which tests `make test` runs, how they are spread over processes, and what holds for all of them.

`make test` builds the default kernel and runs all tests that are not marked `long`; `make test-all`
builds the kernels of CI and runs all that are not marked `night`; `make test-night` runs the rest.
The marks are given here and manually:

- `long`: the test needs another kernel than the default one (its fixtures or parameters say so:
  tests/kernels.py); or it is one of the lab, and differs from another in the elevator or the mode
  of a cache; or it is marked manually because it takes long.
- `night`: the test needs the emulated kernel with sanitizers; or it is one of the lab under
  sanitizers, and differs from another in the elevator or the mode of a cache; or it is marked
  manually. A faster test in `make test-all` protects the same behaviour.

A test that is not chosen is deselected, never skipped: a kernel that a chosen test needs and that
was not built fails it.
"""

import re
import resource
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings
from xdist.remote import Producer  # type: ignore[import-untyped]
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from tests.examples import FEW as FEW_EXAMPLES
from tests.kernels import FEW, On, needed

# One at a time, each kind in a process of its own: tests that look at all of this machine's devices
# and cgroups; guests with four processors that are threads of User Mode Linux; and emulated ones.
_ONE_AT_A_TIME = {
    "host": re.compile(r"tests/host/"),
    "smp": re.compile(r"tests/qemu/(test_(smp|faults|zoned)\.py|.*never_wait_for|.*\[(.*-)?smp\b)"),
    "qemu": re.compile(r"tests/qemu/"),
}

# Parameters of a test in the lab whose first value is enough in `make test`.
_FIRST_IS_ENOUGH = ("elevator", "mode")

settings.load_profile(FEW_EXAMPLES)

# A background process ignores SIGINT, and so would an isoblk that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that need further kernels, before `-m` chooses by the marks.

    Long tests begin first: short ones then fill the remaining time.
    """
    first: dict[tuple[str, str], object] = {}
    for item in items:
        kernels, alike = needed(item), _is_done_alike(item, first)
        if kernels - FEW or alike:
            item.add_marker("long")
        if On.DEBUG in kernels and (alike or _ONE_AT_A_TIME["qemu"].match(item.nodeid)):
            item.add_marker("night")
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def _is_done_alike(item: pytest.Item, first: dict[tuple[str, str], object]) -> bool:
    """Whether a test of the lab has another elevator or mode than its first variant has.

    Args:
        first: by test and parameter, the first value; is filled in.
    """
    if not item.nodeid.startswith("tests/lab/"):
        return False
    parameters = getattr(item, "callspec", None)
    values = parameters.params if parameters else {}
    test = item.nodeid.partition("[")[0]
    return any(
        first.setdefault((test, name), values[name]) != values[name]
        for name in _FIRST_IS_ENOUGH
        if name in values
    )


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Record the processor time of a test and of its processes: scripts/test-times reads it."""
    before = _processor_s()
    yield
    item.user_properties.append(("processor_s", round(_processor_s() - before, 3)))


def _processor_s() -> float:
    """Seconds of processor time of this process and of its children that have ended."""
    used = [resource.getrusage(scope) for scope in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


class _Spread(LoadScopeScheduling):  # type: ignore[misc]
    """Tests of one scope run in one process; larger scopes begin first."""

    def _split_scope(self, nodeid: str) -> str:
        return next((kind for kind, of in _ONE_AT_A_TIME.items() if of.match(nodeid)), nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> _Spread:
    """Keep those of a kind together."""
    return _Spread(config, log)
