# SPDX-License-Identifier: GPL-2.0-only
"""Runs on workers: returned files are bounded and checked, a worker of another isoblk is refused,
and failures are reported. Workers are threads here; tests/lab/test_cluster.py has real ones.
"""

import io
import re
import subprocess
import sys
import tarfile
import threading
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import distributed
import pytest

from isoblk.campaign.cluster import cluster, remote, roster
from isoblk.campaign.cluster.cluster import Cluster, keep
from isoblk.campaign.cluster.order import Done, Failed, Item, difference, make_order, software
from isoblk.campaign.cluster.parcel import pack, unpack
from isoblk.campaign.cluster.tasks import client_of
from isoblk.campaign.execute import Bench, DiskFullError, execute, here, make_job
from isoblk.campaign.study import EndedError, run_study
from isoblk.cli import on_cluster
from isoblk.errors import RunError, UserError
from isoblk.result.store import read_results
from isoblk.result.study import StudyRecord
from isoblk.study.expand import expand
from isoblk.study.model import Expansion, Study, TenantEntry
from tests.unit.fakes import FakeMachine, fake_bench
from tests.unit.specs import run_spec

# -- a run's directory as bytes --


def test_packed_files_are_unpacked_and_links_are_left_out(tmp_path: Path) -> None:
    source = tmp_path / "a"
    (source / "below").mkdir(parents=True)
    (source / "plan.sh").write_text("#!/bin/sh\n")
    (source / "plan.sh").chmod(0o755)
    (source / "below" / "bytes").write_bytes(bytes(range(256)))
    (source / "link").symlink_to("/etc/passwd")
    unpack(pack(source), tmp_path / "b")
    left = {path.relative_to(tmp_path / "b").as_posix() for path in (tmp_path / "b").rglob("*")}
    assert left == {"plan.sh", "below", "below/bytes"}
    assert (tmp_path / "b" / "below" / "bytes").read_bytes() == bytes(range(256))
    assert (tmp_path / "b" / "plan.sh").stat().st_mode & 0o777 == 0o755


def _archive(*members: tuple[str, bytes, int, str]) -> bytes:
    """Names, contents, and kinds of members with what they link to."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, data, kind, link in members:
            member = tarfile.TarInfo(name)
            member.size, member.linkname = len(data), link
            member.type = bytes([kind])
            archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


_FILE, _LINK, _HARD = (kind[0] for kind in (tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE))


@pytest.mark.parametrize(
    "packed",
    [
        _archive(("/tmp/absolute", b"x", _FILE, "")),
        _archive(("../above", b"x", _FILE, "")),
        _archive(("a/../../above", b"x", _FILE, "")),
        _archive(("link", b"", _LINK, "/etc")),
        _archive(("link", b"", _HARD, "/etc/passwd")),
        _archive(("same", b"x", _FILE, ""), ("same", b"y", _FILE, "")),
        _archive(("a", b"x", _FILE, ""), ("a/b", b"y", _FILE, "")),
        _archive(*((f"{i}", b"", _FILE, "") for i in range(5000))),
        _archive(("", b"x", _FILE, "")),
        b"no archive",
        _archive(("whole", bytes(1 << 16), _FILE, ""))[:40],
    ],
    ids=lambda packed: "",
)
def test_an_archive_that_is_not_a_run_is_not_written(tmp_path: Path, packed: bytes) -> None:
    with pytest.raises(RunError, match="invalid run from worker"):
        unpack(packed, tmp_path / "into" / "run")
    assert {path.name for path in tmp_path.iterdir()} == {"into"}
    assert {path.name for path in (tmp_path / "into").iterdir()} == {"run"}


def test_an_archive_that_would_fill_the_disk_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isoblk.campaign.cluster.parcel.LARGEST", 1 << 16)
    bomb = _archive(("zeros", bytes(1 << 17), _FILE, ""))
    assert len(bomb) < 1 << 10
    with pytest.raises(RunError, match="invalid run from worker"):
        unpack(bomb, tmp_path / "run")
    (tmp_path / "large").mkdir()
    (tmp_path / "large" / "zeros").write_bytes(bytes(1 << 17))
    with pytest.raises(RunError, match="of files, more than"):
        pack(tmp_path / "large")


def test_another_run_than_the_one_that_was_asked_for_is_not_kept(tmp_path: Path) -> None:
    bench = fake_bench(FakeMachine())
    jobs = [make_job(run_spec(seed=seed), "kernel-key", "modules-key") for seed in (1, 2)]
    packed = [pack(execute(job, bench, tmp_path / "there").dir) for job in jobs]
    results = tmp_path / "results"
    assert keep(jobs[0], Done(packed[0]), results).record.id == jobs[0].id
    with pytest.raises(RunError, match=f"a worker sent a result that is not of run {jobs[1].id}"):
        keep(jobs[1], Done(packed[0]), results)
    assert {path.name for path in (results / "runs").iterdir()} == {jobs[0].id}


def test_the_files_of_a_failed_run_are_returned(tmp_path: Path) -> None:
    job = make_job(run_spec(), "", "")
    (tmp_path / "left").mkdir()
    (tmp_path / "left" / "console.log").write_text("it failed")
    failed = Failed(cause="it failed", where="", next="", left=pack(tmp_path / "left"))
    with pytest.raises(RunError, match="it failed"):
        keep(job, failed, tmp_path / "results")
    (left,) = (tmp_path / "results" / "runs").iterdir()
    assert left.name == f"{job.id}.failed"
    assert (left / "console.log").read_text() == "it failed"


# -- workers that may execute runs --


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("isoblk", "0.0", "isoblk 0.1.0, not 0.0"),
        ("sources", "0", "another state of the sources of isoblk 0.1.0"),
        ("Python", "2.7", r"Python 3\.\d+, not 2.7"),
        ("distributed", "1", r"distributed \d+, not 1"),
        ("polars", "0", "polars .*, not 0"),
    ],
)
def test_other_software_is_named(name: str, value: str, told: str) -> None:
    assert difference(dict(software())) == ""
    assert re.fullmatch(told, difference({**software(), name: value}))
    assert difference({})


# -- a campaign --


def _expansion(*schedulers: str) -> Expansion:
    study = Study(
        name="s",
        device="fast",
        tenant=[TenantEntry(name="t1", weight=200), TenantEntry(name="t2", weight=100)],
        matrix={"scheduler": [*(schedulers or ("none", "kyber", "io.cost", "io.max"))]},
    )
    return expand(study)


def _bench(directory: Path) -> Bench:
    """Of files that are there, and hold anything."""
    bench = fake_bench(FakeMachine())
    kernel = replace(bench.kernel, dir=directory / "kernel")
    modules = {name: directory / f"{name}.ko" for name in bench.modules}
    for path in (kernel.linux, directory / "host.so", *modules.values()):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.name)
    return replace(bench, kernel=kernel, modules=modules)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A scheduler with two workers in this process."""
    with distributed.LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
    ) as made:
        yield str(made.scheduler_address)


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeMachine:
    """The machine of the workers."""
    fake = FakeMachine()
    monkeypatch.setenv("ISOBLK_CACHE", str(tmp_path / "cache of workers"))
    monkeypatch.setattr(remote, "_machine", lambda *_: fake)
    monkeypatch.setattr(remote, "try_out", lambda *_: None)
    monkeypatch.setattr(roster, "_GRACE_S", 0.0)
    return fake


