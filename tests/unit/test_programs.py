# SPDX-License-Identifier: GPL-2.0-only
"""Programs as workloads: their options, their commands, their output, and the samples.

outputs/ holds real output of the programs.
"""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoblk.campaign.sampled import parse_samples, sampled_output
from isoblk.errors import RunError, UserError
from isoblk.plan.plan import make_plan
from isoblk.programs.base import Task
from isoblk.programs.registry import PROGRAMS, program_of, read_report
from isoblk.run.options import OptionError
from isoblk.run.record import IoStat
from isoblk.run.spec import Filesystem, HostDevice, Installed, Options, RunSpec, VdiskDevice
from isoblk.run.tier import HOST, QEMU, UML, Tier
from isoblk.study.expand import expand
from isoblk.study.load import parse_study
from tests.unit.specs import MS, SECOND, run_spec, tenant

OUTPUTS = Path(__file__).parent / "outputs"
MIB = 1 << 20
# The required options of each program.
OPTIONS: dict[str, Options] = {
    "dd": {"count": 32},
    "sysbench": {"mode": "rndrw", "size": "16m"},
    "iozone": {"record": "64k", "size": "16m"},
    "db_bench": {"benchmarks": "readrandom", "num": 1000},
}


def _spec(program: str, options: Options | None = None, found: str = "") -> RunSpec:
    installed = (Installed(name=found, sha256="0"),) if found else ()
    load = tenant(
        "t1",
        program=program,
        options=OPTIONS[program] | (options or {}),
        installed=installed,
    )
    return run_spec(
        device=VdiskDevice(store="memory"),
        filesystem=Filesystem(type="ext4", offset=0, size=64 * MIB, mkfs=("-O", "^has_journal")),
        tenants=(load, tenant("web", rw="randread")),
    )


def _task(program: str, options: Options | None = None, found: str = "") -> Task:
    spec = _spec(program, options, found)
    return Task(spec.tenants[0], spec, "/run/isoblk")


def _figures(program: str, file: str, found: str = "", **options: object) -> dict[str, float]:
    task = _task(program, options, found)  # type: ignore[arg-type]
    figures = PROGRAMS[program].parse((OUTPUTS / file).read_text(), task)
    return {figure.name: figure.value for figure in figures}


# ---- what they print -----------------------------------------------------------------


def test_the_output_of_dd_is_parsed() -> None:
    figures = _figures("dd", "dd.txt")
    assert figures["throughput"] == pytest.approx(33554432 / figures["time"] * 1e9)


def test_the_output_of_sysbench_is_parsed() -> None:
    figures = _figures("sysbench", "sysbench.txt")
    assert figures["read.rate"] == 48408.27
    assert figures["read.throughput"] == pytest.approx(189.09 * MIB, rel=1e-3)
    assert figures["events"] == 96902
    assert figures["latency.mean"] == 80_000
    assert figures["latency.p99"] == 590_000


def test_the_output_of_iozone_is_parsed() -> None:
    figures = _figures("iozone", "iozone.txt")
    assert list(figures) == [
        f"{name}.throughput"
        for name in (
            *("write", "rewrite", "read", "reread", "random_read", "random_write", "mixed"),
        )
    ]
    assert figures["write.throughput"] == pytest.approx(5787.32 * 1024)
    assert figures["rewrite.throughput"] == pytest.approx(275683.33 * 1024)


def test_the_output_of_fio_in_place_of_iozone_is_parsed() -> None:
    figures = _figures("iozone", "iozone-by-fio.json", "fio", tests=["mixed"])
    # Two processes, one request of 64 KiB at a time, some 21 us each.
    assert figures == {"mixed.throughput": pytest.approx(2 * 65536 / 21e-6, rel=0.02)}


def test_the_output_of_db_bench_is_parsed() -> None:
    figures = _figures("db_bench", "db_bench.txt")
    assert figures["fillrandom.rate"] == 64926
    assert figures["fillrandom.throughput"] == pytest.approx(7.2 * MIB)
    assert figures["fillrandom.write.latency.p99"] == 95_220
    assert figures["readrandom.read.latency.p99.9"] == 1_600_000
    assert figures["readwhilewriting.read.latency.max"] == 7_552_000
    assert figures["readwhilewriting.operations"] == 4000


@pytest.mark.parametrize("program", OPTIONS)
@pytest.mark.parametrize("text", ["", "\n", "Segmentation fault\n", "{\n}", '{\n"jobs": [1]}'])
def test_text_that_is_not_the_output_of_a_program_is_refused(program: str, text: str) -> None:
    for found in ("", "fio"):
        with pytest.raises(ValueError, match=r"."):
            PROGRAMS[program].parse(text, _task(program, found=found))


