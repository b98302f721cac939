# SPDX-License-Identifier: GPL-2.0-only
"""A wrong study gives a line for each mistake: file, line, field, cause, allowed values."""

import re
import time
from pathlib import Path

import pytest

from isoblk import paths
from isoblk.errors import UserError
from isoblk.study.load import load_study, parse_study
from isoblk.study.text import Source
from isoblk.trace.synth import load_recipe

SHIPPED = sorted((paths.presets_dir().parent).glob("*.toml"))

GOOD = """\
name = "s"
device = "fast"
scheduler = "bfq"
[run]
runtime = 1
[workload]
iodepth = 32
[[tenant]]
name = "a"
weight = 100
[[tenant]]
name = "b"
rw = "randrw"
"""


def wrong(text: str, name: str = "x.toml") -> str:
    with pytest.raises(UserError) as caught:
        parse_study(text, name)
    line = str(caught.value)
    assert "\n" not in line
    assert caught.value.exit_status == 2
    return line


def all_wrong(text: str) -> list[str]:
    """Return LINE: FIELD of each mistake."""
    with pytest.raises(UserError) as caught:
        parse_study(text, "x")
    return [":".join(line.split(":")[1:3]) for line in caught.value.lines]


def edited(old: str, new: str) -> str:
    assert GOOD.count(old) == 1
    return GOOD.replace(old, new)


def test_the_base_of_these_tests_is_right() -> None:
    assert [tenant.name for tenant in parse_study(GOOD, "x.toml").tenant] == ["a", "b"]


