# SPDX-License-Identifier: GPL-2.0-only
"""A knob that did not take is noticed; one that did is not accused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoblk.run.setting import Setting, check, parse_read_back, took_effect
from isoblk.run.shell import ForDevice, write

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
        ("pairs", "$dev target=75", "8:0 target=75\n254:0 target=10", False),
        ("pairs", "$dev target=75", "8:0 target=75", False),
        ("model", "bytes", "bytes", True),
        ("model", "auto", "auto rbps=1 wbps=2", True),
        ("model", "auto", "user rbps=1 wbps=2", False),
        ("model", "bytes", "auto rbps=1 wbps=2", False),
        ("model", "rbps=1 wbps=2", "user rbps=1 wbps=2", True),
        ("model", "rbps=1 wbps=2", "user rbps=1 wbps=3", False),
        ("model", "rbps=1 wbps=2", "auto rbps=1 wbps=2", False),
        ("model", "rbps=1 wbps=2", "", False),
    ],
)
def test_took_effect(form: str, asked: str, got: str, expected: bool) -> None:
    assert took_effect(Setting(PATH, asked, form), got, "254:0") is expected  # type: ignore[arg-type]


def test_in_a_guest_there_is_no_other_disk() -> None:
    assert took_effect(Setting(PATH, "$dev target=75", "pairs"), "254:0 target=75", "")


def test_a_value_with_a_colon_is_read_whole() -> None:
    text = "/a:254:0 rbps=1\n/a:254:1 rbps=2\n/b:\n"
    assert parse_read_back(text, ["/a", "/b"]) == {
        "/a": "254:0 rbps=1\n254:1 rbps=2",
        "/b": "",
    }


def test_a_path_with_a_colon_is_read_whole() -> None:
    paths = ["/cg/web:80/io.weight", "/cg/web/io.weight", "/cg/x/io.weight"]
    text = "/cg/web:80/io.weight:default 10\n/cg/web/io.weight:default 20\n"
    assert parse_read_back(text, paths) == {
        "/cg/web:80/io.weight": "default 10",
        "/cg/web/io.weight": "default 20",
    }


@given(st.lists(st.sampled_from(["a", "b:", ":", "1", "\x0b", "\u2028", " "]), max_size=9))
def test_a_file_says_nothing_of_another(parts: list[str]) -> None:
    said = "".join(parts)
    assert parse_read_back(f"/a:{said}\n/b:1\nforeign:/b:2\n", ["/a", "/b"]) == {
        "/a": said,
        "/b": "1",
    }


def test_a_line_for_a_device_is_written_only_to_files_that_take_one() -> None:
    write(ForDevice("rbps=100"), PATH)
    with pytest.raises(ValueError, match="no line for a device goes to"):
        write(ForDevice("$(touch /tmp/x)"), "/sys/block/sda/queue/read_ahead_kb")


def test_a_file_written_twice_must_hold_the_last_value() -> None:
    (knob,) = check((Setting("/a", "1"), Setting("/a", "2")), {"/a": "2"}, "")
    assert knob.ok
    assert knob.asked == "2"


def test_a_file_that_was_not_read_did_not_take() -> None:
    (knob,) = check((Setting("/a", "1"),), {}, "")
    assert not knob.ok
