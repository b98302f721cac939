# SPDX-License-Identifier: GPL-2.0-only
"""A fio job file becomes a study that means the same; options that cannot be kept are named."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoblk.errors import UserError
from isoblk.run.spec import RunSpec, VdiskDevice
from isoblk.study.expand import expand
from isoblk.study.fiojob import from_fio
from isoblk.study.load import parse_study
from isoblk.study.presets import load_device

P0_JOB = """\
; the weights experiment
[global]
bs=4k
ioengine=libaio
iodepth=32
direct=1
time_based
runtime=10800
size=1G
cgroup_nodelete=1
rw=randread

[task1]
cgroup=task1
cgroup_weight=100
[task2]
cgroup=task2
cgroup_weight=200
"""


def imported(tmp_path: Path, job: str) -> tuple[RunSpec, list[str], str]:
    path = tmp_path / "job.fio"
    path.write_text(job)
    text, warnings = from_fio(path)
    study = parse_study(text, "job.toml")
    spec = next(r.spec for r in expand(study).runs if r.spec.kind == "share")
    return spec, warnings, text


def wrong(tmp_path: Path, job: str) -> str:
    path = tmp_path / "job.fio"
    path.write_text(job)
    with pytest.raises(UserError) as caught:
        from_fio(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_papers_job_is_imported_without_a_word(tmp_path: Path) -> None:
    spec, warnings, _ = imported(tmp_path, P0_JOB)
    assert warnings == []
    assert spec.runtime_ns == 10_800 * 10**9
    assert [(t.name, t.cgroup, t.weight) for t in spec.tenants] == [
        ("task1", "task1", 100),
        ("task2", "task2", 200),
    ]
    for tenant in spec.tenants:
        load = tenant.workload
        assert (load.rw, load.bs, load.iodepth, load.size) == ("randread", 4096, 32, 1 << 30)


def test_every_option_that_has_an_equal_is_kept(tmp_path: Path) -> None:
    job = """\
