# SPDX-License-Identifier: GPL-2.0-only
"""Group claims by source: the study's own, and those of papers.

An own claim that fails is a failure. A paper's claim that the runs do not confirm is a finding.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from isoblk.analysis.claims import ClaimResult

# A published source: a label of a paper, a place in one, a year, an address.
_PUBLISHED = re.compile(
    r"\bP\d+\b|\b(Fig(ure)?|Tab(le)?|Sec(tion)?|Chapter|Eq|p)\b\.? ?\d|§|\babstract\b"
    r"|\b(19|20)\d\d\b|\bdoi\b|\barxiv\b|https?://",
    re.IGNORECASE,
)
_LABEL = re.compile(r"\bP\d+\b")
_SAME = "the same"  # the source of the preceding claim
_TITLES = {
    "P0": "cgroups on an SSD, 2020",
    "P1": "schedulers under iozone, 2018",
    "P2": "FeedBAC, 2020",
    "P3": "Kyber Fairness, 2019",
    "P4": "SSD caches, 2015",
}
"""Short titles of the papers; docs/findings/papers.md has the full ones."""
OWN = "This study's own"
_TOLD = {"holds": "confirmed", "fails": "refuted", "undecided": "undecided"}


@dataclass(frozen=True)
class Group:
    """Claims of one source. source: OWN, or the paper. results: in the study's order."""

    source: str
    results: tuple[ClaimResult, ...]

    @property
    def own(self) -> bool:
        """Return whether they are the study's own."""
        return self.source == OWN

    def number(self, verdict: str) -> int:
        """Return the number of claims with that verdict."""
        return sum(result.verdict == verdict for result in self.results)

    def told(self, verdict: str) -> str:
        """Return the name of a verdict: for a paper's claim "confirmed", "refuted"."""
        return verdict if self.own else _TOLD[verdict]


def by_source(results: Sequence[ClaimResult]) -> list[Group]:
    """Return the study's own claims first, then each paper's, in the order of the study."""
    groups: dict[str, list[ClaimResult]] = {OWN: []}
    before = OWN
    for result in results:
        said = result.claim.source.strip()
        before = before if said.lower() == _SAME else _of(said)
        groups.setdefault(before, []).append(result)
    return [Group(source, tuple(found)) for source, found in groups.items() if found]


def _of(source: str) -> str:
    if not _PUBLISHED.search(source):
        return OWN
    if labels := sorted(set(_LABEL.findall(source))):
        return " and ".join(labels)
    return re.split(r"[,:;(]", source)[0].strip() or source


def called(source: str) -> str:
    """Return a source with a short title, if it is one of the papers: "P2 (FeedBAC, 2020)"."""
    return " and ".join(
        f"{label} ({_TITLES[label]})" if label in _TITLES else label
        for label in source.split(" and ")
    )


def tally(group: Group) -> str:
    """Return "12 hold, 1 fails", "3 confirmed, 2 refuted"."""
    parts = []
    for verdict, one, many in (("holds", "holds", "hold"), ("fails", "fails", "fail")):
        if number := group.number(verdict):
            word = (one if number == 1 else many) if group.own else _TOLD[verdict]
            parts.append(f"{number} {word}")
    if number := group.number("undecided"):
        parts.append(f"{number} undecided")
    return ", ".join(parts)
