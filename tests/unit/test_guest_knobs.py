# SPDX-License-Identifier: GPL-2.0-only
"""A knob that did not take is noticed; one that did is not accused."""

import pytest

from isoblk.guest.knobs import Setting, check, parse_read_back, took_effect

PATH = "/sys/fs/cgroup/t1/io.max"


@pytest.mark.parametrize(
    ("form", "asked", "got", "expected"),
    [
        ("plain", "32", "32", True),
        ("plain", "32", "128", False),
        ("plain", "32", "", False),
        ("choice", "bfq", "none mq-deadline kyber [bfq]", True),
        ("choice", "bfq", "none mq-deadline [kyber] bfq", False),
        ("choice", "none", "none", True),
        ("weight", "250", "default 250", True),
        ("weight", "250", "250", True),
        ("weight", "250", "default 25", False),
        ("weight", "100", "default 250\n8:0 100", False),
        ("pairs", "$dev rbps=100", "254:0 rbps=100 wbps=max riops=max wiops=max", True),
        ("pairs", "$dev rbps=100", "254:0 rbps=max wbps=100 riops=max wiops=max", False),
        ("pairs", "$dev rbps=100", "", False),
        ("pairs", "$dev min=100", "254:0 enable=1 min=100.00 max=100.00", True),
        ("pairs", "$dev ctrl=user", "254:0 ctrl=auto", False),
        ("pairs", "$dev target=75", "8:0 target=10\n254:0 target=75", True),
    ],
)
def test_took_effect(form: str, asked: str, got: str, expected: bool) -> None:
    assert took_effect(Setting(PATH, asked, form), got) is expected  # type: ignore[arg-type]


def test_a_value_with_a_colon_is_read_whole() -> None:
    assert parse_read_back("/a:254:0 rbps=1\n/a:254:1 rbps=2\n/b:\n") == {
        "/a": "254:0 rbps=1\n254:1 rbps=2",
        "/b": "",
    }


def test_a_file_written_twice_must_hold_what_was_written_last() -> None:
    (knob,) = check((Setting("/a", "1"), Setting("/a", "2")), {"/a": "2"})
    assert knob.ok
    assert knob.asked == "2"


def test_a_file_that_was_not_read_did_not_take() -> None:
    (knob,) = check((Setting("/a", "1"),), {})
    assert not knob.ok
