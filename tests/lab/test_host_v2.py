# SPDX-License-Identifier: GPL-2.0-only
"""The host machine on cgroup v2, whatever this machine has: inside User Mode Linux, which then is
the machine, in real time. (tests/host has it on this machine's own cgroups.)"""

import re
from pathlib import Path

import pytest

from isoblk.campaign.execute import Bench
from tests.lab.machine import boot

TIME_LIMIT_S = 600

STUDY = """\
name = "v2"
device = "fast"

[run]
warmup = "100ms"
runtime = "300ms"

[workload]
rw = "randread"
bs = "64k"
iodepth = 8

[[tenant]]
name = "a"
weight = 300
cgroup = "apps/a"

[[tenant]]
name = "b"

[matrix]
scheduler = ["bfq", "io.cost", "io.max", "io.latency"]
"""

# Of a program that reads a file on a mounted file system.
RUNNING = """\
name = "running"
device = "fast"

[run]
warmup = "100ms"
runtime = "1s"

[[tenant]]
name = "web"
workload = "running"
cgroup = "/user.slice/web"
weight = 300

[matrix]
scheduler = ["bfq", "mq-deadline"]
"""

INIT = """\
condition() {
    echo "$1 cgroups: $(find /sys/fs/cgroup -mindepth 1 -type d | tr '\\n' ' ')"
    echo "$1 control: $(cat /sys/fs/cgroup/cgroup.subtree_control)"
    echo "$1 scheduler: $(cat /sys/block/loop0/queue/scheduler)"
    echo "$1 cost: $(grep -c 'enable=1' /sys/fs/cgroup/io.cost.qos)"
    echo "$1 loops: $(losetup --all)"
    echo "$1 journals: $(ls /run/work/state 2> /dev/null)"
    echo "$1 below: $(cat /sys/fs/cgroup/user.slice/cgroup.subtree_control 2> /dev/null)"
}
host="isoblk run --machine host"
run="$host /dev/shm/study.toml --loop 16m"
condition before
$run; echo "ended: $?"
condition after
grep -h '"status"' results/v2-host/runs/*/run.json
$run -o killed & pid=$!
until [ "$(cat /sys/fs/cgroup/isoblk-loop0/apps/a/cgroup.procs 2> /dev/null)" ]; do sleep 0.01; done
kill -KILL $pid
wait $pid
condition killed
isoblk host restore; echo "restored: $?"
condition restored
truncate -s 64M /dev/shm/disk
loop=$(losetup --find --show /dev/shm/disk)
mkfs.ext4 -q $loop && mkdir /dev/shm/fs && mount $loop /dev/shm/fs
dd if=/dev/zero of=/dev/shm/fs/file bs=1M count=16 conv=fsync status=none
mkdir -p /sys/fs/cgroup/user.slice/web
sh -c 'echo 0 > /sys/fs/cgroup/user.slice/web/cgroup.procs
    while dd if=/dev/shm/fs/file of=/dev/null bs=64k iflag=direct status=none; do :; done' & web=$!
condition idle
$host /dev/shm/running.toml --device $loop; echo "running: $?"
condition left
grep -h '"status"' results/running-host/runs/*/run.json
grep -hA2 'web/io.bfq.weight' results/running-host/runs/*/run.json
kill -0 $web && echo "web goes on"
"""


def _condition(console: str, when: str) -> dict[str, str]:
    return dict(re.findall(rf"^{when} (\w+): ?(.*?)\r?$", console, re.MULTILINE))


@pytest.mark.long
def test_all_controllers_of_v2_and_a_running_tenant_leave_nothing(
    default_bench: Bench, tmp_path: Path
) -> None:
    studies = "".join(
        f"cat > /dev/shm/{name}.toml << 'END'\n{text}END\n"
        for name, text in (("study", STUDY), ("running", RUNNING))
    )
    console = boot(default_bench, tmp_path, studies + INIT, time_limit_s=TIME_LIMIT_S)
    assert "ended: 0" in console, console
    before = _condition(console, "before")
    assert set(before) == {"cgroups", "control", "scheduler", "cost", "loops", "journals", "below"}
    assert _condition(console, "after") == before
    killed = _condition(console, "killed")
    assert "isoblk-loop0" in killed["cgroups"]
    assert killed["control"] == "io"
    assert killed["loops"] != ""
    assert "restored: 0" in console, console[console.index("killed cgroups") :]
    assert _condition(console, "restored") == before
    assert "running: 0" in console, console[console.index("idle cgroups") :]
    # Four, the one alone, the reference, and six for io.cost's model.
    # Of the running tenant: two, and the reference.
    assert console.count('"status": "valid"') == 12 + 3, console
    assert '"got": "default 300"' in console or '"got": "300"' in console, console
    assert _condition(console, "left") == _condition(console, "idle")
    assert "web goes on" in console
