# SPDX-License-Identifier: GPL-2.0-only
"""Compute io.isoblk.weight of a cgroup from its other weights.

Inputs are the weights in io.weight and io.bfq.weight, the weights in io.isoblk.weight, and the
weights that we wrote there last. A weight in io.isoblk.weight that is not ours was set manually,
and stays. An unset weight is written, also if we had written it before: then the modules were
loaded again, the disk's scheduler was chosen again, or a user wrote "default".
"""

from dataclasses import dataclass

from isoblk.weights.lines import DEFAULT, UNSET, Several, Weights


def wanted(io_weight: Weights, bfq_weight: Weights) -> Weights:
    """Return the weights that are set, by disk.

    io.weight takes precedence over io.bfq.weight: systemd writes both, and compresses a weight
    above 100 into BFQ's range. Docker and Podman write only io.bfq.weight where it exists.
    """
    return bfq_weight | io_weight


@dataclass(frozen=True)
class Change:
    """A write of one line to io.isoblk.weight.

    Attributes:
        key: "default", or a disk's number.
        weight: the weight to write; None: the disk follows the cgroup's default again.
    """

    key: str
    weight: int | None

    @property
    def text(self) -> str:
        """The line to write.

        >>> Change("259:0", None).text
        '259:0 default'
        """
        if self.weight is not None:
            return f"{self.key} {self.weight}"
        return f"{DEFAULT} {UNSET}" if self.key == DEFAULT else f"{self.key} {DEFAULT}"


@dataclass(frozen=True)
class Plan:
    """The writes to a cgroup's io.isoblk.weight, and the record of them.

    Attributes:
        changes: the lines to write.
        ahead: weights to record before the writes: ours at whatever point they stop.
        ours: weights to record after all writes.
    """

    changes: tuple[Change, ...]
    ahead: Several
    ours: Several


def plan(want: Weights, have: Weights, ours: Several) -> Plan:
    """Return the writes that mirror weights, and the record of them.

    Args:
        want: weights set in io.weight and io.bfq.weight.
        have: weights in io.isoblk.weight.
        ours: recorded weights that we may have written there.
    """
    changes: list[Change] = []
    ahead: Several = {}
    after: Several = {}
    for key in sorted({*want, *ours}):
        target, found = want.get(key), have.get(key)
        mine = ours.get(key, ())
        if found is not None and found not in mine:
            continue  # set manually
        if target is not None:
            after[key] = (target,)
        if target == found:
            ahead |= {key: after[key]} if key in after else {}
            continue
        changes.append(Change(key, target))
        before = () if found is None else (found,)
        ahead[key] = before + after.get(key, ())
    return Plan(tuple(changes), ahead, after)
