# SPDX-License-Identifier: GPL-2.0-only
"""ycsb: its output is read to the last number; failures, also of a download, are reported."""

import hashlib
import subprocess
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoblk.errors import RunError, UserError
from isoblk.programs import ycsb_jars
from isoblk.programs.base import Task
from isoblk.programs.ycsb import Ycsb, parse
from isoblk.run.options import OptionError
from isoblk.run.shell import render
from isoblk.run.spec import Options
from tests.unit.specs import SECOND, run_spec, tenant

# As YCSB 0.17 prints it.
OUTPUT = """\
YCSB Client 0.17.0

Loading workload...
Starting test.
Maximum execution time specified as: 10 secs
DBWrapper: report latency for each error is false and specific error codes to track for latency are: []
[OVERALL], RunTime(ms), 10000
[OVERALL], Throughput(ops/sec), 3472.8
[TOTAL_GCS_Copy], Count, 4
[TOTAL_GC_TIME_%_Copy], Time(%), 0.0
[READ], Operations, 34728
[READ], AverageLatency(us), 281.6097097442985
[READ], MinLatency(us), 0
[READ], MaxLatency(us), 299007
[READ], 50thPercentileLatency(us), 355
[READ], 95thPercentileLatency(us), 357
[READ], 99thPercentileLatency(us), 358
[READ], 99.9PercentileLatency(us), 359
[READ], 99.99PercentileLatency(us), 140287
[READ], Return=OK, 34728
[CLEANUP], Operations, 1
[CLEANUP], AverageLatency(us), 2.74333696E8
[CLEANUP], MinLatency(us), 1
[CLEANUP], MaxLatency(us), 1
[CLEANUP], 50thPercentileLatency(us), 1
"""  # noqa: E501
OPTIONS: Options = {"workload": "a", "recordcount": 1000}


def task(options: Options, **load: Any) -> Task:
    one = tenant("db", program="ycsb", options=options, **load)
    return Task(one, run_spec(tenants=(one,), runtime_ns=int(2.5 * SECOND)), "/r")


def test_every_figure_of_an_operation_is_read_in_ns() -> None:
    figures = {figure.name: (figure.value, figure.unit) for figure in parse(OUTPUT)}
    assert figures == {
        "throughput": (3472.8, "ops/s"),
        "READ.ops": (34728, "ops"),
        "READ.mean": (pytest.approx(281_609.7097442985), "ns"),
        "READ.p50": (355_000, "ns"),
        "READ.p95": (357_000, "ns"),
        "READ.p99": (358_000, "ns"),
        "READ.p99_9": (359_000, "ns"),
        "READ.p99_99": (140_287_000, "ns"),
        "READ.max": (299_007_000, "ns"),
    }


@given(
    st.dictionaries(
        st.sampled_from(["READ", "UPDATE", "INSERT", "SCAN", "READ-MODIFY-WRITE"]),
        st.lists(st.integers(0, 1 << 40), min_size=8, max_size=8),
        min_size=1,
    )
)
def test_the_printed_figures_of_any_operations_are_read_back(said: dict[str, list[int]]) -> None:
    percentiles = ("50th", "95th", "99th", "99.9", "99.99")
    keys = [f"{one}PercentileLatency(us)" for one in percentiles]
    keys = ["Operations", "AverageLatency(us)", *keys, "MaxLatency(us)"]
    names = ("ops", "mean", "p50", "p95", "p99", "p99_9", "p99_99", "max")
    text = "[OVERALL], Throughput(ops/sec), 5.0\n"
    for operation, values in said.items():
        for key, value in zip(keys, values, strict=True):
            text += f"[{operation}], {key}, {value}\n"
        text += f"[{operation}], Return=OK, {values[0]}\n"
    figures = {figure.name: figure.value for figure in parse(text)}
    for operation, values in said.items():
        for name, value in zip(names, values, strict=True):
            factor = 1 if name == "ops" else 1000
            assert figures.pop(f"{operation}.{name}") == value * factor
    assert figures == {"throughput": 5.0}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no operation completed"),
        # How YCSB ends, with status 0, when the database cannot be opened.
        (
            "site.ycsb.DBException: cannot open the database: While renaming\n"
            "\tat isoblk.RocksDb.init(RocksDb.java:71)\n"
            "[OVERALL], RunTime(ms), 0\n[OVERALL], Throughput(ops/sec), NaN\n",
            "no operation completed: site.ycsb.DBException: cannot open the database: While",
        ),
        (OUTPUT.replace("[READ], Return=OK, 34728", ""), "no operation completed"),
        (OUTPUT.replace("[READ], Operations, 34728", ""), "no operation completed"),
        (
            "RocksDB: read: No space left\n" + OUTPUT + "[READ], Return=ERROR, 7\n",
            "7 of READ ended with ERROR: RocksDB: read: No space left",
        ),
        (OUTPUT + "[READ], Return=NOT_FOUND, 1\n", "1 of READ ended with NOT_FOUND"),
        (OUTPUT.replace("[READ], Max", "[READ], Min"), r"READ without MaxLatency\(us\)"),
        (OUTPUT.replace("[OVERALL], Thr", "[OVERALL], thr"), "no operation completed"),
    ],
)
def test_a_client_that_failed_is_not_believed(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse(text)


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({}, "workload"),
        ({"workload": "g"}, "workload"),
        (OPTIONS | {"threadcount": 2}, "threadcount"),
        (OPTIONS | {"recordcount": 0}, "recordcount"),
        (OPTIONS | {"recordcount": 1 << 31}, "recordcount"),
        (OPTIONS | {"operationcount": -1}, "operationcount"),
        (OPTIONS | {"threads": 1001}, "threads"),
        (OPTIONS | {"cache": "much"}, "cache"),
        (OPTIONS | {"buffer": 0}, "buffer"),
        (OPTIONS | {"requestdistribution": "even"}, "requestdistribution"),
    ],
)
def test_a_wrong_option_is_named(options: Options, option: str) -> None:
    with pytest.raises(OptionError) as caught:
        Ycsb().check(options)
    assert option in str(caught.value)