@given(data=st.data())
@pytest.mark.parametrize("program", OPTIONS)
def test_a_damaged_output_gives_figures_or_is_refused(program: str, data: st.DataObject) -> None:
    by_fio = program == "iozone" and data.draw(st.booleans())
    text = (OUTPUTS / ("iozone-by-fio.json" if by_fio else f"{program}.txt")).read_text()
    begin, end = (data.draw(st.integers(0, len(text))) for _ in range(2))
    junk = data.draw(st.text(max_size=20))
    damaged = text[:begin] + junk + text[end:]
    try:
        figures = PROGRAMS[program].parse(damaged, _task(program, found="fio" if by_fio else ""))
    except ValueError:
        return
    assert figures
    names = [figure.name for figure in figures]
    assert all(name and "\n" not in name for name in names)


# ---- their options -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "options", "why"),
    [
        ("dd", {"count": 0}, "count: 0 blocks"),
        ("dd", {"bs": "4q"}, "bs: '4q' is not a size"),
        ("dd", {"direction": "read", "conv": "fsync"}, "conv: not allowed when a file is read"),
        ("dd", {"cuont": 1}, "cuont: unknown option"),
        ("dd", {"count": "many"}, "count: expected a whole number, got text"),
        ("sysbench", {"mode": "rnd"}, "mode: unknown value 'rnd'"),
        ("sysbench", {"num": 4096}, "size: files of less than one block"),
        ("sysbench", {"threads": 0}, "threads: 0"),
        ("iozone", {"record": "6k"}, "record: '6k'"),
        ("iozone", {"record": "32m"}, "record: '32m'"),
        ("iozone", {"size": "100k"}, "size: not a whole number of records"),
        ("iozone", {"tests": []}, "tests: none"),
        ("db_bench", {"benchmarks": ""}, "benchmarks: missing"),
        ("db_bench", {"db": "/tmp/x"}, "db: is set by the run itself"),
        (
            "db_bench",
            {"num": "1; rm -rf /"},
            "num: takes a number, true or false here, not '1; rm -rf",
        ),
        ("db_bench", {"--num": 1}, "--num: is not the name of an option"),
    ],
)
def test_an_option_that_cannot_be_is_named(program: str, options: Options, why: str) -> None:
    with pytest.raises(OptionError) as caught:
        PROGRAMS[program].check(OPTIONS[program] | options)
    assert str(caught.value).startswith(why)


@pytest.mark.parametrize("program", OPTIONS)
def test_the_least_options_will_do(program: str) -> None:
    PROGRAMS[program].check(OPTIONS[program])


STUDY = """
name = "s"
device = { preset = "fast", store = "memory" }
[filesystem]
size = "64m"
[workload]
offset = "64m"
workload = "dd"
options = { bs = "64k", count = 1 }
[[tenant]]
name = "a.b"
options = { count = 7 }
[[tenant]]
name = "web"
workload = "blkload"
rw = "randwrite"
"""


def _wrong(old: str, new: str) -> str:
    assert old in STUDY
    with pytest.raises(UserError) as caught:
        parse_study(STUDY.replace(old, new), "s.toml")
    return str(caught.value)


def test_a_tenants_options_stand_over_the_shared_ones() -> None:
    (run, *_) = (
        run for run in expand(parse_study(STUDY, "s.toml")).runs if len(run.spec.tenants) > 1
    )
    dd, web = run.spec.tenants
    assert dd.workload.options == {"bs": "64k", "count": 7}
    # Of fields that a program does not have, nothing; of options that a generator does not, too.
    assert dd.workload.offset == 0
    assert web.workload.options == {}


def test_the_matrix_varies_an_option_and_the_file_system() -> None:
    matrix = """[matrix]
"tenant.a.b.options.count" = [1, 2]
"workload.options.bs" = ["4k", "8k"]
"filesystem.type" = ["ext4"]
"""
    runs = expand(parse_study(STUDY + matrix, "s.toml")).runs
    seen = {
        tuple(run.spec.tenants[0].workload.options.items())
        for run in runs
        if run.spec.kind == "share"
    }
    assert seen == {(("bs", bs), ("count", n)) for bs in ("4k", "8k") for n in (1, 2)}