_tokens = iter(range(1000))


@contextmanager
def _cluster(
    address: str, tmp_path: Path, expansion: Expansion, told: list[str]
) -> Iterator[Callable[[], StudyRecord]]:
    bench = _bench(tmp_path / "files")
    specs = [planned.spec for planned in expansion.runs]
    token = f"{next(_tokens):08x}"
    order = make_order(bench, tmp_path / "files" / "host.so", specs, token, 60)
    results = tmp_path / "results"
    one = Cluster(lambda: client_of(address), address, order, results, told.append)

    def run() -> StudyRecord:
        return run_study(
            expansion, "", bench, results, one.submit, lambda index, run: None, one.prepare
        )

    try:
        yield run
    finally:
        one.close()


def _run(
    address: str, tmp_path: Path, expansion: Expansion | None = None
) -> tuple[StudyRecord, list[str]]:
    told: list[str] = []
    with _cluster(address, tmp_path, expansion or _expansion(), told) as run:
        return run(), told


def test_a_campaign_is_as_one_of_this_process(
    address: str, tmp_path: Path, machine: FakeMachine
) -> None:
    record, told = _run(address, tmp_path)
    assert told == []
    bench = _bench(tmp_path / "files")
    with ThreadPoolExecutor(1) as executor:
        submit = here(executor, bench, tmp_path / "here")
        alone = run_study(
            _expansion(), "", bench, tmp_path / "here", submit, lambda index, run: None
        )
    assert record == alone
    assert all(run and run.record.status == "valid" for run in read_results(tmp_path / "here").runs)
    # Nothing is left to be made: the scheduler is not even asked.
    made = len(machine.plans)
    again, _ = _run("tcp://127.0.0.1:9", tmp_path)
    assert again == record
    assert len(machine.plans) == made


def test_files_that_a_worker_lacks_are_brought_to_it(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def only_kept(item: Any) -> Path | None:
        path = remote._place(item)
        return path if path.is_file() else None

    monkeypatch.setattr(remote, "_find", only_kept)
    record, told = _run(address, tmp_path)
    assert told == []
    assert not any(run.failure for run in record.runs)
    kept = {path.name for path in (tmp_path / "cache of workers").rglob("*") if path.is_file()}
    assert kept == {"linux", "host.so", "isoblk_vdisk.ko", "blkload.ko"}


def test_workers_of_one_process_may_keep_the_same_file_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISOBLK_CACHE", str(tmp_path))
    content = bytes(1 << 16)
    item = Item(sha256=sha256(content).hexdigest(), size=len(content), name="linux", here="/gone")
    start = threading.Barrier(8)

    def keep_it(_: int) -> None:
        start.wait()
        for _ in range(100):
            remote._keep(item, zlib.compress(content))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(keep_it, range(8)))
    (kept,) = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert kept.read_bytes() == content


