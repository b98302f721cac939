# SPDX-License-Identifier: GPL-2.0-only
"""A capture by the kernel's block tracer, on cgroup v2: inside User Mode Linux, which then is the
machine, in real time. Its kernel has no BPF. (tests/host captures by BPF, on this machine.)"""

import json
import re
from pathlib import Path

import pytest

from isoblk.campaign.execute import Bench
from tests.lab.machine import boot

TIME_LIMIT_S = 600

INIT = """\
echo +io > /sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/a /sys/fs/cgroup/b
echo 300 > /sys/fs/cgroup/a/io.bfq.weight
truncate -s 16M /dev/shm/disk
L=$(losetup --find --show /dev/shm/disk)
cat > load <<'EOF'
(echo 0 > /sys/fs/cgroup/a/cgroup.procs
 exec dd if=$1 of=/dev/null bs=4k count=200 skip=8 iflag=direct 2> /dev/null)
(echo 0 > /sys/fs/cgroup/b/cgroup.procs
 exec dd if=/dev/zero of=$1 bs=64k count=20 oflag=direct conv=fsync 2> /dev/null)
EOF
condition() {
    mkdir -p /run/work/d /run/work/t
    mount -t debugfs debugfs /run/work/d
    mount -t tracefs tracefs /run/work/t
    echo "$1 traced: $(find /run/work/d/block -name 'trace[0-9]*')"
    echo "$1 cgroups: $(cat /run/work/t/options/blk_cgroup)"
    echo "$1 journals: $(ls /run/work/state 2> /dev/null)"
    umount /run/work/d /run/work/t
}
condition before
isoblk capture $L -o one.isotrace -- sh load $L; echo "ended: $?"
cat one.isotrace.json | tr -d '\\n' | sed 's/^/names: /'; echo
isoblk trace info one.isotrace --json | sed 's/^/info: /'; echo
condition after
isoblk capture $L -o killed.isotrace & pid=$!
for i in $(seq 600); do
    grep -q blktrace /run/work/state/*.journal 2> /dev/null && break
    sleep 0.05
done
sleep 0.5
isoblk capture $L -o again.isotrace --force; echo "again: $?"
kill -KILL $pid
wait $pid
condition killed
isoblk host restore; echo "restored: $?"
condition restored
"""


def _condition(console: str, when: str) -> dict[str, str]:
    return dict(re.findall(rf"^{when} (\w+): ?(.*?)\r?$", console, re.MULTILINE))


@pytest.mark.long
def test_the_block_tracer_says_whose_requests_are_and_is_off_afterwards(
    default_bench: Bench, tmp_path: Path
) -> None:
    console = boot(default_bench, tmp_path, INIT, time_limit_s=TIME_LIMIT_S)
    assert "ended: 0" in console, console
    (names,) = re.findall(r"^names: (.*?)\r?$", console, re.MULTILINE)
    captured = json.loads(names)
    assert (captured["backend"], captured["cgroups"], captured["lost"]) == ("blktrace", "v2", 0)
    streams = {one["cgroup"]: one for one in captured["streams"]}
    assert streams["/a"]["requests"] == 200
    assert streams["/b"]["requests"] == 21
    assert streams["/a"]["weights"]["io.bfq.weight"] == 300
    assert [one["name"] for one in streams["/a"]["processes"]] == ["dd"]
    (told,) = re.findall(r"^info: (.*?)\r?$", console, re.MULTILINE)
    info = {one["name"]: one for one in json.loads(told)["streams"]}
    assert (info["/a"]["lowest"], info["/a"]["end"]) == (32_768, 32_768 + 200 * 4096)
    assert (info["/b"]["lowest"], info["/b"]["bytes"]) == (0, 20 * 65_536)
    before = _condition(console, "before")
    assert before == {"traced": "", "cgroups": "0", "journals": ""}
    assert _condition(console, "after") == before
    assert "again: 2" in console
    assert "is already being captured" in console
    killed = _condition(console, "killed")
    assert "trace0" in killed["traced"]
    assert killed["cgroups"] == "1"
    assert killed["journals"].endswith(".journal")
    assert "restored: 0" in console, console
    assert _condition(console, "restored") == before
