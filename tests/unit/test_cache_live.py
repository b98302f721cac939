# SPDX-License-Identifier: GPL-2.0-only
"""A command of `isoblk cache` on a cache in use loses nothing, whatever is under way, fails or is
interrupted, and wherever: the device is then not suspended, and the cache as it was, or gone if it
was to be deleted."""

import dataclasses
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import pytest

from isoblk.cachectl import live, manage
from isoblk.errors import IsoblkError, RunError, UserError
from isoblk.machine.mapper import Mapper
from isoblk.run.spec import Options
from tests.unit.dmfake import FLASHCACHE, SSD, Device, FakeMapper, Fault, make_cache, no_wait

Act = Callable[[FakeMapper], Callable[[], object]]


@pytest.fixture
def mapper() -> FakeMapper:
    return FakeMapper()


def test_delete_cleans_first_and_says_how_far_it_is(mapper: FakeMapper) -> None:
    make_cache(mapper, dirty=250)
    told: list[tuple[int, int]] = []
    assert live.delete("fast", mapper, lambda *pair: told.append(pair), no_wait) == "8:32"
    assert mapper.devices == {}
    assert told == sorted(told) and told[-1][0] == told[-1][1]
    order = [one for one in mapper.asked if not one.startswith(("info", "status", "table"))]
    assert order[1:] == [
        "message fast 0 mode writethrough",
        "message fast 0 clean",
        "suspend --nolockfs fast",
        "remove fast",
    ]


def test_a_cache_that_cannot_be_cleaned_stays_and_in_its_mode(mapper: FakeMapper) -> None:
    device = make_cache(mapper, dirty=250)
    mapper.stuck = True
    with pytest.raises(RunError, match="250 blocks cannot be cleaned"):
        live.delete("fast", mapper, sleep=no_wait)
    assert mapper.devices["fast"] is device
    assert manage.find("fast", mapper).mode == "writeback"


def test_a_cache_in_use_is_not_deleted(mapper: FakeMapper) -> None:
    make_cache(mapper).open = 1
    with pytest.raises(UserError, match="fast: is in use; unmount it"):
        live.delete("fast", mapper, sleep=no_wait)
    assert not any(one.startswith("message") for one in mapper.asked)