def test_alone_a_generator_has_no_file_system() -> None:
    alone = [
        run.spec for run in expand(parse_study(STUDY, "s.toml")).runs if run.spec.kind == "alone"
    ]
    assert [bool(spec.filesystem) for spec in alone] == [
        bool(program_of(spec.tenants[0].workload)) for spec in alone
    ]
    assert alone[0].point["alone"] == "dd bs=64k count=7"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("count = 7", "count = 0", "s.toml:12: tenant[0].options.count: 0 blocks"),
        ("count = 7", "n = 0", "tenant[0].options.n: unknown option; allowed: bs, conv, count"),
        ('bs = "64k"', 'bs = "x"', "s.toml:9: workload.options.bs: 'x' is not a size"),
        ('store = "memory"', 'store = "none"', "s.toml:4: filesystem: this vdisk does not store"),
        ('size = "64m"', 'size = "8m"', "s.toml:5: filesystem.size: 8m is too small for ext4"),
        ('size = "64m"', 'size = "1000"', "filesystem.size: 1000 is not a multiple of 4096"),
        ('size = "64m"', 'size = "9g"', "filesystem.size: goes beyond the device"),
        ('size = "64m"', 'type = "zfs"', "filesystem.type: unknown value 'zfs'"),
        ('[filesystem]\nsize = "64m"\n', "", "dd works on files; add [filesystem]"),
        ('offset = "64m"', "offset = 0", "'web' writes to where the file system is"),
        (
            "options = { count = 7 }",
            'rw = "read"',
            "tenant[0].rw: does not go with workload = 'dd'",
        ),
        ('rw = "randwrite"', "options = {}", "tenant[1].options: does not go with"),
        ("options = { count = 7 }", "memory = 5000", "memory: 5000 is not whole pages"),
        (
            "[workload]",
            '[run]\ncgroup = "v1"\n[workload]\nmemory = "4m"',
            "memory: needs cgroup v2",
        ),
    ],
)
def test_a_study_that_cannot_be_is_refused(old: str, new: str, why: str) -> None:
    assert why in _wrong(old, new)


def test_a_tenant_that_only_reads_may_read_the_bytes_of_the_file_system() -> None:
    text = STUDY.replace('offset = "64m"', "offset = 0").replace("randwrite", "randread")
    parse_study(text, "s.toml")


# ---- the plan ------------------------------------------------------------------------


@pytest.mark.parametrize("tier", [UML, QEMU, HOST], ids=lambda tier: tier.name)
@pytest.mark.parametrize("found", ["", "fio"])
@pytest.mark.parametrize("program", OPTIONS)
@pytest.mark.parametrize("cgroup", ["v1", "v2"])
def test_the_plan_is_valid_shell(tier: Tier, found: str, program: str, cgroup: str) -> None:
    spec = _spec(program, found=found)
    tenants, device = spec.tenants, spec.device
    if tier is HOST:
        tenants = (spec.tenants[0], tenant("web", program="fio"))
        device = HostDevice(name="sdb", what="", size=1 << 30)
    fields = {"cgroup": cgroup, "tenants": tenants, "device": device}
    text = make_plan(run_spec("none", filesystem=spec.filesystem, **fields), tier).text
    subprocess.run(["sh", "-n"], input=text.encode(), check=True)
    order = [
        "addpart ",
        "mkfs.ext4 ",
        "mount -t ext4",
        "umount ",
        "## the scheduler",
        "cgroup.procs",
        "exec 3> ",
        "> stop",
        "charged",
        "umount ",
        "delpart ",
    ]
    at = 0
    for words in order:
        at = text.index(words, at)


# ---- samples ---------------------------------------------------------------------------


def _charge(ios: int) -> IoStat:
    return IoStat(rbytes=4096 * ios, wbytes=0, rios=ios, wios=0)


