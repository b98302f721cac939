# SPDX-License-Identifier: GPL-2.0-only
"""Shares promised by weights, shares received, and why they differ; on files in a directory."""

import os
from pathlib import Path

import pytest

from isoblk.weights import tree, why
from isoblk.weights.disk import BYTES, Chosen, Price, find
from isoblk.weights.tree import Share, shares

DISK = Chosen("sda", "8:0", "isoblk", "io.isoblk.weight", 256, BYTES, "bytes")


def group(root: Path, path: str, weight: str = "default 100", **files: str) -> None:
    place = root / path
    place.mkdir(parents=True)
    (place / "io.isoblk.weight").write_text(f"{weight}\n")
    (place / "io.stat").write_text("")
    for name, text in files.items():
        (place / name.replace("_", ".")).write_text(f"{text}\n")


def count(root: Path, path: str, nbytes: int, wait_us: int = 0) -> None:
    (root / path / "io.stat").write_text(
        f"7:0 \n8:0 rbytes={nbytes} wbytes=0 rios=1 wios=0 dbytes=0 dios=0"
        f" isoblk.used={nbytes} isoblk.budget=-5 isoblk.wait_us={wait_us}\n"
    )


def measured(root: Path, later: dict[str, tuple[int, int]], disk: Chosen = DISK) -> Share:
    before = tree.read(root, disk)
    for path, (nbytes, wait_us) in later.items():
        count(root, path, nbytes, wait_us)
    return shares(before, tree.read(root, disk), 2.0, disk)


def rows(top: Share) -> dict[str, tuple[float | None, float]]:
    return {
        one.group.path: (one.promised and round(one.promised, 4), round(one.got, 4))
        for one in top.each()
    }


def test_weights_divide_level_by_level_among_those_that_send(tmp_path: Path) -> None:
    group(tmp_path, "a", "default 300")
    group(tmp_path, "a/x", "default 200")
    group(tmp_path, "a/y")
    group(tmp_path, "b")
    group(tmp_path, "idle", "default 10000")
    top = measured(
        tmp_path,
        {".": (1000, 0), "a": (750, 0), "a/x": (500, 0), "a/y": (250, 0), "b": (250, 0)},
    )
    assert rows(top) == {
        "/": (1.0, 1.0),
        "/a": (0.75, 0.75),
        "/a/x": (0.5, 0.5),
        "/a/y": (0.25, 0.25),
        "/b": (0.25, 0.25),
        "/idle": (None, 0.0),
    }


def test_a_weight_of_the_disks_own_counts_before_the_default(tmp_path: Path) -> None:
    group(tmp_path, "a", "default 100\n8:0 900")
    (found,) = tree.read(tmp_path, DISK).children
    assert found.weight == 900


def test_an_unmirrored_weight_is_reported(tmp_path: Path) -> None:
    group(tmp_path, "a", io_weight="default 400", io_bfq_weight="default 127")
    group(tmp_path, "b", "default 400", io_weight="default 400")
    top = measured(tmp_path, {})
    ((what, todo),) = why.of_disk(DISK, top)
    assert "/a: 400" in what and todo == "systemctl enable --now isoblk-weights"
    assert [one.group.set_by for one in top.children] == ["", "hand"]


def test_a_cgroup_that_does_not_wait_asks_for_no_more_and_others_get_the_rest(
    tmp_path: Path,
) -> None:
    group(tmp_path, "heavy", "default 900")
    group(tmp_path, "light")
    top = measured(tmp_path, {".": (1000, 0), "heavy": (500, 1000), "light": (500, 60_000_000)})
    assert [why.of_group(one, top) for one in top.children] == [
        "asks for no more",
        "other cgroups ask for less",
    ]


def test_io_charged_to_no_cgroup_is_reported(tmp_path: Path) -> None:
    group(tmp_path, "a")
    top = measured(tmp_path, {".": (1000, 0), "a": (600, 0)})
    ((what, _),) = why.of_disk(DISK, top)
    assert what.startswith("40% of the disk's I/O is charged to no cgroup")


def test_too_few_tags_are_reported_with_a_sufficient_number(tmp_path: Path) -> None:
    later = {".": (50, 0)}
    for number in range(50):
        group(tmp_path, f"g{number}")
        later[f"g{number}"] = (1, 0)
    few = Chosen("sda", "8:0", "isoblk", "io.isoblk.weight", 64, BYTES, "bytes")
    ((what, todo),) = why.of_disk(few, measured(tmp_path, later, few))
    assert "50 cgroups share 64 tags" in what and todo.endswith("--tags 128")


def test_cgroups_without_io_are_counted_where_their_weight_is(tmp_path: Path) -> None:
    group(tmp_path, "user.slice")
    (tmp_path / "user.slice/one/two").mkdir(parents=True)
    (found,) = tree.read(tmp_path, DISK).children
    assert (found.undelegated, found.children) == (2, [])