@pytest.mark.parametrize(
    ("old", "new", "facts"),
    [
        # what msgspec finds
        ('rw = "randrw"', 'rww = "randrw"', ["x.toml:13: tenant[1].rww", "did you mean 'rw'?"]),
        ("runtime = 1", "runtim = 1", ["x.toml:5: run.runtim", "did you mean 'runtime'?"]),
        ('"bfq"', '"bqf"', ["x.toml:3: scheduler", "'bqf'", "did you mean 'bfq'?"]),
        ('"bfq"', '"cfs-q"', ["x.toml:3: scheduler", "allowed: bfq, cfq, feedbac"]),
        ('"bfq"', "3", ["x.toml:3: scheduler: expected text, got a whole number"]),
        ('"randrw"', '"randomrw"', ["x.toml:13: tenant[1].rw", "did you mean 'randrw'?"]),
        ("iodepth = 32", 'iodepth = "32"', ["x.toml:7: workload.iodepth: expected a whole number"]),
        ("iodepth = 32", "fua = 1", ["x.toml:7: workload.fua: expected true or false"]),
        ("runtime = 1", "runtime = [1]", ["x.toml:5: run.runtime", "a number or text, got a list"]),
        ('name = "b"\n', "", ["x.toml:11: tenant[1].name: missing"]),
        ('device = "fast"\n', "", ["x.toml: device: missing"]),
        # TOML
        ("runtime = 1", "runtime = ", ["x.toml:5: not TOML"]),
        ("runtime = 1", "runtime = 1s", ["x.toml:5: not TOML", "put text in quotes"]),
        ('name = "b"', 'name = "b', ["x.toml:12: not TOML"]),
        ("[run]", "[run", ["x.toml:4: not TOML"]),
        # the run
        ("runtime = 1", "runtime = -1", ["x.toml:5: run.runtime: -1 is negative"]),
        ("runtime = 1", "runtime = 0", ["x.toml:5: run.runtime", "allowed: more than 0"]),
        ("runtime = 1", "runtime = nan", ["x.toml:5: run.runtime: nan is not a time"]),
        ("runtime = 1", 'runtime = "2d"', ["x.toml:5: run.runtime", "up to 86400s"]),
        ("runtime = 1", 'warmup = "-1ms"', ["x.toml:5: run.warmup: '-1ms' is negative"]),
        ("runtime = 1", 'window = "100us"', ["x.toml:5: run.window", "allowed: 1ms and more"]),
        ("runtime = 1", 'window = "300ms"', ["x.toml:5: run.window: 300ms does not divide"]),
        (
            "runtime = 1",
            'warmup = "50ms"',
            ["x.toml:4: run.window", "run.warmup = 50ms", "50ms does"],
        ),
        ("runtime = 1", "repeats = 0", ["x.toml:5: run.repeats: 0 is out of range", "1..1000"]),
        ("runtime = 1", "seed = -1", ["x.toml:5: run.seed: -1 is out of range"]),
        # names, cgroups, weights
        ('name = "s"', 'name = "a b"', ["x.toml:1: name: 'a b' is not a study's name"]),
        ('name = "b"', 'name = "b c"', ["x.toml:12: tenant[1].name: 'b c'", "letters, digits"]),
        ('name = "b"', f'name = "{"b" * 64}"', ["x.toml:12: tenant[1].name", "up to 63"]),
        ('name = "b"', 'name = "a"', ["x.toml:12: tenant[1].name: 'a' is there twice"]),
        ('name = "b"', 'name = "start"', ["x.toml:12: tenant[1].name: 'start'", "reserved: align"]),
        ('name = "b"', 'name = "b"\ncgroup = "../b"', ["x.toml:13: tenant[1].cgroup: '../b'"]),
        ('name = "b"', 'name = "b"\ncgroup = "/b"', ["x.toml:13: tenant[1].cgroup: '/b'"]),
        ('name = "b"', 'name = "b"\ncgroup = "x//b"', ["x.toml:13: tenant[1].cgroup: 'x//b'"]),
        ('name = "b"', 'name = "b"\ncgroup = "io.max"', ["x.toml:13: tenant[1].cgroup: 'io.max'"]),
        (
            'name = "b"',
            'name = "b"\ncgroup = "a"',
            ["x.toml:13: tenant[1].cgroup: tenants 'a' and 'b' are both in 'a'"],
        ),
        ("weight = 100", "weight = 1001", ["x.toml:10: tenant[0].weight: 1001", "bfq", "1..1000"]),
        ("weight = 100", "weight = 0", ["x.toml:10: tenant[0].weight: 0 is out", "1..1000"]),
        ("weight = 100", "weight = []", ["x.toml:10: tenant[0].weight: the list is empty"]),
        ("weight = 100", "weight = [1, 2]", ["x.toml:10: tenant[0].weight", "add 'count'"]),
        ("weight = 100", "count = 0", ["x.toml:10: tenant[0].count: 0 is out of range"]),
        # loads
        ("iodepth = 32", "iodepth = 0", ["x.toml:7: workload.iodepth: 0 is out", "1..4096"]),
        ('rw = "randrw"', "iodepth = 4097", ["x.toml:13: tenant[1].iodepth: 4097", "1..4096"]),
        ('rw = "randrw"', "numjobs = 65", ["x.toml:13: tenant[1].numjobs: 65", "1..64"]),
        ('rw = "randrw"', "rwmixread = 101", ["x.toml:13: tenant[1].rwmixread: 101", "0..100"]),
        ('rw = "randrw"', "rate_iops = -5", ["x.toml:13: tenant[1].rate_iops: -5 is out"]),
        ('rw = "randrw"', 'rate_process = "erlang"', ["x.toml:13: tenant[1].rate_process"]),
        ('rw = "randrw"', 'bs = "4q"', ["x.toml:13: tenant[1].bs: '4q' is not a size"]),
        ('rw = "randrw"', "bs = 1000", ["x.toml:13: tenant[1].bs", "logical block, 512"]),
        ('rw = "randrw"', "bs = 0", ["x.toml:13: tenant[1].bs: a block of 0 bytes"]),
        ('rw = "randrw"', 'bs = "64m"', ["x.toml:13: tenant[1].bs", "up to 32m"]),
        ('rw = "randrw"', 'bsrange = "4k"', ["x.toml:13: tenant[1].bsrange", "LOW-HIGH"]),
        ('rw = "randrw"', 'bsrange = "64k-4k"', ["x.toml:13: tenant[1].bsrange: 64k-4k"]),
        ('rw = "randrw"', 'bssplit = "4k/60:8k"', ["x.toml:13: tenant[1].bssplit", "SIZE/PERCENT"]),
        ('rw = "randrw"', 'bssplit = "4k/60:8k/60"', ["tenant[1].bssplit: adds up to 120 per"]),
        (
            'rw = "randrw"',
            'bs = 4096\nbsrange = "4k-8k"',
            ["x.toml:14: tenant[1].bsrange: 'bs' is set too"],
        ),
        ('rw = "randrw"', 'offset = "5g"', ["x.toml:13: tenant[1].offset", "the device has 4g"]),
        ('rw = "randrw"', "offset = 100", ["x.toml:13: tenant[1].offset: 100 is not a multiple"]),
        ('rw = "randrw"', 'size = "5g"', ["x.toml:13: tenant[1].size", "beyond the device"]),
        ('rw = "randrw"', "size = 512", ["x.toml:13: tenant[1].size: leaves 512"]),
        ('rw = "randrw"', 'random_distribution = "zipf:0"', ["random_distribution: 'zipf:0'"]),
        ('rw = "randrw"', 'random_distribution = "pareto:1"', ["'pareto:1'", "0.01..0.99"]),
        ('rw = "randrw"', 'random_distribution = "gauss"', ["'gauss'", "allowed: random, zipf:X"]),
        ('rw = "randrw"', "startdelay = 1", ["x.toml:13: tenant[1].startdelay: 1s is after"]),
        ('rw = "randrw"', "runtime = 2", ["x.toml:13: tenant[1].runtime", "ends after the run"]),
        (
            "runtime = 1\n[workload]\niodepth = 32",
            'runtime = 1\nwarmup = "200ms"\n[workload]\nruntime = 0.2',
            ["x.toml:8: workload.runtime", "200ms ends in the warm-up", "more than 200ms"],
        ),
        ('rw = "randrw"', "thinktime_blocks = 0", ["x.toml:13: tenant[1].thinktime_blocks"]),
        # devices
        ('"fast"', '"fats"', ["x.toml:2: device: unknown preset 'fats'", "did you mean 'fast'?"]),
        ('"fast"', "{}", ["x.toml:2: device: names neither a preset nor a driver"]),
        ('"fast"', '{driver = "nvme"}', ["x.toml:2: device.driver: unknown driver 'nvme'"]),
        ('"fast"', '{preset = "fast", server = 1}', ["device.server", "did you mean 'servers'?"]),
        ('"fast"', '{preset = "fast", servers = 0}', ["x.toml:2: device.servers: 0", "1..65536"]),
        ('"fast"', '{preset = "fast", servers = "many"}', ["device.servers: expected a whole"]),
        ('"fast"', '{preset = "fast", size = "4q"}', ["device.size: '4q' is not a size"]),
        ('"fast"', '{preset = "fast", size = 1000}', ["device.size: 1000 is not a multiple"]),
        ('"fast"', '{preset = "fast", driver = "null_blk"}', ["has driver 'vdisk'"]),
        ('"fast"', '{preset = "fast", model = "flas"}', ["unknown model 'flas'", "fixed, flash"]),
        (
            '"fast"',
            '{driver = "vdisk", model = "flash", servers = 3}',
            ["x.toml:2: device.servers: is of model 'fixed'", "device's model is 'flash'"],
        ),
        (
            '"fast"',
            '{driver = "vdisk", disk = {rpm = 5400}}',
            ["x.toml:2: device.disk: is of model 'disk'", "set model = 'disk', or remove it"],
        ),
        ('"fast"', '{driver = "vdisk", store = "tape"}', ["unknown store 'tape'", "none, memory"]),
        ('"fast"', '{driver = "vdisk", flash = 1}', ["device.flash: expected a table, got 1"]),
        (
            '"fast"',
            '{driver = "vdisk", model = "flash", flash = {die = 3}}',
            ["x.toml:2: device.flash.die: unknown attribute 'die'", "did you mean 'dies'?"],
        ),
        (
            '"fast"',
            '{driver = "vdisk", model = "flash", flash = {gc_low = 4}}',
            ["x.toml:2: device.flash.gc_low: 4 is not below gc_high", "less than 4"],
        ),
        (
            '"fast"',
            '{driver = "vdisk", model = "flash", flash = {page_size = 6000}}',
            ["device.flash.page_size: 6000 is not a multiple of 4096"],
        ),
        (
            '"fast"',
            '{driver = "vdisk", model = "flash", flash = {block_pages = 16384}}',
            ["device.flash.block_pages: a block of 2 planes has 131072 units"],
        ),
        (
            '"fast"',
            '{driver = "vdisk", model = "disk", disk = {seek_avg_ns = "20ms"}}',
            ["device.disk.seek_avg_ns: 20000000 is above seek_max_ns", "up to 18000000"],
        ),
        ('"fast"', '"none.toml"', ["x.toml:2: device: no such file 'none.toml'"]),
        ('"fast"', '{driver = "null_blk", size = 512}', ["device.size", "1048576"]),
        (
            '"fast"',
            '{driver = "null_blk", blocksize = 768}',
            ["device.blocksize: 768 is not a power of two"],
        ),
        # schedulers and knobs
        (
            '"bfq"\n[run]',
            '"io.cost"\n[run]\ncgroup = "v1"',
            ["x.toml:5: run.cgroup: io.cost needs cgroup v2"],
        ),
    ],
)
def test_a_wrong_value_is_named_with_its_place(old: str, new: str, facts: list[str]) -> None:
    line = wrong(edited(old, new))
    for fact in facts:
        assert fact in line
    if not facts[0].startswith("x.toml"):
        assert re.match(r"x\.toml:\d+: ", line)


