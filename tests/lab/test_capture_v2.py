# SPDX-License-Identifier: GPL-2.0-only
"""A capture by the kernel's block tracer, on cgroup v2: inside User Mode Linux, which then is the
machine, in real time. Its kernel has no BPF. (tests/host captures by BPF, on this machine.)"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from isoblk.campaign.execute import Bench

TIME_LIMIT_S = 600
REPOSITORY = Path(__file__).resolve().parents[2]

INIT = """\
#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C TERM=dumb
trap 'echo o > /proc/sysrq-trigger; sleep 9' EXIT
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir /dev/shm
mount -t tmpfs shm /dev/shm
mount -t tmpfs tmp /tmp
mount -t cgroup2 cgroup /sys/fs/cgroup
cd /tmp
export ISOBLK_STATE=/tmp/state PYTHONPATH={source} PYTHONDONTWRITEBYTECODE=1
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
condition() {{
    mkdir -p /tmp/d /tmp/t
    mount -t debugfs debugfs /tmp/d
    mount -t tracefs tracefs /tmp/t
    echo "$1 traced: $(find /tmp/d/block -name 'trace[0-9]*')"
    echo "$1 cgroups: $(cat /tmp/t/options/blk_cgroup)"
    echo "$1 journals: $(ls /tmp/state 2> /dev/null)"
    umount /tmp/d /tmp/t
}}
isoblk="{python} -m isoblk"
condition before
$isoblk capture $L -o one.isotrace -- sh load $L; echo "ended: $?"
cat one.isotrace.json | tr -d '\\n' | sed 's/^/names: /'; echo
$isoblk trace info one.isotrace --json | sed 's/^/info: /'; echo
condition after
$isoblk capture $L -o killed.isotrace & pid=$!
for i in $(seq 600); do
    grep -q blktrace /tmp/state/*.journal 2> /dev/null && break
    sleep 0.05
done
sleep 0.5
$isoblk capture $L -o again.isotrace --force; echo "again: $?"
kill -KILL $pid
wait $pid
condition killed
$isoblk host restore; echo "restored: $?"
condition restored
"""


def _condition(console: str, when: str) -> dict[str, str]:
    return dict(re.findall(rf"^{when} (\w+): ?(.*?)\r?$", console, re.MULTILINE))


def test_the_block_tracer_says_whose_requests_are_and_is_off_afterwards(
    default_bench: Bench, tmp_path: Path
) -> None:
    init = tmp_path / "init"
    init.write_text(INIT.format(source=REPOSITORY / "src", python=sys.executable))
    init.chmod(0o755)
    console = subprocess.run(
        [
            str(default_bench.kernel.linux),
            *("mem=1G", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro"),
            *(f"init={init}", "con=null", "con0=fd:0,fd:1", f"uml_dir={tmp_path}/"),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path)},
        timeout=TIME_LIMIT_S,
        check=False,
    ).stdout.decode(errors="replace")
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
    assert "is being captured already" in console
    killed = _condition(console, "killed")
    assert "trace0" in killed["traced"]
    assert killed["cgroups"] == "1"
    assert killed["journals"].endswith(".journal")
    assert "restored: 0" in console, console
    assert _condition(console, "restored") == before
