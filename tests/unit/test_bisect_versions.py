# SPDX-License-Identifier: GPL-2.0-only
"""Versions of kernels: which can be had, in which order, and which one a user means."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoblk.bisect.versions import KernelVersions, Version, available, choose, order_of
from isoblk.errors import UserError
from isoblk.kernel import Kernel
from isoblk.kernel.apt import Offer


def kernel(version: str, source: str = "") -> Kernel:
    return Kernel(
        key=f"{version}-key",
        version=version,
        source=source or f"linux-source-6.12_{version}-1",
        compiler="gcc",
        debug=False,
        dir=Path("/nonexistent"),
    )


OFFERS = [
    Offer("linux-source-6.12", "6.12.118-1", "trixie-security"),
    Offer("linux-source-6.12", "6.12.117-1", "trixie"),
    Offer("linux-source-6.12", "6.12.117-1~deb12u1", "bookworm-security"),
    Offer("linux-source-6.12", "6.12.95-1~bpo12+1", "bookworm-backports"),
    Offer("linux-source-7.2", "7.2.6-1~bpo13+1", "trixie-backports"),
    Offer("linux-source-7.3", "7.3~rc7-1~exp1", "experimental"),
]


def test_each_version_is_listed_once_and_a_built_kernel_takes_precedence() -> None:
    versions = available([kernel("6.12.117"), kernel("7.2.12")], OFFERS)
    assert [one.name for one in versions] == [
        *("6.12.95", "6.12.117", "6.12.118", "7.2.6", "7.2.12", "7.3-rc7")
    ]
    built = {one.name for one in versions if one.kernel}
    assert built == {"6.12.117", "7.2.12"}
    assert versions[2].offer == OFFERS[0]


def test_a_kernel_of_a_users_own_tree_does_not_stand_for_its_version() -> None:
    assert available([kernel("6.12.117", "tree-0123"), kernel("6.12.118", "git-0123")], []) == []


def test_a_candidate_is_before_its_release() -> None:
    names = ["7.3-rc7", "7.3~rc7", "7.3.0", "7.3", "7.3.1", "6.12.117", "6.12"]
    orders = [order_of(name) for name in names]
    assert orders[0] == orders[1]
    assert orders[2] == orders[3]
    first = [one for one in orders if one is not None]
    assert sorted(first) == [first[6], first[5], first[0], first[1], first[2], first[3], first[4]]
    assert order_of("bookworm") is None


@given(st.text())
def test_no_version_breaks_the_order(text: str) -> None:
    order = order_of(text)
    assert order is None or len(order) == 4


def test_a_series_means_its_built_version_or_else_its_newest() -> None:
    versions = available([kernel("6.12.117")], OFFERS)
    assert choose("6.12", versions).name == "6.12.117"
    assert choose("7.2", versions).name == "7.2.6"
    assert choose("6.12.95", versions).name == "6.12.95"
    with pytest.raises(UserError, match=r"no kernel '6.1' is .*; available: 6.12.95, 6.12.117"):
        choose("6.1", versions)


def test_the_older_is_named_first() -> None:
    versions = available([kernel("6.12.117")], OFFERS)
    with pytest.raises(UserError, match=r"7.2.6 is not older than 6.12.117; name the older first"):
        KernelVersions(versions, "7.2", "6.12")
    with pytest.raises(UserError, match=r"6.12.117 is not older than 6.12.117"):
        KernelVersions(versions, "6.12", "6.12.117")


def test_only_versions_between_good_and_bad_are_tried() -> None:
    range_ = KernelVersions(available([kernel("6.12.117")], OFFERS), "6.12", "7.2")
    assert (range_.good, range_.bad) == ("6.12.117", "7.2.6")
    assert [one for one in range_.order([range_.good], range_.bad) if one != range_.bad] == [
        "6.12.118"
    ]
    assert range_.candidate("6.12.118").to_build
    assert not range_.candidate("6.12.117").to_build


def test_a_version_is_no_path_and_no_option() -> None:
    with pytest.raises(UserError, match="no kernel"):
        choose("../6.12", [Version("6.12.1", (6, 12, 1, 0))])
