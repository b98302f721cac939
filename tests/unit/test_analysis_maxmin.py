# SPDX-License-Identifier: GPL-2.0-only
"""The ideal is the weighted max-min fair division, flat and in a hierarchy."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoblk.metrics.maxmin import divide, shares, tree, water_fill
from isoblk.run.shares import effective_shares
from isoblk.run.spec import Group, Tenant
from tests.unit.resultgen import tenant

WEIGHTS = st.integers(1, 10_000)
CAPS = st.one_of(st.just(math.inf), st.floats(0, 1e9))
PARTIES = st.lists(st.tuples(WEIGHTS, CAPS), min_size=1, max_size=40)
BOOLEANS = st.booleans()
TOTALS = st.floats(1, 1e9)


@st.composite
def hierarchies(draw: st.DrawFn) -> tuple[list[Tenant], list[Group]]:
    """Tenants at up to three levels, and all inner cgroups, parents first."""
    groups = [Group(path=f"g{i}", weight=draw(WEIGHTS)) for i in range(draw(st.integers(1, 3)))]
    groups += [Group(path=f"{g.path}/in", weight=draw(WEIGHTS)) for g in groups]
    homes = ["", *(f"{group.path}/" for group in groups)]
    names = [f"t{i}" for i in range(draw(st.integers(1, 12)))]
    tenants = [tenant(n, draw(WEIGHTS), draw(st.sampled_from(homes)) + n) for n in names]
    used = [g for g in groups if any(t.cgroup.startswith(f"{g.path}/") for t in tenants)]
    # In some inner cgroups there is a tenant too, and its weight is the cgroup's.
    tenants += [tenant(f"own{i}", g.weight, g.path) for i, g in enumerate(used) if draw(BOOLEANS)]
    return tenants, used


@settings(deadline=None)
@given(PARTIES, TOTALS)
def test_amounts_add_up_to_the_total_or_to_all_caps(
    parties: list[tuple[int, float]], total: float
) -> None:
    weights, caps = zip(*parties, strict=True)
    assert sum(water_fill(total, weights, caps)) == pytest.approx(min(total, sum(caps)))


@settings(deadline=None)
@given(PARTIES, TOTALS)
def test_no_tenant_exceeds_its_cap(parties: list[tuple[int, float]], total: float) -> None:
    weights, caps = zip(*parties, strict=True)
    for amount, cap in zip(water_fill(total, weights, caps), caps, strict=True):
        assert 0 <= amount <= cap * (1 + 1e-9)


@settings(deadline=None)
@given(PARTIES, TOTALS)
def test_those_below_their_caps_have_the_highest_level_and_are_equal_by_weight(
    parties: list[tuple[int, float]], total: float
) -> None:
    weights, caps = zip(*parties, strict=True)
    amounts = water_fill(total, weights, caps)
    levels = [a / w for a, w in zip(amounts, weights, strict=True)]
    free = [le for le, a, c in zip(levels, amounts, caps, strict=True) if a < c * (1 - 1e-6)]
    if free:
        assert max(free) == pytest.approx(min(free), rel=1e-6)
        assert max(levels) <= max(free) * (1 + 1e-6)


@settings(deadline=None)
@given(st.lists(WEIGHTS, min_size=1, max_size=40), TOTALS)
def test_without_caps_it_is_the_weights(weights: list[int], total: float) -> None:
    amounts = water_fill(total, weights, [math.inf] * len(weights))
    for amount, weight in zip(amounts, weights, strict=True):
        assert amount == pytest.approx(total * weight / sum(weights))


@settings(deadline=None)
@given(hierarchies())
def test_a_hierarchy_without_caps_is_the_product_of_weights_along_the_path(
    made: tuple[list[Tenant], list[Group]],
) -> None:
    tenants, groups = made
    weights = {t.name: float(t.weight) for t in tenants}
    found = shares(tree(tenants, groups, set(weights), weights), 1e6, {})
    assert found == pytest.approx(effective_shares(tenants, groups))


@settings(deadline=None)
@given(hierarchies(), st.data())
def test_a_hierarchy_with_caps_keeps_total_and_caps(
    made: tuple[list[Tenant], list[Group]], data: st.DataObject
) -> None:
    tenants, groups = made
    weights = {t.name: float(t.weight) for t in tenants}
    caps = {name: data.draw(st.floats(1, 1e6), label=name) for name in weights}
    amounts = divide(tree(tenants, groups, set(weights), weights), 1e6, caps)
    assert sum(amounts.values()) == pytest.approx(min(1e6, sum(caps.values())))
    assert all(amounts[name] <= caps[name] * (1 + 1e-9) for name in weights)


def test_an_unused_share_goes_to_the_siblings_first() -> None:
    tenants = [tenant("a", 100, "g/a"), tenant("b", 100, "g/b"), tenant("c", 100, "c")]
    weights = {t.name: 100.0 for t in tenants}
    root = tree(tenants, [Group(path="g", weight=100)], set(weights), weights)
    assert divide(root, 100, {"a": 5.0}) == pytest.approx({"a": 5, "b": 45, "c": 50})


def test_the_unused_share_of_a_group_goes_to_its_neighbours() -> None:
    tenants = [tenant("a", 100, "g/a"), tenant("b", 300, "b"), tenant("c", 100, "c")]
    weights = {t.name: float(t.weight) for t in tenants}
    root = tree(tenants, [Group(path="g", weight=1000)], set(weights), weights)
    assert divide(root, 100, {"a": 20.0}) == pytest.approx({"a": 20, "b": 60, "c": 20})


def test_an_idle_tenant_has_no_share() -> None:
    tenants = [tenant("a", 100), tenant("b", 900)]
    weights = {t.name: float(t.weight) for t in tenants}
    assert shares(tree(tenants, [], {"a"}, weights), 10, {}) == {"a": 1.0}


def test_a_total_above_all_caps_gives_the_shares_of_the_caps() -> None:
    tenants = [tenant("a", 100), tenant("b", 900)]
    weights = {t.name: float(t.weight) for t in tenants}
    root = tree(tenants, [], set(weights), weights)
    assert shares(root, 100, {"a": 30.0, "b": 60.0}) == pytest.approx({"a": 1 / 3, "b": 2 / 3})
