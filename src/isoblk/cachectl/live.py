# SPDX-License-Identifier: GPL-2.0-only
"""Attach, change, clean and delete a cache in use.

The dirty blocks of a cache are known for certain only while the device is suspended: a write in
flight during a change of mode becomes dirty when it completes. A cache is therefore removed within
a suspension that found no dirty block. Its new table is loaded within the same suspension: a table
that waits for a later resume by another program could make dirty blocks unreachable.

After any error or interrupt, the device is not suspended and has no inactive table, and the cache
is either as before or fully changed. File systems are not frozen: writes wait during the
suspension, and no more is needed.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from isoblk.cachectl.manage import (
    DIRTYING,
    ORIGIN_SUFFIX,
    THROUGH,
    State,
    Volume,
    find,
    limits,
    line_of,
    names,
    refused,
    table,
)
from isoblk.caches.setcache import TARGET, Line, Personality
from isoblk.errors import RunError, UserError
from isoblk.machine.journal import undisturbed
from isoblk.machine.mapper import Mapper
from isoblk.run.spec import Options

_POLL_S = 0.2
# Consecutive polls without a cleaned block before clean() fails: a minute.
_PATIENCE = 300
# Suspensions until no block is dirty. Two are enough unless another program changes the mode, or
# opens the device as udev does.
_TRIES = 10
# Attempts to restore each property.
_INSISTENCE = 3

Told = Callable[[int, int], None]
"""Called with the number of cleaned blocks, and of all blocks to clean."""


def _silent(done: int, total: int) -> None:
    del done, total


def attach(name: str, ssd: Volume, line: Line, mapper: Mapper) -> State:
    """Replace a device-mapper device's table by a cache of it, while the device is in use.

    Users notice nothing until the swap. If it fails, the device is as before.

    Args:
        name: the device.
        ssd: an SSD that was checked.
        line: the cache's options.
        mapper: dmsetup.

    Raises:
        UserError: there is no such device, or it is a cache.
        RunError: the kernel refuses.
    """
    if name not in names(mapper):
        raise UserError(
            f"no device-mapper device is called {name!r}",
            next="for a device that is not in use: isoblk cache create",
        )
    below = f"{name}{ORIGIN_SUFFIX}"
    if below in names(mapper):
        raise UserError(f"the device-mapper device {below!r} exists", next="remove or rename it")
    # Without the keys, dm-crypt would get another key.
    former = mapper("table", "--showkeys", name).rstrip("\n")
    rows = [row.split() for row in former.splitlines() if row.strip()]
    if any(row[2] == TARGET for row in rows):
        raise UserError("the device is already a cache", where=name)
    if not rows:
        raise UserError("the device has no device-mapper table", where=name)
    _refuse_unsettled(name, mapper)
    sectors = int(rows[-1][0]) + int(rows[-1][1])
    made = table(f"/dev/mapper/{below}", ssd.number, sectors, line)
    try:
        mapper("create", below, table=former)
        mapper("load", name, table=made)
        mapper("suspend", "--nolockfs", name)
        mapper("resume", name)
    except BaseException as error:
        attached = _detach(name, former, mapper)
        if not isinstance(error, RunError):
            raise
        # The command may have failed after the change was complete.
        if not attached:
            raise refused(error, name, ssd) from None
    return find(name, mapper)


def _detach(name: str, former: str, mapper: Mapper) -> bool:
    """Undo a failed attach, unless the cache is attached and works. Returns whether it is
    attached."""
    with _putting_back(name, mapper) as stubborn:
        if _is_cache(name, stubborn):
            if not _suspended(name, stubborn):
                return True
            # The cache never took effect, so it has no dirty blocks.
            stubborn("load", name, table=former)
        else:
            stubborn("clear", name)
        stubborn("resume", name)
        _remove_below(name, stubborn)
    return False


def edit(name: str, options: Options, personality: Personality, mapper: Mapper) -> State:
    """Change a live cache: all options, or none.

    Args:
        name: the cache.
        options: mode, policy, and numbers of the target.
        personality: its words for modes and policies are accepted.
        mapper: dmsetup.

    Raises:
        UserError: an option is wrong, or cannot change while the cache lives.
        RunError: the change did not take effect.
    """
    before = _values(name, mapper)
    for fixed in ("block", "assoc"):
        if fixed in options:
            raise UserError(
                f"{fixed} cannot change while the cache lives", next="delete it, and create another"
            )
    line = line_of(personality, {**limits(name, mapper), **options})
    asked = {"mode": line.mode, "policy": line.policy, **line.numbers}
    wanted = {option: str(asked[option]) for option in options}
    try:
        _change(name, before, wanted, mapper)
        after = _values(name, mapper)
        for option, text in wanted.items():
            if after[option] != text:
                raise RunError(
                    f"{option}: {text} requested, but the cache has {after[option]}", where=name
                )
    except BaseException:
        with _putting_back(name, mapper) as stubborn:
            now = _values(name, stubborn)
            former = {option: before[option] for option in wanted if now[option] != before[option]}
            _change(name, now, former, stubborn)
        raise
    return find(name, mapper)


def _values(name: str, mapper: Mapper) -> dict[str, str]:
    """Return the current value of each option that a message can change."""
    state = find(name, mapper)
    numbers = {option: str(value) for option, value in limits(name, mapper).items()}
    return {"mode": state.mode, "policy": state.policy, **numbers}


def _change(name: str, now: dict[str, str], wanted: dict[str, str], mapper: Mapper) -> None:
    """Set options in an order that never puts a low mark above its high mark: a decrease begins
    with the low mark, an increase with the high one."""

    def low_first(option: str) -> tuple[bool, str]:
        text = wanted[option]
        falls = text.isdigit() and int(text) < int(now[option])
        return option.endswith("_high") == falls, option

    for option in sorted(wanted, key=low_first):
        mapper("message", name, "0", option, wanted[option])


def clean(
    name: str,
    mapper: Mapper,
    told: Told = _silent,
    sleep: Callable[[float], None] = time.sleep,
) -> State:
    """Write all dirty blocks to the origin, and wait for completion.

    Args:
        name: the cache.
        mapper: dmsetup.
        told: see Told.
        sleep: waits.

    Raises:
        RunError: the SSD is lost, blocks cannot be cleaned, or blocks become dirty again and again.
    """
    state = find(name, mapper)
    _refuse_unsettled(name, mapper)
    with _as_it_was(state, mapper):
        return _clean(state, mapper, told, sleep)


def _clean(state: State, mapper: Mapper, told: Told, sleep: Callable[[float], None]) -> State:
    name, total = state.name, state.dirty
    errors = state.counts.get("clean_errors", 0)
    least, since = total, 0
    if total:
        mapper("message", name, "0", "clean")
    while state.dirty:
        since = 0 if state.dirty < least else since + 1
        least = min(least, state.dirty)
        if since > _PATIENCE:
            raise RunError(
                f"{state.dirty} blocks stay dirty: programs keep writing to them, or the disk does"
                " not answer",
                where=name,
                next="pause programs that write to the cache",
            )
        if state.lost:
            raise RunError(
                f"the SSD is lost; {state.dirty} dirty blocks are on it",
                where=name,
                next="see docs/guides/cache.md, Failures",
            )
        # Other blocks are still being cleaned while some are stuck.
        failed = state.counts.get("clean_errors", 0) > errors
        if failed and state.counts.get("stuck", 0) in (0, state.dirty):
            raise RunError(
                f"{state.dirty} blocks cannot be cleaned: disk errors",
                where=name,
                next="see: dmesg",
            )
        sleep(_POLL_S)
        state = find(name, mapper)
        total = max(total, state.dirty)
        told(total - state.dirty, total)
    return state


def delete(
    name: str,
    mapper: Mapper,
    told: Told = _silent,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Remove a cache after its dirty blocks are on the origin. Returns MAJOR:MINOR of its SSD.

    An attached cache gives the device its former table back, even while it is in use.

    Raises:
        UserError: it is in use, and was not attached.
        RunError: see clean(), or blocks become dirty again and again; the cache is as before.
    """
    state = find(name, mapper)
    _refuse_unsettled(name, mapper)
    below = f"{name}{ORIGIN_SUFFIX}"
    former = ""
    if below in names(mapper):
        former = mapper("table", "--showkeys", below).rstrip("\n")
    elif _open_count(name, mapper):
        raise _in_use(name)
    with _as_it_was(state, mapper):
        for _ in range(_TRIES):
            now = find(name, mapper)
            if now.mode in DIRTYING:
                # From here on, writes go to the origin too.
                mapper("message", name, "0", "mode", THROUGH)
            _clean(now, mapper, told, sleep)
            mapper("suspend", "--nolockfs", name)
            # All earlier requests have completed.
            dirty = find(name, mapper).dirty
            if not dirty and former:
                mapper("load", name, table=former)
                mapper("resume", name)
                _remove_below(name, mapper)
                return state.ssd
            if not dirty and _remove(name, mapper):
                return state.ssd
            mapper("resume", name)
            sleep(_POLL_S)
        if not dirty:
            raise _in_use(name)
        raise RunError(
            f"{dirty} blocks became dirty again after each cleaning",
            where=name,
            next="stop programs that change the cache's mode",
        )


