# SPDX-License-Identifier: GPL-2.0-only
"""A fragment's line that did not take effect is never overlooked."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoblk.errors import UserError
from isoblk.kernel import config
from isoblk.kernel.builder import fragments

values = st.sampled_from(["y", "m", "n", "17", "-1", "0x1f", '"text"'])
wanted = st.dictionaries(st.from_regex(r"CONFIG_[A-Z0-9_]{1,10}", fullmatch=True), values)


@given(wanted)
def test_fragment_round_trips(symbols: dict[str, str]) -> None:
    assert config.parse(config.render(symbols), "f") == symbols


def test_unset_is_n_and_comments_are_none() -> None:
    text = "# CONFIG_A is not set\n# words\n\n  CONFIG_B=m\n"
    assert config.parse(text, "f") == {"CONFIG_A": "n", "CONFIG_B": "m"}


@pytest.mark.parametrize("line", ["CONFIG_A", "A=y", "CONFIG_A=yes", "CONFIG_A = y"])
def test_bad_line_is_named_with_its_place(line: str) -> None:
    with pytest.raises(UserError, match="f:2: not a setting"):
        config.parse(f"CONFIG_X=y\n{line}\n", "f")


def test_contradiction_within_a_fragment_is_refused() -> None:
    with pytest.raises(UserError, match="CONFIG_A has two values"):
        config.parse("CONFIG_A=y\nCONFIG_A=m\n", "f")


def test_later_fragment_overrides(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("CONFIG_A=y\nCONFIG_B=y\n")
    (tmp_path / "b").write_text("CONFIG_B=n\n")
    assert config.load([tmp_path / "a", tmp_path / "b"]) == {"CONFIG_A": "y", "CONFIG_B": "n"}
    with pytest.raises(UserError, match="cannot read"):
        config.load([tmp_path / "none"])


def test_every_way_to_fail_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "Kconfig").write_text(
        "config ON\n\tbool\nmenuconfig OFF\n\tbool\n  config LOW\n\tbool\nconfig QUIET\n\tbool\n"
    )
    asked = {
        "CONFIG_ON": "y",
        "CONFIG_OFF": "y",
        "CONFIG_LOW": "m",
        "CONFIG_QUIET": "n",
        "CONFIG_TYPO": "n",
    }
    dotconfig = "CONFIG_ON=y\n# CONFIG_OFF is not set\nCONFIG_LOW=y\n"
    assert config.unapplied(asked, dotconfig, tmp_path) == [
        "CONFIG_LOW=m (is y)",
        "CONFIG_OFF=y (is n)",
        "CONFIG_TYPO=n (no such symbol)",
    ]


@given(wanted, st.data())
def test_exactly_the_lines_that_did_not_take_effect_are_reported(
    symbols: dict[str, str], data: st.DataObject
) -> None:
    symbols = {name: value for name, value in symbols.items() if value != "n"}
    lost = data.draw(st.sets(st.sampled_from(sorted(symbols))) if symbols else st.just(set()))
    kept = {name: value for name, value in symbols.items() if name not in lost}
    failed = config.unapplied(symbols, config.render(kept), Path("/nonexistent"))
    assert {text.partition("=")[0] for text in failed} == lost


@pytest.mark.parametrize("debug", [False, True])
def test_shipped_fragments_are_well_formed(debug: bool) -> None:
    assert config.load(fragments(debug))["CONFIG_UML_TIME_TRAVEL_SUPPORT"] == "y"
    smp = config.load(fragments(debug, "um-smp"))
    assert (smp["CONFIG_SMP"], smp["CONFIG_UML_TIME_TRAVEL_SUPPORT"]) == ("y", "n")
    assert smp.get("CONFIG_KASAN") == ("y" if debug else None)