[all]
readwrite=randrw
rwmixwrite=30
blocksize_range=4k-64k
iodepth=8
numjobs=2
rate_process=poisson
thinktime=100
thinktime_blocks=4
startdelay=500ms
ramp_time=1
runtime=2m
time_based=1
number_ios=1000
offset=1m
size=64m
random_distribution=zipf:1.2
fsync=16
prioclass=1
prio=3
randseed=7
"""
    spec, warnings, _ = imported(tmp_path, job)
    assert warnings == []
    assert (spec.seed, spec.warmup_ns, spec.runtime_ns) == (7, 10**9, 120_500_000_000)
    load = spec.tenants[0].workload
    assert (load.rw, load.rwmixread, load.bsrange) == ("randrw", 70, (4096, 65536))
    assert (load.iodepth, load.numjobs, load.rate_process) == (8, 2, "poisson")
    assert (load.thinktime_ns, load.thinktime_blocks) == (100_000, 4)
    assert (load.startdelay_ns, load.runtime_ns) == (500_000_000, 0)
    assert (load.number_ios, load.offset, load.size) == (1000, 1 << 20, 64 << 20)
    assert (load.random_distribution, load.fsync) == ("zipf:1.2", 16)
    assert load.ioprio == "rt/3"


@pytest.mark.parametrize(
    ("options", "ioprio"),
    [
        ("prio=2", "be/2"),
        ("prioclass=2", "be/0"),
        ("prioclass=3", "idle"),
        ("prioclass=3\nprio=5", "idle"),
        ("prioclass=0\nprio=5", "none"),
    ],
)
def test_a_priority_is_fios(tmp_path: Path, options: str, ioprio: str) -> None:
    spec, warnings, _ = imported(tmp_path, f"[j]\nruntime=1\ntime_based\n{options}\n")
    assert warnings == []
    assert spec.tenants[0].workload.ioprio == ioprio


@pytest.mark.parametrize("option", ["prio=8", "prioclass=4"])
def test_a_priority_that_is_none_is_refused(tmp_path: Path, option: str) -> None:
    with pytest.raises(UserError, match=option):
        imported(tmp_path, f"[j]\nruntime=1\ntime_based\n{option}\n")


@pytest.mark.parametrize(
    ("option", "named"),
    [
        ("stonewall", "job.fio:4: stonewall: not honoured: all tenants start together"),
        ("rate_min=10m", "job.fio:4: rate_min=10m: not honoured"),
        ("rate=5k", "job.fio:4: rate=5k: rate_iops = 1 is not exactly that"),
        ("rate=1m\nrate_iops=7", "job.fio:4: rate=1m: rate_iops takes its place"),
        ("rw=randrw\nrate=,1m", "job.fio:5: rate=,1m: a limit of reads alone, or of writes"),
        ("rw=rw\nrate_iops=100", "twice that for reads and writes together"),
        ("numjobs=65", "job.fio:4: numjobs=65: at most 64"),
        ("iodepth=5000", "job.fio:4: iodepth=5000: at most 4096"),
        ("size=1t", "the disk has 128g for it"),
        ("cgroup_weight=5000", "BFQ takes weights 1..1000: it is left out"),
        ("latency_target=5ms", "job.fio:4: latency_target=5ms: not honoured"),
        ("iodepth_batch=8", "job.fio:4: iodepth_batch=8: not honoured"),
        ("direct=0", "job.fio:4: direct=0: I/O goes to the device directly"),
        ("buffered=1", "job.fio:4: buffered=1"),
        ("verify=crc32c", "job.fio:4: verify=crc32c: verify = true checks"),
        ("filename=/dev/sdz", "job.fio:4: filename=/dev/sdz: the study's device is used"),
        ("startdelay=1-5", "a range is not honoured"),
        ("random_distribution=normal:20", "random_distribution=normal:20: not honoured"),
        ("no_such_option=1", "job.fio:4: no_such_option=1: not honoured"),
    ],
)
def test_a_fio_option_that_cannot_be_honoured_is_named(
    tmp_path: Path, option: str, named: str
) -> None:
    job = f"[j]\nruntime=1\ntime_based\n{option}\n"
    _, warnings, text = imported(tmp_path, job)
    assert any(named in warning for warning in warnings)
    top = [line for line in text.splitlines() if line.startswith("#")]
    assert any(named in line for line in top)


@pytest.mark.parametrize(
    ("rw", "rate", "iops", "reads"),
    [
        ("read", "rate=1m", 256, 50),
        ("randwrite", "rate=1m,2m", 512, 50),
        ("randwrite", "rate=,500k", 125, 50),
        ("randread", "rate=,500k", 0, 50),
        ("trim", "rate=1m,2m,4m", 1024, 50),
        ("trim", "rate=1m,2m", 512, 50),
        ("read", "rate=1m\nbs=64k", 16, 50),
        ("read", "rate=1m\nbsrange=4k-12k", 128, 50),
        ("read", "rate=1m\nbssplit=4k/50:12k/50", 128, 50),
        ("randrw", "rate=1m", 512, 50),
        ("randrw", "rate=1m,3m\nrwmixread=70", 1024, 25),
        ("read", "rate_iops=10,20", 10, 50),
        ("write", "rate_iops=10,20,30", 20, 50),
        ("randtrim", "rate_iops=1k,20,30", 30, 50),
        ("rw", "rate_iops=30,10", 40, 75),
        ("read", "rate=1m\nkb_base=1000", 244, 50),
    ],
)
def test_a_rate_is_fios(tmp_path: Path, rw: str, rate: str, iops: int, reads: int) -> None:
    spec, _, _ = imported(tmp_path, f"[j]\nruntime=1\ntime_based\nrw={rw}\n{rate}\n")
    load = spec.tenants[0].workload
    assert (load.rate_iops, load.rwmixread) == (iops, reads)


@pytest.mark.parametrize(
    "option", ["iodepth=N", "size=Ng", "size=N%", "runtime=N", "bssplit=4k/N", "rate_iops=0xN"]
)
def test_a_number_without_end_is_refused(tmp_path: Path, option: str) -> None:
    assert "job.fio:2: " in wrong(tmp_path, f"[a]\n{option.replace('N', '9' * 5000)}\n")


@pytest.mark.parametrize("rate", ["rate=", "rate=,", "rate=1,2,3,4", "rate=x", "rate_iops=1,,x"])
def test_a_rate_that_is_none_is_refused(tmp_path: Path, rate: str) -> None:
    assert "job.fio:2: rate" in wrong(tmp_path, f"[a]\n{rate}\n")


@pytest.mark.parametrize(
    ("region", "offset", "size", "ios"),
    [
        ("size=50%", 0, 4 << 30, 0),
        ("size=100%", 0, 0, 0),
        ("offset=25%\nsize=25%", 2 << 30, 2 << 30, 0),
        ("offset=75%\nsize=50%", 6 << 30, 0, 0),
        ("size=1g\nio_size=50%", 0, 1 << 30, 1 << 17),
        ("size=1g\nio_size=64m\nnumjobs=2", 0, 1 << 30, 1 << 14),
        ("size=1g\nio_limit=64m\nnumber_ios=9", 0, 1 << 30, 9),
        ("size=1g\nio_size=64m\ntime_based", 0, 1 << 30, 0),
    ],
)
def test_parts_of_the_disk_and_of_the_region_are_kept(
    tmp_path: Path, region: str, offset: int, size: int, ios: int
) -> None:
    spec, _, _ = imported(tmp_path, f"[j]\nruntime=1\n{region}\n")
    assert spec.device.size == 8 << 30
    load = spec.tenants[0].workload
    assert (load.offset, load.size, load.number_ios) == (offset, size, ios)


def test_the_disk_is_as_large_as_the_jobs_need_it(tmp_path: Path) -> None:
    spec, warnings, _ = imported(
        tmp_path, "[j]\nruntime=1\ntime_based\noffset=1g\nsize=10g\n[k]\ntime_based\nsize=50%\n"
    )
    assert spec.device.size == 11 << 30
    assert [one.workload.size for one in spec.tenants] == [0, 11 << 29]
    assert warnings == ["a job has no runtime: it runs for the run's 1s"]


def test_the_study_compares_schedulers_on_a_flash_drive_in_use(tmp_path: Path) -> None:
    path = tmp_path / "job.fio"
    path.write_text(P0_JOB)
    study = parse_study(from_fio(path)[0], "job.toml")
    schedulers = {"none", "bfq", "io.cost", "kyber-fair", "feedbac", "isoblk"}
    assert schedulers < set(study.matrix["scheduler"])
    device = load_device(study.device)
    assert isinstance(device, VdiskDevice)
    assert device.read_bps and device.flash.precondition == "random"


def test_a_job_that_begins_late_does_something(tmp_path: Path) -> None:
    spec, _, _ = imported(tmp_path, "[a]\nruntime=2\n[b]\nstartdelay=4\n")
    assert spec.runtime_ns == 5 * 10**9


@pytest.mark.parametrize("option", ["group_reporting", "norandommap", "stonewall=0", "thread=1"])
def test_a_fio_option_without_effect_is_not_named(tmp_path: Path, option: str) -> None:
    _, warnings, _ = imported(tmp_path, f"[j]\nruntime=1\n{option}\n")
    assert warnings == []


def test_an_option_of_global_is_named_once(tmp_path: Path) -> None:
    _, warnings, _ = imported(tmp_path, "[global]\nruntime=1\nnice=3\n[a]\n[b]\n[c]\n")
    assert len(warnings) == 1


@pytest.mark.parametrize(
    ("rw", "bs", "size", "warns"),
    [
        ("read", "8k,64k", 8 << 10, False),
        ("randwrite", "8k,64k", 64 << 10, False),
        ("randwrite", "8k", 8 << 10, False),
        ("write", ",64k", 64 << 10, False),
        ("read", ",64k", 4 << 10, False),
        ("trim", "4k,8k", 8 << 10, False),
        ("randrw", "8k,64k", 8 << 10, True),
        ("rw", "8k,8k", 8 << 10, False),
    ],
)
def test_the_block_size_of_the_direction_is_taken(
    tmp_path: Path, rw: str, bs: str, size: int, warns: bool
) -> None:
    spec, warnings, _ = imported(tmp_path, f"[j]\nruntime=1\nrw={rw}\nbs={bs}\n")
    assert spec.tenants[0].workload.bs == size
    assert bool(warnings) == warns


@pytest.mark.parametrize(
    ("base", "text", "size"),
    [
        ("1024", "4k", 4096),
        ("1024", "4kb", 4096),
        ("1024", "512ki", 512_000),
        ("1000", "4ki", 4096),
        ("1000", "4KiB", 4096),
        ("1000", "512k", 512_000),
        ("1024", "0x1000", 4096),
        ("1024", "1M", 1 << 20),
    ],
)
def test_suffixes_are_read_with_kb_base(tmp_path: Path, base: str, text: str, size: int) -> None:
    job = f"[j]\nruntime=1\nkb_base={base}\nbs={text}\n"
    spec, _, _ = imported(tmp_path, job)
    assert spec.tenants[0].workload.bs == size


def test_a_zero_in_front_of_a_number_is_decimal_as_fio_has_it(tmp_path: Path) -> None:
    spec, _, _ = imported(tmp_path, "[a]\nrw=randread\nbs=0x1000\niodepth=08\n")
    assert (spec.tenants[0].workload.bs, spec.tenants[0].workload.iodepth) == (4096, 8)


def test_a_superscript_is_no_percentage(tmp_path: Path) -> None:
    assert "job.fio:2: bssplit" in wrong(tmp_path, "[a]\nbssplit=4k/²:8k/98\n")


def test_sizes_without_percentage_divide_the_rest(tmp_path: Path) -> None:
    spec, _, _ = imported(tmp_path, "[j]\nruntime=1\nbssplit=4k/50:8k:16k/:32k/10\n")
    assert spec.tenants[0].workload.bssplit == ((4096, 50), (8192, 20), (16384, 20), (32768, 10))


def test_a_synchronous_engine_has_one_request_in_flight(tmp_path: Path) -> None:
    spec, warnings, _ = imported(tmp_path, "[j]\nruntime=1\nioengine=psync\niodepth=32\n")
    assert spec.tenants[0].workload.iodepth == 1
    assert any("iodepth 32 becomes 1" in warning for warning in warnings)


def test_a_job_that_ends_early_keeps_its_runtime(tmp_path: Path) -> None:
    spec, _, _ = imported(tmp_path, "[global]\nramp_time=1\n[a]\nruntime=4\n[b]\nruntime=2\n")
    assert spec.runtime_ns == 4 * 10**9
    # A tenant's runtime holds the warm-up too.
    assert [t.workload.runtime_ns for t in spec.tenants] == [0, 3 * 10**9]


def test_later_global_options_do_not_reach_earlier_jobs(tmp_path: Path) -> None:
    job = "[global]\nruntime=1\niodepth=2\n[a]\n[global]\niodepth=4\n[b]\niodepth=8\n[c]\n"
    spec, _, _ = imported(tmp_path, job)
    assert [tenant.workload.iodepth for tenant in spec.tenants] == [2, 8, 4]


def test_names_are_made_fit_and_unique(tmp_path: Path) -> None:
    job = "[global]\nruntime=1\ncgroup=g\n[a job]\n[a job]\n[start]\n"
    spec, warnings, _ = imported(tmp_path, job)
    assert [tenant.name for tenant in spec.tenants] == ["a-job", "a-job-2", "job-start"]
    assert [tenant.cgroup for tenant in spec.tenants] == ["g", "a-job-2", "job-start"]
    assert any("cgroup=g is taken" in warning for warning in warnings)


def test_included_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "common.fio").write_text("[global]\nruntime=1\niodepth=5\n")
    spec, _, _ = imported(tmp_path, "include common.fio\n[a]\n")
    assert spec.tenants[0].workload.iodepth == 5


@pytest.mark.parametrize(
    ("job", "facts"),
    [
        ("", ["job.fio: no job"]),
        ("[global]\nbs=4k\n", ["job.fio: no job"]),
        ("bs=4k\n", ["job.fio:1: 'bs=4k' before any section"]),
        ("[a\nbs=4k\n", ["job.fio:1: malformed section '[a'"]),
        ("[]\n", ["job.fio:1: malformed section"]),
        ("[a]\n=4k\n", ["job.fio:2: malformed line '=4k'", "OPTION=VALUE"]),
        ("[a]\nbs=4q\n", ["job.fio:2: bs=4q", "a number"]),
        ("[a]\nrw=trimwrite\n", ["job.fio:2: rw=trimwrite", "allowed: randread"]),
        ("[a]\nruntime=soon\n", ["job.fio:2: runtime=soon", "a time"]),
        ("[a]\niodepth=many\n", ["job.fio:2: iodepth=many"]),
        ("[a]\nbssplit=4k/x\n", ["job.fio:2: bssplit=4k/x"]),
        ("[a]\nrate_process=x\n", ["job.fio:2: rate_process=x", "linear, poisson"]),
        ("[a]\nkb_base=10\n", ["job.fio:2: kb_base=10", "1000, 1024"]),
        ("include job.fio\n", ["job.fio:1: the file includes itself"]),
        ("include none.fio\n", ["none.fio: cannot read the job file"]),
    ],
)
def test_a_malformed_job_is_named_with_its_line(tmp_path: Path, job: str, facts: list[str]) -> None:
    line = wrong(tmp_path, job)
    for fact in facts:
        assert fact in line


@given(st.text(st.characters(codec="utf-8"), max_size=60))
def test_any_text_gives_a_study_or_one_line(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.mktemp("fio") / "job.fio"
    path.write_text(f"[j]\nruntime=1\n{text}\n", encoding="utf-8")
    try:
        toml, _ = from_fio(path)
        parse_study(toml, "job.toml")
    except UserError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize("inner", ["/etc/passwd", "../outside", "/dev/zero", "."])
def test_a_job_includes_nothing_from_elsewhere(tmp_path: Path, inner: str) -> None:
    (tmp_path / "outside").write_text("a secret line")
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "link").symlink_to(tmp_path / "outside")
    for name in (inner, "link"):
        with pytest.raises(UserError, match="not in or below the directory") as caught:
            imported(tmp_path / "jobs", f"[global]\ninclude {name}\n[a]\nrw=read\n")
        assert "secret" not in str(caught.value)


def test_a_long_line_is_not_shown_whole(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        imported(tmp_path, "x" * 5000)
    assert len(str(caught.value)) < 300


def test_options_that_run_or_write_something_are_named_and_left_out(tmp_path: Path) -> None:
    options = (
        *("exec_prerun=touch /tmp/x", "exec_postrun=id", "ioengine=external:/tmp/x.so"),
        *("read_iolog=/etc/shadow", "write_iolog=/etc/x", "directory=/etc", "filename=/dev/sda"),
        *("write_bw_log=/etc/x", "trigger=id", "opendir=/", "cgroup=../../x"),
    )
    for option in options:
        job = f"[a]\nrw=randread\n{option}\n"
        path = tmp_path / "job.fio"
        path.write_text(job)
        text, _ = from_fio(path)
        try:
            (tenant,) = parse_study(text, "s").tenant
        except UserError as error:
            assert "cgroup" in str(error)
        else:
            assert tenant.rw == "randread"
        settings = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
        assert all(word not in settings for word in ("/tmp", "/etc", "/dev", "exec", "external"))


def test_warnings_say_nothing_to_the_terminal(tmp_path: Path) -> None:
    _, warnings, text = imported(tmp_path, "[a]\nrw=read\nfilename=\x1b[2J\n")
    assert warnings
    assert "\x1b" not in "".join(warnings) + text