@pytest.mark.parametrize(
    ("more", "facts"),
    [
        ('[queue]\nscheduler = "none"', ["x.toml:15: queue.scheduler", "field 'scheduler'"]),
        ('[queue]\n"a/b" = 1', ["x.toml:15: queue.a/b: is not the name of a file"]),
        ('[queue]\nx = "a\\nb"', ["x.toml:15: queue.x", "U+000A, which is not printed"]),
        ("[queue]\nx = 1.5", ["x.toml:15: queue.x: expected", "got a number"]),
        ("[iosched.none]\nx = 1", ["x.toml:14: iosched.none: has no tunables", "bfq"]),
        ("[io_cost.qos]\nrpt = 1", ["x.toml:15: io_cost.qos.rpt: unknown", "'rpct'"]),
        ("[io_cost.qos]\nrpct = 101", ["x.toml:15: io_cost.qos.rpct: 101 is out", "0..100"]),
        ("[io_cost.qos]\nenable = 1", ["x.toml:15: io_cost.qos.enable", "remove it"]),
        ('[io_cost.qos]\nctrl = "on"', ["x.toml:15: io_cost.qos.ctrl", "auto, user"]),
        ("[io_cost.qos]\nrlat = 1.5", ["x.toml:15: io_cost.qos.rlat", "whole microseconds"]),
        ('[io_cost]\nmodel = "auto"', ["x.toml:15: io_cost.model", "calibrated"]),
        ("[io_cost.model]\nrbps = 1", ["x.toml:14: io_cost.model: missing rseqiops"]),
        ("[io_cost.model]\nrbp = 1", ["x.toml:15: io_cost.model.rbp", "did you mean 'rbps'?"]),
        ("[io_max]\nscale = 0", ["x.toml:15: io_max.scale", "more than 0"]),
        (
            '[matrix]\nscheduler = ["io.max"]\n"tenant.b.cgroup" = ["a/b"]',
            ["x.toml:8: tenant[0].cgroup: 'a' holds the cgroups", "io.max"],
        ),
        (
            '[[group]]\npath = "a"\n[matrix]\n"tenant.b.cgroup" = ["a/b"]',
            ["x.toml:15: group[0].path: tenant 'a' is in 'a'", "remove the [[group]]"],
        ),
        ('[[group]]\npath = "x"', ["x.toml:15: group[0].path: no tenant's cgroup is inside 'x'"]),
        ('[[event]]\nat = 1\ntenant = "a"\nweight = 5', ["x.toml:15: event[0].at: 1s is after"]),
        ('[[event]]\nat = 0\ntenant = "c"\nweight = 5', ["x.toml:16: event[0].tenant", "'c'"]),
        ('[[event]]\nat = 0\ntenant = "a"\nweight = 1001', ["x.toml:17: event[0].weight", "bfq"]),
        ("[[event]]\nat = 0", ["x.toml:14: event[0]: is not one change", "or device"]),
        ('[[event]]\nat = 0\ntenant = "a"', ["x.toml:14: event[0]: is not one change"]),
        (
            '[[event]]\nat = 0\ntenant = "a"\nweight = 5\ndevice.servers = 1',
            ["x.toml:14: event[0]: is not one change", "not both"],
        ),
        (
            "[[event]]\nat = 0\ndevice.servers = 0",
            ["x.toml:16: event[0].device.servers: 0 is out of range", "1..65536"],
        ),
        (
            "[[event]]\nat = 0\ndevice = { queue_depth = 8 }",
            ["x.toml:16: event[0].device.queue_depth: cannot change while the device runs"],
        ),
        (
            "[[event]]\nat = 0\ndevice.flash.read_ns = 5",
            ["x.toml:16: event[0].device.flash", "is of model 'flash'"],
        ),
        (
            '[[event]]\nat = 0\ndevice.flash.dies = 5\n[matrix]\ndevice = ["p4500-1t"]',
            ["x.toml:16: event[0].device.flash.dies: cannot change while the device runs"],
        ),
        (
            '[[event]]\nat = 0\ndevice.read_ns = "1"\n[matrix]\ndevice = ["prototype"]',
            ["x.toml:16: event[0].device: only a vdisk can change"],
        ),
        ("[[event]]\nat = 1\ndevice.servers = 8", ["x.toml:15: event[0].at: 1s is after"]),
        # matrix
        ("[matrix]\nscheduler = []", ["x.toml:15: matrix.scheduler: the list is empty"]),
        ('[matrix]\nscheduler = ["bfq", "bfq"]', ["matrix.scheduler: bfq is there twice"]),
        ('[matrix]\nscheduler = ["none", "bqf"]', ["x.toml:15: matrix.scheduler: 'bqf'", "'bfq'"]),
        ('[matrix]\nshedule = ["none"]', ["x.toml:15: matrix.shedule: is not a field of a run"]),
        ('[matrix]\nschedulers = ["none"]', ["did you mean 'scheduler'?"]),
        ('[claim]\nmetric = "jain"', ["x.toml:14: claim: expected a list", "write [[claim]]"]),
        ('[matrix]\n"workload.rww" = [1]', ["x.toml:15: matrix.workload.rww", "mean 'rw'?"]),
        ('[matrix]\n"run.repeats" = [1]', ["x.toml:15: matrix.run.repeats: unknown field"]),
        ('[matrix]\n"tenant.c.weight" = [1]', ["x.toml:15: matrix.tenant.c.weight", "'c'"]),
        ('[matrix]\n"workload.iodepth" = [1, 0]', ["x.toml:15: matrix.workload.iodepth: 0: 0 is"]),
        ("[matrix]\nworkload.iodepth = [1, 0]", ["x.toml:15: matrix.workload.iodepth: 0: 0 is"]),
        ('[matrix]\n"device.servers" = [4, 0]', ["x.toml:15: matrix.device.servers: 0"]),
        ('[matrix]\n"workload.bs" = [[4096]]', ["x.toml:15: matrix.workload.bs: [4096]: exp"]),
        ('[matrix]\n"tenant.a.weight" = [[1, 2]]', ["x.toml:15: matrix.tenant.a.weight: 1/2"]),
        (
            '[matrix]\n"tenant.a.weight" = [["1"]]',
            ["x.toml:15: matrix.tenant.a.weight[0][0]: expected a whole number, got text"],
        ),
        ('[matrix]\n"tenant.*.rw" = ["up"]', ["x.toml:15: matrix.tenant.*.rw: 'up'"]),
        (
            '[matrix]\n"tenant.*.weight" = [2000]\nscheduler = ["none", "bfq"]',
            ["x.toml:15: matrix.tenant.*.weight: 2000", "bfq", "1..1000"],
        ),
        (
            '[matrix]\n"run.cgroup" = ["v1", "v2"]\nscheduler = ["none", "io.max"]',
            ["x.toml:15: matrix.run.cgroup: v1: io.max needs cgroup v2"],
        ),
        (
            '[[group]]\npath = "x"\n[matrix]\n"tenant.a.cgroup" = ["x/a", "a"]',
            ["x.toml:15: group[0].path", "(at scheduler=bfq, tenant.a.cgroup=a)"],
        ),
        (
            '[[event]]\nat = 0\ntenant = "a"\nweight = 5\n'
            '[matrix]\nscheduler = ["none", "io.latency"]',
            ["x.toml:14: event[0]: io.latency has no weights"],
        ),
        ('[filesystem]\ntpye = "ext4"', ["x.toml:15: filesystem.tpye: unknown field", "type"]),
        (
            '[compare]\ntitle = "s"\nsource = "s"\nmetric = "total_bps"\nx = "y"\n'
            '[[compare.series]]\ntexd = "s"',
            ["x.toml:20: compare.series[0].texd: unknown field", "text"],
        ),
        # claims
        ("[[claim]]\ntext = 'x'", ["x.toml:14: claim[0].source: missing"]),
    ],
)
def test_a_wrong_table_is_named_with_its_place(more: str, facts: list[str]) -> None:
    line = wrong(GOOD + more + "\n")
    for fact in facts:
        assert fact in line