def _in_use(name: str) -> UserError:
    return UserError("is in use", where=name, next="unmount it")


def _remove(name: str, mapper: Mapper) -> bool:
    """Remove a suspended device. Returns False if it is open."""
    try:
        mapper("remove", name)
    except RunError:
        if _open_count(name, mapper):
            return False
        raise
    return True


def _open_count(name: str, mapper: Mapper) -> int:
    return int(mapper("info", "-c", "--noheadings", "-o", "open", name).strip() or 0)


def _refuse_unsettled(name: str, mapper: Mapper) -> None:
    """Check that the device is not suspended and has no inactive table.

    A suspended device cleans no block, and our resume would make an inactive table live.
    """
    found = mapper("info", "-c", "--noheadings", "-o", "attr", name)
    if "s" in found:
        raise UserError("the device is suspended", where=name, next=f"run: dmsetup resume {name}")
    if "I" in found:
        raise UserError(
            "the device has an inactive table", where=name, next=f"run: dmsetup clear {name}"
        )


def _suspended(name: str, mapper: Mapper) -> bool:
    return "s" in mapper("info", "-c", "--noheadings", "-o", "attr", name)


@contextmanager
def _as_it_was(before: State, mapper: Mapper) -> Iterator[None]:
    """Restore the cache after an error, unless it is already removed."""
    name = before.name
    try:
        yield
    except BaseException:
        with _putting_back(name, mapper) as stubborn:
            if name in names(stubborn):
                if _is_cache(name, stubborn):
                    stubborn("clear", name)
                    stubborn("resume", name)
                    if not before.counts.get("cleaning"):
                        stubborn("message", name, "0", "stop_clean")
                    if find(name, stubborn).mode != before.mode:
                        stubborn("message", name, "0", "mode", before.mode)
                else:
                    stubborn("resume", name)
                    _remove_below(name, stubborn)
        raise


def _is_cache(name: str, mapper: Mapper) -> bool:
    return f" {TARGET} " in mapper("table", name)


def _remove_below(name: str, mapper: Mapper) -> None:
    if (below := f"{name}{ORIGIN_SUFFIX}") in names(mapper):
        mapper("remove", "--retry", below)


@contextmanager
def _putting_back(name: str, mapper: Mapper) -> Iterator[Mapper]:
    """Yield a Mapper that retries failed commands, with interrupts blocked.

    Raises:
        RunError: all attempts failed.
    """

    def stubborn(*words: str, table: str = "") -> str:
        for _ in range(_INSISTENCE - 1):
            with suppress(RunError):
                return mapper(*words, table=table)
        try:
            return mapper(*words, table=table)
        except RunError as error:
            raise RunError(
                f"failed, and could not be undone: {error.cause}",
                where=name,
                next=f"dmsetup {' '.join(words)}",
            ) from None

    with undisturbed():
        yield stubborn