def test_samples_become_windows_and_the_measured_time() -> None:
    # 100 requests each 100 ms from the start; sampled 1 ms late, the program ends at 450 ms.
    spec = run_spec(warmup_ns=100 * MS, runtime_ns=400 * MS, window_ms=100)
    times = [0, *(n * 100 * MS + MS for n in range(1, 7))]
    counts = [min(t, 450 * MS) // MS for t in times]
    output = sampled_output(times, [_charge(n) for n in counts], 450 * MS, spec)
    assert output.measured_ns == (100 * MS, 450 * MS)
    assert output.ops["read"].ios == 450
    assert output.ops["read"].meas_ios == 350
    assert output.windows == {
        ("read", t): (n, 4096 * n)
        for t, n in ((0, 100), (100, 100), (200, 100), (300, 100), (400, 50))
    }


@given(
    steps=st.lists(st.tuples(st.integers(1, 10**9), st.integers(0, 10**6)), min_size=1),
    end_ns=st.integers(0, 3 * 10**9),
    warmup=st.integers(0, 10),
)
def test_windows_add_up_to_the_charge(
    steps: list[tuple[int, int]], end_ns: int, warmup: int
) -> None:
    spec = run_spec(warmup_ns=warmup * 100 * MS, runtime_ns=SECOND, window_ms=100)
    times, counts = [], []
    t = n = 0
    for dt, dn in steps:
        t, n = t + dt, n + dn
        times.append(t)
        counts.append(n)
    output = sampled_output(times, [_charge(count) for count in counts], end_ns, spec)
    if not n:
        assert output.ops == {}
        return
    totals = output.ops["read"]
    assert totals.ios == n
    assert 0 <= totals.meas_ios <= n
    begin, end = output.measured_ns
    assert 0 <= begin <= end <= spec.warmup_ns + SECOND
    in_windows = sum(ios for ios, _ in output.windows.values())
    assert in_windows <= n
    if max(t, end_ns) < spec.warmup_ns + SECOND:
        assert in_windows == n


def test_samples_are_read_by_the_line() -> None:
    stat = "/cg/t1/io.stat:7:0 rbytes="
    text = f"1000\n{stat}1 wbytes=0 rios=1 wios=0\n2000\n3000\n{stat}9\n"
    samples = parse_samples(text, 500, ["/cg/t1/io.stat", "/cg/t2/io.stat"])
    assert list(samples.times_ns) == [500, 1500, 2500]
    assert [one.rbytes for one in samples.charges("/cg/t1", "7:0")] == [1, 0, 9]
    with pytest.raises(RunError, match="samples:1: not a time"):
        parse_samples("/cg/t1/io.stat:7:0\n", 0, ["/cg/t1/io.stat"])


def test_completed_requests_are_read_by_cgroup() -> None:
    file = "/sys/kernel/debug/blkload/completed"
    figures = "wbytes=2 rios=3 wios=4 dbytes=5 dios=6"
    text = (
        f"1000\n{file}:/a/t1 rbytes=1 {figures}\n{file}:/ rbytes=7 {figures}\n"
        f"2000\n{file}:/a/t1 rbytes=9 {figures}\n3000\n{file}:lost 1\n"
    )
    samples = parse_samples(text, 0, [file])
    with pytest.raises(RunError, match="no memory to count"):
        samples.completed("/a/t1", file)
    samples = parse_samples(text.partition("3000")[0], 0, [file])
    assert [one.rbytes for one in samples.completed("/a/t1", file)] == [1, 9]
    assert samples.completed("/t1", file)[0].wbytes == 0
    (first, _) = samples.completed("/a/t1", file)
    assert first == IoStat(rbytes=1, wbytes=2, rios=3, wios=4, dbytes=5, dios=6)


# ---- the verdict ---------------------------------------------------------------------


def _left(directory: Path, output: str, status: int = 0, end_ns: int = 2 * SECOND) -> None:
    (directory / "t1.out").write_text(output)
    (directory / "t1.end").write_text(f"{status} {end_ns}\n")
    (directory / "start").write_text(f"{SECOND}\n")


def test_a_report_is_kept_with_the_program_that_ran(tmp_path: Path) -> None:
    _left(tmp_path, (OUTPUTS / "dd.txt").read_text())
    spec = _spec("dd", found="dd")
    said = read_report(tmp_path, spec.tenants[0], spec)
    assert said.trouble == ""
    assert (said.report.used, said.report.end_ns) == (["dd"], SECOND)


@pytest.mark.parametrize(
    ("output", "status", "end_ns", "why"),
    [
        ("Usage\nFATAL: no such file\nsee --help\n", 1, 0, "status 1: FATAL: no such file"),
        ("", 137, 0, "status 137: it printed nothing"),
        ("hello\n", 0, 0, "not what dd prints: no summary line of dd"),
        (None, 0, 4 * SECOND, "dd ended 2 s after the others: give it less to do"),
    ],
)
def test_a_report_that_is_not_believed_has_a_reason(
    tmp_path: Path, output: str | None, status: int, end_ns: int, why: str
) -> None:
    _left(tmp_path, (OUTPUTS / "dd.txt").read_text() if output is None else output, status, end_ns)
    spec = _spec("dd")
    assert why in read_report(tmp_path, spec.tenants[0], spec).trouble


def test_alone_a_program_may_take_its_time(tmp_path: Path) -> None:
    _left(tmp_path, (OUTPUTS / "dd.txt").read_text(), 0, 9 * SECOND)
    load = tenant("t1", program="dd", options=OPTIONS["dd"])
    assert read_report(tmp_path, load, run_spec(tenants=(load,))).trouble == ""


def test_a_program_that_left_nothing_is_an_error(tmp_path: Path) -> None:
    spec = _spec("dd")
    with pytest.raises(RunError, match=r"the guest left no t1\.out"):
        read_report(tmp_path, spec.tenants[0], spec)