def test_only_operations_of_the_workload_are_asked_for() -> None:
    # YCSB's defaults for omitted proportions are 95 % reads and 5 % updates.
    words = render([Ycsb().command(task({"workload": "all-update", "recordcount": 9}))]).split()
    proportions = {word for word in words if "proportion=" in word and not word.endswith("=0")}
    assert proportions == {"updateproportion=1"}
    assert "readproportion=0" in words


def test_it_ends_with_the_run_or_with_its_work() -> None:
    timed, counted = task(OPTIONS), task(OPTIONS | {"operationcount": 77})
    assert Ycsb().timed(timed.options)
    assert "maxexecutiontime=2 " in render([Ycsb().command(timed)]) + " "
    assert not Ycsb().timed(counted.options)
    command = render([Ycsb().command(counted)])
    assert "operationcount=77" in command
    assert "maxexecutiontime" not in command


def test_the_load_must_have_made_every_record() -> None:
    _, *check = render(Ycsb().prepare(task(OPTIONS))).splitlines()
    assert "Return=OK, 1000$" in " ".join(check)


class Shop:
    """Stands for Maven and javac, and has jars to give."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        self.jars = {"a-1.jar": _zip(tmp_path, "a"), "b-2.jar": _zip(tmp_path, "b")}
        self.complaint = ""
        self.source = tmp_path / "java"
        (self.source / "isoblk").mkdir(parents=True)
        (self.source / "pom.xml").write_text("<project/>")
        (self.source / "isoblk" / "RocksDb.java").write_text("class RocksDb {}")
        sums = "".join(
            f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in self.jars.items()
        )
        (self.source / "SHA256SUMS").write_text(sums)
        self.calls: list[str] = []
        monkeypatch.setenv("ISOBLK_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(ycsb_jars, "java_dir", lambda: self.source)
        monkeypatch.setattr(ycsb_jars, "_run", self._run)
        monkeypatch.setattr("shutil.which", lambda name, path=None: f"/bin/{name}")

    def _run(self, *command: str) -> None:
        self.calls.append(command[0])
        if self.complaint:
            raise subprocess.CalledProcessError(1, command, output=self.complaint)
        if command[0] == "mvn":
            (option,) = (word for word in command if word.startswith("-DoutputDirectory="))
            directory = Path(option.partition("=")[2])
            directory.mkdir()
            for name, data in self.jars.items():
                (directory / name).write_bytes(data)
        else:
            classes = Path(command[command.index("-d") + 1])
            (classes / "isoblk").mkdir(parents=True)
            (classes / "isoblk" / "RocksDb.class").write_bytes(b"class")


def _zip(tmp_path: Path, member: str) -> bytes:
    path = tmp_path / f"{member}.zip"
    with ZipFile(path, "w") as archive:
        archive.writestr(member, member)
        if member == "b":
            archive.writestr("librocksdbjni-linux64.so", "ours")
            archive.writestr("librocksdbjni-linux-s390x.so", "theirs")
    return path.read_bytes()


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shop:
    return Shop(monkeypatch, tmp_path)


def test_jars_are_fetched_once_and_the_library_lies_beside_them(shop: Shop) -> None:
    files = ycsb_jars.files()
    assert set(files) == set(ycsb_jars.names())
    assert files["a-1.jar"].read_bytes() == shop.jars["a-1.jar"]
    assert files["librocksdbjni-linux64.so"].read_text() == "ours"
    with ZipFile(files["b-2.jar"]) as archive:
        assert archive.namelist() == ["b"]
    assert ycsb_jars.files() == files
    assert shop.calls == ["mvn", "javac"]


def test_another_source_is_another_jar(shop: Shop) -> None:
    before = set(ycsb_jars.files())
    (shop.source / "isoblk" / "RocksDb.java").write_text("class RocksDb { int x; }")
    assert len(before & set(ycsb_jars.files())) == len(before) - 1


@pytest.mark.parametrize("spoil", ["changed", "missing", "more"])
def test_a_jar_that_differs_from_the_pinned_one_is_not_used(
    shop: Shop, spoil: str, tmp_path: Path
) -> None:
    match spoil:
        case "changed":
            shop.jars["a-1.jar"] += b"!"
        case "missing":
            del shop.jars["a-1.jar"]
        case "more":
            shop.jars["c-1.jar"] = b"new"
    with pytest.raises(RunError, match=r"Maven downloaded [ac]-1\.jar"):
        ycsb_jars.files()
    assert not list((tmp_path / "cache" / "ycsb").iterdir())


def test_without_network_maven_s_words_are_told(shop: Shop) -> None:
    shop.complaint = "[ERROR] Could not transfer artifact x: Unknown host\n[ERROR] at\n"
    with pytest.raises(RunError, match="Could not transfer artifact x: Unknown host; check that"):
        ycsb_jars.files()


def test_a_missing_program_is_named_with_its_package(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda name, path=None: None)
    with pytest.raises(UserError, match="java, javac, mvn; run: apt install default-jdk-headless"):
        ycsb_jars.files()
    assert not shop.calls