def test_a_lost_ssd_with_dirty_blocks_has_a_next_step(
    mapper: FakeMapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_cache(mapper, dirty=7)
    find = manage.find
    monkeypatch.setattr(live, "find", lambda *one: dataclasses.replace(find(*one), lost=True))
    with pytest.raises(RunError, match=r"lost; 7 dirty blocks are on it; see docs/guides/cache"):
        live.delete("fast", mapper, sleep=no_wait)


FORMER = "0 1048576 linear 8:16 0\n1048576 1048576 linear 8:48 2048"


def test_attach_swaps_the_table_and_delete_swaps_it_back(mapper: FakeMapper) -> None:
    mapper.devices["data"] = Device(FORMER, open=1)
    live.attach("data", SSD, manage.line_of(FLASHCACHE, {}), mapper)
    assert mapper.devices["data-origin"].table == FORMER
    assert mapper.devices["data"].table.startswith(
        "0 2097152 setcache /dev/mapper/data-origin 8:32 8 512"
    )
    # In use all the time.
    live.delete("data", mapper, sleep=no_wait)
    assert mapper.devices == {"data": Device(FORMER, open=1)}


@pytest.mark.parametrize(
    "step", ["create data-origin", "load data 0 2097152 setcache", "suspend --nolockfs data"]
)
def test_an_attach_that_fails_leaves_the_device_as_it_was(step: str, mapper: FakeMapper) -> None:
    mapper.devices["data"] = Device(FORMER, open=1)
    mapper.refuses = step
    with pytest.raises(RunError):
        live.attach("data", SSD, manage.line_of(FLASHCACHE, {}), mapper)
    assert mapper.devices["data"].table == FORMER
    assert not mapper.devices["data"].suspended
    assert " setcache " not in mapper.devices["data"].loaded
    assert "data-origin" not in mapper.devices


def test_edit_changes_a_live_cache(mapper: FakeMapper) -> None:
    make_cache(mapper)
    state = live.edit("fast", {"mode": "thru", "policy": "lru"}, FLASHCACHE, mapper)
    assert (state.mode, state.policy) == ("writethrough", "lru")


def test_marks_move_in_an_order_in_which_low_is_never_above_high(mapper: FakeMapper) -> None:
    make_cache(mapper)
    for high, low in ((80, 70), (10, 5)):
        mapper.asked.clear()
        live.edit("fast", {"set_high": high, "set_low": low}, FLASHCACHE, mapper)
        sent = [one.split()[3] for one in mapper.asked if one.startswith("message")]
        assert sent == (["set_high", "set_low"] if high == 80 else ["set_low", "set_high"])


def test_a_change_that_a_live_cache_does_not_allow_is_refused(mapper: FakeMapper) -> None:
    make_cache(mapper)
    with pytest.raises(UserError, match="block cannot change"):
        live.edit("fast", {"block": 8192}, FLASHCACHE, mapper)


# -- whatever is under way, fails or is interrupted --


def _alone(mapper: FakeMapper) -> Callable[[], object]:
    make_cache(mapper, dirty=150)
    return lambda: live.delete("fast", mapper, sleep=no_wait)


def _attached(mapper: FakeMapper) -> Callable[[], object]:
    mapper.devices["fast"] = Device(FORMER, "LVM-1", open=1)
    live.attach("fast", SSD, manage.line_of(FLASHCACHE, {}), mapper)
    mapper.devices["fast"].dirty = 150
    return lambda: live.delete("fast", mapper, sleep=no_wait)


def _attach(mapper: FakeMapper) -> Callable[[], object]:
    mapper.devices["fast"] = Device(FORMER, "LVM-1", open=1)
    return lambda: live.attach("fast", SSD, manage.line_of(FLASHCACHE, {}), mapper)


def _edit(mapper: FakeMapper) -> Callable[[], object]:
    make_cache(mapper, dirty=150)
    options: Options = {"mode": "thru", "policy": "lru", "set_high": 10, "set_low": 5}
    return lambda: live.edit("fast", options, FLASHCACHE, mapper)


def _clean(mapper: FakeMapper) -> Callable[[], object]:
    make_cache(mapper, dirty=250)
    return lambda: live.clean("fast", mapper, sleep=no_wait)


ACTS = [_alone, _attached, _attach, _edit, _clean]


def _seen(mapper: FakeMapper) -> dict[str, tuple[str, str, bool]]:
    """The state of the devices, without the numbers of dirty blocks."""
    return {
        name: (one.table, one.uuid, one.cleaning and one.dirty > 0)
        for name, one in mapper.devices.items()
    }


@cache
def _whole(make: Act) -> dict[str, tuple[str, str, bool]]:
    """The state of the devices after a success."""
    mapper = FakeMapper()
    make(mapper)()
    return _seen(mapper)


def _try(
    make: Act,
    faults: dict[int, Fault],
    arrivals: dict[int, int],
) -> FakeMapper:
    """Do it with some faults. Whatever comes of it is checked; its mapper."""
    mapper = FakeMapper()
    act = make(mapper)
    before = _seen(mapper)
    mapper.asked.clear()
    mapper.faults, mapper.arrivals = faults, arrivals
    failed = True
    try:
        act()
        failed = False
    except (IsoblkError, KeyboardInterrupt):
        pass
    mapper.faults, mapper.arrivals = {}, {}
    whole = _whole(make)
    assert not mapper.lost, "dirty blocks are out of reach"
    for name, device in mapper.devices.items():
        assert not device.suspended, name
        assert not device.loaded, name
    assert _seen(mapper) in ([before, whole] if failed else [whole])
    if _seen(mapper) == before:
        # Nothing is in the way of another try.
        act()
        assert _seen(mapper) == whole
        assert not mapper.lost
    return mapper


def _calls(make: Act) -> range:
    return range(len(_try(make, {}, {}).asked))


@pytest.mark.parametrize("make", ACTS)
def test_writes_under_way_at_any_step_are_not_lost(
    make: Act,
) -> None:
    for at in _calls(make):
        _try(make, {}, {at: 7})
        for again in _calls(make)[at:]:
            _try(make, {}, {at: 7, again: 7})


@pytest.mark.parametrize("make", ACTS)
def test_any_step_may_fail_or_be_interrupted_with_writes_under_way(
    make: Act,
) -> None:
    for at in range(_calls(make).stop + 12):
        for fault in Fault:
            for arrival in range(at + 1):
                _try(make, {at: fault}, {arrival: 7})


@pytest.mark.parametrize("make", ACTS)
def test_a_second_failure_during_recovery_loses_nothing(
    make: Act,
) -> None:
    for at in _calls(make):
        for fault in Fault:
            for after in range(1, 12):
                for second in (Fault.REFUSED, Fault.DIED):
                    _try(make, {at: fault, at + after: second, at + after + 1: second}, {0: 7})


class KilledError(BaseException):
    """SIGKILL: nothing is undone."""


@dataclass
class Mortal:
    """Calls a mapper until it is killed: before its call `at`, or after it."""

    mapper: FakeMapper
    at: int
    after: bool
    calls: int = 0

    def __call__(self, *words: str, table: str = "") -> str:
        self.calls += 1
        if self.calls > self.at + self.after:
            raise KilledError
        said = self.mapper(*words, table=table)
        if self.calls > self.at:
            raise KilledError
        return said


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("make", ACTS)
def test_a_command_killed_at_any_step_loses_nothing_and_can_be_continued(
    make: Act, after: bool
) -> None:
    for at in _calls(make):
        mapper = FakeMapper()
        make(mapper)
        with suppress(KilledError):
            _by(make)(Mortal(mapper, at, after))
        for name, device in list(mapper.devices.items()):
            if device.suspended:
                mapper("resume", name)
            elif device.loaded:
                mapper("clear", name)
        assert not mapper.lost
        # The remaining devices can be removed in order.
        for name, device in list(mapper.devices.items()):
            if device.is_cache:
                device.open = 0
                live.delete(name, mapper, sleep=no_wait)
        assert not mapper.lost
        assert not any(one.is_cache for one in mapper.devices.values())
        if "fast" in mapper.devices:
            assert mapper.devices["fast"].table == FORMER


def _by(make: Act) -> Callable[[Mapper], object]:
    """The same by any mapper."""
    line = manage.line_of(FLASHCACHE, {})
    options: Options = {"mode": "thru", "policy": "lru", "set_high": 10, "set_low": 5}
    acts: dict[Act, Callable[[Mapper], object]] = {
        _attach: lambda by: live.attach("fast", SSD, line, by),
        _edit: lambda by: live.edit("fast", options, FLASHCACHE, by),
        _clean: lambda by: live.clean("fast", by, sleep=no_wait),
    }
    return acts.get(make, lambda by: live.delete("fast", by, sleep=no_wait))


def test_a_cache_that_another_program_keeps_dirty_stays_as_it_was(mapper: FakeMapper) -> None:
    make_cache(mapper, dirty=150)
    again = FakeMapper.__call__

    class Rival(FakeMapper):
        def __call__(self, *words: str, table: str = "") -> str:
            said = again(self, *words, table=table)
            if words[:4] == ("message", "fast", "0", "clean"):
                again(self, "message", "fast", "0", "mode", "writeback")
            if words[0] == "suspend":
                self.devices["fast"].dirty += 5
            return said

    rival = Rival(mapper.devices)
    with pytest.raises(RunError, match="5 blocks became dirty again"):
        live.delete("fast", rival, sleep=no_wait)
    device = rival.devices["fast"]
    assert (device.mode, device.dirty, device.suspended) == ("writeback", 5, False)
    assert not rival.lost


def test_blocks_that_never_become_clean_are_not_waited_for_without_end(mapper: FakeMapper) -> None:
    device = make_cache(mapper, dirty=150)
    waits: list[float] = []

    class Hot(FakeMapper):
        def __call__(self, *words: str, table: str = "") -> str:
            # As many as are cleaned until the next status, and two.
            if device.cleaning and words[0] == "status":
                device.dirty = 102
            return super().__call__(*words, table=table)

    with pytest.raises(RunError, match="2 blocks stay dirty"):
        live.delete("fast", Hot(mapper.devices), sleep=waits.append)
    # The disk of another user may be slow, too.
    assert sum(waits) > 50
    assert (device.mode, device.suspended, device.cleaning) == ("writeback", False, False)


def test_a_cache_that_is_opened_while_it_is_deleted_stays_as_it_was(mapper: FakeMapper) -> None:
    device = make_cache(mapper, dirty=150)

    class Late(FakeMapper):
        def __call__(self, *words: str, table: str = "") -> str:
            if words[0] == "remove":
                device.open = 1
            return super().__call__(*words, table=table)

    with pytest.raises(UserError, match="fast: is in use; unmount it"):
        live.delete("fast", Late(mapper.devices), sleep=no_wait)
    assert mapper.devices["fast"] is device
    assert (device.mode, device.suspended) == ("writeback", False)


def test_a_probe_that_has_it_open_for_a_moment_is_waited_for(mapper: FakeMapper) -> None:
    device = make_cache(mapper, dirty=150)
    removals = []

    class Probed(FakeMapper):
        def __call__(self, *words: str, table: str = "") -> str:
            if words[0] == "remove":
                removals.append(words)
                device.open = int(len(removals) == 1)
            if words[0] == "resume":
                device.open = 0
            return super().__call__(*words, table=table)

    # The probe has ended before the command looks for the process.
    assert live.delete("fast", Probed(mapper.devices), sleep=no_wait) == "8:32"
    assert len(removals) == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"suspended": True}, "fast: the device is suspended; run: dmsetup resume fast"),
        ({"loaded": FORMER}, "fast: the device has an inactive table; run: dmsetup clear fast"),
    ],
)
def test_a_device_that_another_program_is_about_to_change_is_left_alone(
    mapper: FakeMapper, change: dict[str, object], said: str
) -> None:
    cached = make_cache(mapper, dirty=150)
    plain = Device(FORMER)
    for key, value in change.items():
        setattr(cached, key, value)
        setattr(plain, key, value)
    for act in (live.clean, live.delete):
        with pytest.raises(UserError, match=said):
            act("fast", mapper, sleep=no_wait)
    mapper.devices["fast"] = plain
    with pytest.raises(UserError, match=said):
        live.attach("fast", SSD, manage.line_of(FLASHCACHE, {}), mapper)
    assert (plain.suspended, plain.loaded) == (
        change.get("suspended", False),
        change.get("loaded", ""),
    )