@pytest.mark.parametrize(
    ("claim", "facts"),
    [
        ('metric = "jane"', ["x.toml:17: claim[0].metric: unknown metric 'jane'", "'jain'"]),
        ('metric = "share"', ["metric 'share' needs a tenant, as in share.NAME"]),
        ('metric = "share.c"', ["no tenant is called 'c'; allowed: a, b"]),
        (
            'metric = "jain"\nwhere = { shed = 1 }',
            ["x.toml:18: claim[0].where.shed", "scheduler"],
        ),
        (
            'metric = "jain"\nwhere = { scheduler = "none" }',
            ["x.toml:18: claim[0].where.scheduler: the matrix has no none", "allowed: bfq"],
        ),
        (
            'metric = "jain"\nthan = { scheduler = "none" }',
            ["x.toml:18: claim[0].than.scheduler: the matrix has no none", "allowed: bfq"],
        ),
        (
            'metric = "jain"\nthan.shed = 1',
            ["x.toml:18: claim[0].than.shed: not a matrix key"],
        ),
        (
            'metric = "total_vs_best"',
            ["x.toml:17: claim[0].metric: total_vs_best compares with kyber too", "kyber"],
        ),
        (
            'metric = "weight_ratio_error"\namong = ["a", "c"]',
            ["x.toml:18: claim[0].among: no tenant is called 'c'"],
        ),
        ('metric = "weight_ratio_error"\namong = ["a"]', ["a single tenant has no ratio"]),
        ('metric = "jain"\namong = ["a", "b"]', ["has no meaning with jain"]),
        (
            'metric = "jain"\ntolerance = 0.1',
            ["x.toml:18: claim[0].tolerance: has no meaning"],
        ),
    ],
)
def test_a_wrong_claim_is_named_with_its_place(claim: str, facts: list[str]) -> None:
    text = GOOD + f'[[claim]]\ntext = "t"\nsource = "s"\n{claim}\nop = "<"\nvalue = 1\n'
    line = wrong(text)
    for fact in facts:
        assert fact in line