def test_a_disk_without_weights_is_told(tmp_path: Path) -> None:
    plain = Chosen("sda", "8:0", "mq-deadline", "", 64, BYTES, "bytes")
    ((what, todo),) = why.of_disk(plain, measured(tmp_path, {}, plain))
    assert "mq-deadline, which has no weights" in what
    assert todo == "isoblk disk use isoblk sda"


def test_the_time_of_the_device_is_divided_by_the_cost_of_requests(tmp_path: Path) -> None:
    group(tmp_path, "a")
    group(tmp_path, "b")
    prices = {"r": Price(0, 1), "w": Price(0, 3), "d": Price(0, 0)}
    disk = Chosen("sda", "8:0", "isoblk", "io.isoblk.weight", 64, prices, "time of the device")
    before = tree.read(tmp_path, disk)
    for path, stat in ((".", "rbytes=300 wbytes=100"), ("a", "rbytes=300"), ("b", "wbytes=100")):
        (tmp_path / path / "io.stat").write_text(f"8:0 {stat}\n")
    top = shares(before, tree.read(tmp_path, disk), 1.0, disk)
    assert [one.got for one in top.children] == [0.5, 0.5]


def test_a_cgroup_that_came_anew_under_the_same_name_counts_from_nothing(tmp_path: Path) -> None:
    group(tmp_path, "a")
    count(tmp_path, "a", 1_000_000)
    count(tmp_path, ".", 1_000_000)
    top = measured(tmp_path, {".": (1_000_500, 0), "a": (500, 0)})
    assert rows(top)["/a"] == (1.0, 1.0)


@pytest.mark.parametrize(
    ("scheduler", "qos", "file"),
    [
        ("none mq-deadline [isoblk]", "", "io.isoblk.weight"),
        ("[bfq] none", "", "io.bfq.weight"),
        ("[none]", "8:0 enable=1 ctrl=user\n", "io.weight"),
        ("[none]", "8:0 enable=0 ctrl=user\n", ""),
        ("[mq-deadline]", "", ""),
    ],
)
def test_which_file_counts_is_by_the_disks_scheduler(
    tmp_path: Path, scheduler: str, qos: str, file: str
) -> None:
    queue = tmp_path / "sys/block/sda/queue"
    queue.mkdir(parents=True)
    (queue / "scheduler").write_text(f"{scheduler}\n")
    (queue / "nr_requests").write_text("64\n")
    (queue.parent / "dev").write_text("8:0\n")
    (tmp_path / "io.cost.qos").write_text(qos)
    assert find("sda", tmp_path, tmp_path / "sys").file == file


@pytest.mark.parametrize(("user", "by"), [(0, "hand"), (1000, "io.weight")])
def test_equal_weights_count_as_mirrored_for_a_user_without_access_to_the_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int, by: str
) -> None:
    group(tmp_path, "a", "default 400", io_weight="default 400")
    group(tmp_path, "b", "default 400", io_weight="default 500")
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert [one.set_by for one in tree.read(tmp_path, DISK).children] == [by, "hand"]


def test_a_manual_weight_is_not_reported_as_unmirrored(tmp_path: Path) -> None:
    group(tmp_path, "a", "default 777", io_weight="default 400")
    now = tree.read(tmp_path, DISK)
    assert list(why.of_disk(DISK, tree.shares(now, now, 1.0, DISK))) == []


SIX = "rbps=4096000 rseqiops=1000 rrandiops=500 wbps=2048000 wseqiops=500 wrandiops=250"


@pytest.mark.parametrize(
    ("model", "divides", "prices"),
    [
        ("bytes", "bytes", BYTES),
        (None, "bytes", BYTES),
        ("auto rbps=1", "bytes", BYTES),
        *(
            (
                f"{word} {SIX}",
                "time of the device, each request as a random one",
                {
                    "r": Price(0.001, 1 / 4096000),
                    "w": Price(0.002, 1 / 2048000),
                    "d": Price(0.004, 0),
                },
            )
            for word in ("auto", "user")
        ),
    ],
)
def test_the_cost_of_a_request_follows_the_model_of_the_scheduler(
    tmp_path: Path, model: str | None, divides: str, prices: dict[str, Price]
) -> None:
    queue = tmp_path / "block/sda/queue"
    (queue / "iosched").mkdir(parents=True)
    for path, text in {
        "scheduler": "[isoblk] none",
        "nr_requests": "64",
        "../dev": "8:0",
        **({} if model is None else {"iosched/cost_model": model}),
    }.items():
        (queue / path).write_text(f"{text}\n")
    found = find("sda", tmp_path, tmp_path)
    assert found.divides == divides
    assert found.prices.keys() == prices.keys()
    for kind, price in prices.items():
        assert (found.prices[kind].request, found.prices[kind].byte) == pytest.approx(
            (price.request, price.byte)
        )


def test_no_cgroup_has_more_than_the_whole_disk(tmp_path: Path) -> None:
    group(tmp_path, "a")
    count(tmp_path, "", 0)
    # Requests that a issued during the reading and that have not completed yet.
    top = measured(tmp_path, {"a": (1080, 0), "": (1000, 0)})
    assert rows(top) == {"/": (1.0, 1.0), "/a": (1.0, 1.0)}
