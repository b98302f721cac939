# SPDX-License-Identifier: GPL-2.0-only
"""What io.isoblk.weight is to hold when a cgroup's other weights are these.

Three things are known of a cgroup: what others have set in io.weight and io.bfq.weight, what
io.isoblk.weight holds, and what we wrote there last. A weight there that is set and is not ours
was written by hand, and stays. One that is not set is ours to write, also if we had written it:
then the modules were loaded anew, or the disk's scheduler was chosen again, or somebody wrote
"default" to give it back to us.
"""

from dataclasses import dataclass

from isoblk.weights.lines import DEFAULT, UNSET, Several, Weights


def wanted(io_weight: Weights, bfq_weight: Weights) -> Weights:
    """The weights that somebody has set, disk by disk.

    io.weight counts before io.bfq.weight: systemd writes both, and to the second what is left of a
    weight above 100 when it is pressed into BFQ's range. Docker and Podman write the second alone
    where there is one.
    """
    return bfq_weight | io_weight


@dataclass(frozen=True)
class Change:
    """What is to be done with one line of io.isoblk.weight.

    Attributes:
        key: "default", or a disk's number.
        weight: to write; None: none, the disk follows the cgroup's default again.
    """

    key: str
    weight: int | None

    @property
    def text(self) -> str:
        """What is written to the file.

        >>> Change("259:0", None).text
        '259:0 default'
        """
        if self.weight is not None:
            return f"{self.key} {self.weight}"
        return f"{DEFAULT} {UNSET}" if self.key == DEFAULT else f"{self.key} {DEFAULT}"


@dataclass(frozen=True)
class Plan:
    """What to do with a cgroup.

    Attributes:
        changes: to be written.
        ahead: what may be ours while that happens, at whatever point it ends.
        ours: what is ours when all has been written.
    """

    changes: tuple[Change, ...]
    ahead: Several
    ours: Several


def plan(want: Weights, have: Weights, ours: Several) -> Plan:
    """What to write, and what is ours then.

    Args:
        want: what others have set elsewhere.
        have: what io.isoblk.weight holds.
        ours: what of that may be our writing.
    """
    changes: list[Change] = []
    ahead: Several = {}
    after: Several = {}
    for key in sorted({*want, *ours}):
        target, found = want.get(key), have.get(key)
        mine = ours.get(key, ())
        if found is not None and found not in mine:
            continue  # by hand
        if target is not None:
            after[key] = (target,)
        if target == found:
            ahead |= {key: after[key]} if key in after else {}
            continue
        changes.append(Change(key, target))
        before = () if found is None else (found,)
        ahead[key] = before + after.get(key, ())
    return Plan(tuple(changes), ahead, after)