def test_weights_above_1000_are_right_where_bfq_does_not_run() -> None:
    text = edited('"bfq"', '"io.cost"').replace("weight = 100", "weight = 10000")
    assert parse_study(text, "x.toml").tenant[0].weight == 10000


def test_our_elevators_take_the_weights_that_bfq_does_not() -> None:
    for name in ("kyber-fair", "feedbac"):
        text = edited('"bfq"', f'"{name}"').replace("weight = 100", "weight = 10000")
        assert parse_study(text, "x.toml").tenant[0].weight == 10000
        assert "1..10000" in wrong(text.replace("10000", "10001"))
        parse_study(text + f"[iosched.{name}]\nrefill_ms = 50\n", "x.toml")


def test_a_claim_may_compare_with_another_run_its_key_written_without_quotes() -> None:
    claim = '[[claim]]\ntext = "t"\nsource = "s"\nmetric = "p99.a"\nop = "<"\nvalue = 1\n'
    matrix = '[matrix]\nworkload.rw = ["read", "randread"]\n'
    study = parse_study(GOOD + matrix + claim + 'than.workload.rw = "read"\n', "x.toml")
    assert study.claim[0].than == {"workload.rw": "read"}


def test_verify_needs_a_device_that_keeps_data() -> None:
    text = edited('rw = "randrw"', "verify = true").replace('"fast"', '"prototype"')
    assert "tenant[1].verify: this null_blk does not store written data" in wrong(text)
    keeps = text.replace('"prototype"', '{ preset = "prototype", memory_backed = true }')
    parse_study(keeps, "x.toml")