def test_a_worker_that_loses_files_sent_to_it_is_refused(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_find", lambda item: None)
    with pytest.raises(RunError, match="does not keep the files that it is sent"):
        _run(address, tmp_path)


def test_a_run_that_fails_is_not_made_again(
    address: str, tmp_path: Path, machine: FakeMachine
) -> None:
    def fail(text: str) -> None:
        if "echo bfq" in text:
            raise RunError("the kernel failed", where="x")

    machine.before = fail
    record, _ = _run(address, tmp_path, _expansion("none", "bfq"))
    (failed,) = [run for run in record.runs if run.failure]
    assert failed.failure == "x: the kernel failed"
    assert len([text for text in machine.plans if "echo bfq" in text]) == 1
    assert (tmp_path / "results" / "runs" / f"{failed.id}.failed" / "plan.sh").exists()


def test_a_worker_without_space_is_told_of_once_and_gets_no_more(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full: set[Path] = set()

    def one_is_full(job: Any, bench: Bench, results: Path) -> Any:
        if not full or results in full:
            full.add(results)
            raise DiskFullError("the disk is full")
        return execute(job, bench, results)

    monkeypatch.setattr(remote, "execute", one_is_full)
    record, told = _run(address, tmp_path)
    assert not any(run.failure for run in record.runs)
    (line,) = told
    assert "its disk is full: " in line


def test_when_no_worker_has_space_the_study_ends(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(job: Any, bench: Bench, results: Path) -> Any:
        raise DiskFullError("the disk is full")

    monkeypatch.setattr(remote, "execute", full)
    with pytest.raises(EndedError, match=r"no worker can make runs: .* its disk is full"):
        _run(address, tmp_path)
    assert not any(run.failure for run in read_results(tmp_path / "results").record.runs)


def test_workers_of_another_isoblk_make_no_run(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: FakeMachine
) -> None:
    monkeypatch.setattr(roster, "software", lambda: {**software(), "isoblk": "9"})
    with pytest.raises(UserError, match=r"no worker can make runs: \S+ has isoblk 0.1.0, not 9"):
        _run(address, tmp_path)
    assert machine.plans == []


def test_a_scheduler_that_does_not_come_back_ends_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: FakeMachine
) -> None:
    monkeypatch.setattr(cluster, "_LOST_S", 0.0)
    monkeypatch.setattr("isoblk.campaign.cluster.tasks._CONNECT_S", 1)
    made: Any = distributed.LocalCluster  # of partial types
    own = made(n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0")
    count = 0

    def close(text: str) -> None:
        nonlocal count
        count += 1
        if count == 3:
            # In another thread: it waits for what this one does.
            threading.Thread(target=own.close, daemon=True).start()

    machine.before = close
    try:
        with pytest.raises(EndedError, match=r"is lost for .*; finished runs are kept"):
            _run(own.scheduler_address, tmp_path)
    finally:
        own.close()


# -- the command --


@pytest.mark.parametrize(
    ("on", "jobs", "machine_name", "told"),
    [
        ("somewhere", 1, "uml", "not an address of a Dask scheduler"),
        ("http://somewhere:80", 1, "uml", "not an address of a Dask scheduler"),
        ("tcp://somewhere:8786", 2, "uml", "remove --jobs"),
        ("local", 2, "qemu", "only make runs of the uml machine"),
        ("local", 2, "icount", "only make runs of the uml machine"),
        ("local", 1, "host", "only make runs of the uml machine"),
    ],
)
def test_options_that_conflict_with_a_cluster_are_refused(
    on: str, jobs: int, machine_name: str, told: str
) -> None:
    with pytest.raises(UserError, match=told):
        on_cluster.check(on, jobs, machine_name)


def test_without_dask_the_extra_is_named(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text('name = "s"\ndevice = "fast"\n[[tenant]]\nname = "t"\n')
    code = (
        "import sys; sys.modules['distributed'] = sys.modules['dask'] = None\n"
        "sys.argv = ['isoblk', 'run', 's.toml', '--on', 'local']\n"
        "import isoblk.__main__; isoblk.__main__.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 2
    assert done.stderr == "isoblk: --on needs Dask; run: pip install 'isoblk[cluster]'\n"
    assert [path.name for path in tmp_path.iterdir()] == ["s.toml"]


def test_dask_is_loaded_only_when_it_is_asked_for() -> None:
    code = "import sys, isoblk.cli.run; sys.exit('distributed' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