def test_a_vdisk_keeps_data_if_it_is_told_to() -> None:
    text = edited('rw = "randrw"', "verify = true")
    assert 'does not store written data; set device.store = "memory"' in wrong(text)
    parse_study(text.replace('"fast"', '{ preset = "fast", store = "memory" }'), "x.toml")


def test_a_presets_file_is_a_device(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text((paths.presets_dir() / "p4500-1t.toml").read_text())
    study = parse_study(edited('"fast"', f'"{path}"'), "x.toml")
    assert study.device == str(path)


def test_a_verified_region_is_one_tenants_own() -> None:
    text = (
        edited('rw = "randrw"', 'rw = "randwrite"\nverify = true')
        .replace('"fast"', '{ preset = "prototype", memory_backed = true }')
        .replace('name = "a"', 'name = "a"\nrw = "write"\nsize = "1g"')
    )
    line = wrong(text)
    assert "tenant[1].verify: 'b' verifies a region that 'a' writes too" in line
    parse_study(text.replace("verify = true", 'verify = true\noffset = "1g"'), "x.toml")
    parse_study(text.replace('rw = "write"', 'rw = "read"'), "x.toml")


def test_more_hardware_queues_than_the_machine_has_cpus_are_refused() -> None:
    text = edited('"fast"', '{ preset = "fast", hw_queues = 9 }')
    assert "device.hw_queues: 9 hardware queues: no machine of the lab has so many" in wrong(text)


def test_a_matrix_key_that_every_tenant_overrides_is_refused() -> None:
    text = edited('name = "a"', 'name = "a"\nrw = "read"')
    assert 'use "tenant.*.rw"' in wrong(text + '[matrix]\n"workload.rw" = ["read"]\n')


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot read the study: No such file") as caught:
        load_study(tmp_path / "none.toml")
    assert "none.toml" in caught.value.where


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    for data, told in ((b"\xff\xff", "not UTF-8 text"), (b"\xff\xfe", "UTF-16 text")):
        path.write_bytes(data)
        with pytest.raises(UserError, match=told):
            load_study(path)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a = " + "[" * 200_000, "more than 16"),
        ("a = " + "{a = " * 20_000, "more than 16"),
        ("[" + "a." * 20_000 + "a]", "more than 16"),
        ("a = " + "9" * 6000, "a number that is too long"),
    ],
    ids=["lists", "tables", "dots", "digits"],
)
def test_toml_with_too_deep_nesting_or_too_long_numbers_is_refused(
    tmp_path: Path, text: str, why: str
) -> None:
    (tmp_path / "x.toml").write_text(text)
    for load in (load_study, load_recipe):
        with pytest.raises(UserError, match=why):
            load(tmp_path / "x.toml")
    line = wrong(edited('"fast"', f'"{tmp_path / "x.toml"}"'))
    assert "x.toml: damaged preset" in line
    assert why in line


def test_a_presets_driver_is_a_word(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text('title = "x"\nsource = "x"\n[device]\ndriver = {}\n')
    assert "names no driver" in wrong(edited('"fast"', f'"{tmp_path / "x.toml"}"'))


def test_a_damaged_preset_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bent.toml").write_text("title = 1\n")
    monkeypatch.setattr(paths, "presets_dir", lambda: tmp_path)
    line = wrong(edited('"fast"', '"bent"'))
    assert "bent.toml: damaged preset" in line


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_every_shipped_study_is_right(path: Path) -> None:
    study, text = load_study(path)
    assert study.name == path.stem
    assert text == path.read_text("utf-8")


def test_the_studies_for_all_machines_are_right() -> None:
    folder = paths.presets_dir().parent / "machines"
    found = {path.stem: load_study(path)[0].name for path in sorted(folder.glob("*.toml"))}
    assert found == {stem: f"machines-{stem}" for stem in found}
    assert {"weights", "nested", "limit", "reader", "coming"} <= set(found)


def test_there_are_shipped_studies() -> None:
    names = {path.stem for path in SHIPPED}
    assert {"weights", "group-count", "quick", "prototype"} <= names


def test_lines_are_found_in_every_form_that_toml_has() -> None:
    text = '''\
a = """
[no.table]
b = "\\"""
"""
c = [ # comment = 1
  1,
  { d = "]", "e f" = 2 },
]
g.h = 'x#y'   # z = 1
[t."q.r"]
s = 1979-05-27 07:32:00
[[u]]
v = ''
[[u]]
[u.w]
x = """"two quotes at the end"""""
y = 0
'''
    lines = Source.of("f", text).lines
    expected = {
        ("a",): 1,
        ("c",): 5,
        ("c", 0): 6,
        ("c", 1): 7,
        ("c", 1, "d"): 7,
        ("c", 1, "e f"): 7,
        ("g", "h"): 9,
        ("t", "q.r"): 10,
        ("t", "q.r", "s"): 11,
        ("u", 0): 12,
        ("u", 0, "v"): 13,
        ("u", 1): 14,
        ("u", 1, "w", "x"): 16,
        ("u", 1, "w", "y"): 17,
    }
    assert {field: lines.get(field) for field in expected} == expected
    assert ("no", "table") not in lines
    assert ("b",) not in lines


def places(text: str) -> list[str]:
    """The line and field of each mistake, as the command names them."""
    with pytest.raises(UserError) as caught:
        parse_study(text, "x.toml")
    return [" ".join(line.split(": ")[:2]) for line in caught.value.lines]


def test_all_fields_of_a_wrong_type_or_name_are_named_at_once() -> None:
    text = GOOD.replace('"fast"', "3").replace("iodepth = 32", "iodpth = 32\nbs = []")
    assert places(text.replace('"randrw"', '"rw2"') + "[[tenant]]\nname = 3\n") == [
        "x.toml:2 device",
        "x.toml:7 workload.iodpth",
        "x.toml:8 workload.bs",
        "x.toml:14 tenant[1].rw",
        "x.toml:16 tenant[2].name",
    ]


def test_all_values_that_break_a_rule_are_named_at_once() -> None:
    text = GOOD.replace("iodepth = 32", "iodepth = 0").replace("weight = 100", "weight = 0")
    text = text.replace("runtime = 1", 'runtime = 1\nwindow = "3ms"') + (
        '[matrix]\nscheduler = ["none", "bfq"]\n"tenant.b.iodepth" = [1, 0, -5]\n'
        '[[claim]]\ntext = "c"\nsource = "s"\nmetric = "p99.c"\nop = "<"\nvalue = 1\n'
    )
    assert places(text) == [
        "x.toml:6 run.window",
        "x.toml:8 workload.iodepth",
        "x.toml:11 tenant[0].weight",
        "x.toml:17 matrix.tenant.b.iodepth",
        "x.toml:17 matrix.tenant.b.iodepth",
        "x.toml:21 claim[0].metric",
    ]


def test_all_malformed_values_are_named_at_once() -> None:
    text = GOOD.replace("runtime = 1", 'runtime = "soon"\nwarmup = -1').replace(
        "iodepth = 32", 'bs = "4q"'
    )
    assert places(text.replace("weight = 100", 'size = "all"')) == [
        "x.toml:5 run.runtime",
        "x.toml:6 run.warmup",
        "x.toml:8 workload.bs",
        "x.toml:11 tenant[0].size",
    ]


def test_the_consequence_of_a_mistake_is_not_reported_as_a_second_one() -> None:
    claim = '[[claim]]\ntexd = "c"\nsource = "s"\nmetric = "p99.a"\nop = "<"\nvalue = 1\n'
    assert places(GOOD + claim) == ["x.toml:15 claim[0].texd"]
    event = "[[event]]\nat = 0\ndevice.servers = 0\n"
    assert places(GOOD + event) == ["x.toml:16 event[0].device.servers"]


def test_of_very_many_mistakes_the_first_are_named_and_the_rest_counted() -> None:
    tenants = "".join(f'[[tenant]]\nname = "t{i}"\niodpth = 1\n' for i in range(30))
    found = places(GOOD + tenants)
    assert found[0] == "x.toml:16 tenant[2].iodpth"
    assert found[-1] == "x.toml 10 more errors; correct these first"
    assert len(found) == 21


CLAIM = """\
[[claim]]
text = "t"
source = "s"
metric = "share.a"
op = ">"
value = 1
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # Mistakes of the same kind, and of one claim.
        (
            GOOD.replace("weight = 100", "weight = 0") + "weight = 2000\n",
            ["10: tenant[0].weight", "14: tenant[1].weight"],
        ),
        (
            GOOD + '[[event]]\nat = "9s"\ntenant = "c"\nweight = 5\n'
            '[[event]]\nat = 0\ntenant = "d"\nweight = 5\n',
            ["15: event[0].at", "16: event[0].tenant", "20: event[1].tenant"],
        ),
        (
            GOOD + "[queue]\nnr_requests = -1\n[iosched.bfq]\nslice_idle = -1\n"
            "back_seek_max = -1\n",
            ["15: queue.nr_requests", "17: iosched.bfq.slice_idle",
             "18: iosched.bfq.back_seek_max"],
        ),
        (
            GOOD + "[matrix]\nqueues = [1]\ncashe = [1]\n",
            ["15: matrix.queues", "16: matrix.cashe"],
        ),
        (
            GOOD + '[matrix]\n"workload.bs" = []\n"workload.rw" = ["read", "read"]\n',
            ["15: matrix.workload.bs", "16: matrix.workload.rw"],
        ),
        (
            GOOD + CLAIM + 'tolerance = 1\nwhere = { x = 1 }\n',
            ["20: claim[0].tolerance", "21: claim[0].where.x"],
        ),
        (
            GOOD.replace('"s"', '"a b"').replace("runtime = 1", "repeats = 0"),
            ["1: name", "5: run.repeats"],
        ),
        # A table's own key; the entries beside it are checked as well.
        (
            GOOD + '[matrix]\n"workload.bs" = "4k"\n"workload.rw" = 3\n',
            ["15: matrix.workload.bs", "16: matrix.workload.rw"],
        ),
        (
            GOOD + '[iosched.bfq]\nslice_idle = [1]\n[iosched.kyber]\nx = 1.5\n',
            ["15: iosched.bfq.slice_idle", "17: iosched.kyber.x"],
        ),
        (
            GOOD + '[schedulers.mine]\nnosuch = 1\n',
            ["15: schedulers.mine.nosuch"],
        ),
        (
            GOOD + '"b`c" = 1\n"d\'e" = 1\nx = 1\n',
            ["14: tenant[1].b`c", "15: tenant[1].d'e", "16: tenant[1].x"],
        ),
        # A missing field, unless it is there, misspelt.
        (
            GOOD + CLAIM.replace("metric", "metrik").replace('text = "t"', "unlike = 1"),
            ["14: claim[0].text", "15: claim[0].unlike", "17: claim[0].metrik"],
        ),
        # Claims on what is wrong in the matrix.
        (
            GOOD + '[matrix]\nschedulerr = ["none", "bfq"]\n'
            + CLAIM + 'where = { scheduler = "none" }\n',
            ["15: matrix.schedulerr"],
        ),
        (
            GOOD + '[matrix]\nscheduler = ["none", "bfk"]\n'
            + CLAIM.replace("share.a", "total_vs_best") + 'where = { scheduler = "bfq" }\n',
            ["15: matrix.scheduler"],
        ),
        (
            GOOD + '[matrix]\n"tenant.*.latency_target" = ["1ms"]\n'
            + CLAIM + 'where = { "tenant.*.latency_target" = "1ms" }\n',
            ["15: matrix.tenant.*.latency_target"],
        ),
        (
            GOOD + '[matrix]\n"workload.iodep" = [1]\n'
            + '[compare]\ntitle = "t"\nx = "workload.iodepth"\nsource = "s"\n'
            + 'metric = "total_iops"\nseries = []\n',
            ["15: matrix.workload.iodep"],
        ),
    ],
)  # fmt: skip
def test_each_mistake_is_named_once(text: str, found: list[str]) -> None:
    assert all_wrong(text) == found


def test_a_verified_region_is_the_second_mistake_of_its_tenant() -> None:
    text = GOOD.replace('rw = "randrw"', 'rw = "write"\ncount = 2\nverify = true')
    assert "does not store" in wrong(text)


def test_a_study_with_very_many_mistakes_is_refused_soon() -> None:
    began = time.monotonic()
    lines = wrong(GOOD + "".join(f"z{number} = 1\n" for number in range(3000))).splitlines()
    assert lines == [lines[0]]
    tenants = "".join(f'[[tenant]]\nname = "t{n}"\nbs = "4q"\n' for n in range(30))
    seeds = f'[matrix]\n"run.seed" = {list(range(500))}\n'
    with pytest.raises(UserError) as caught:
        parse_study(GOOD + tenants + seeds, "x")
    assert "10 more errors" in caught.value.lines[-1]
    assert time.monotonic() - began < 10
