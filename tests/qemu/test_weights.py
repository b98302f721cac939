# SPDX-License-Identifier: GPL-2.0-only
"""io.weight is mirrored to io.isoblk.weight, on Debian's own kernel."""

import json
import re
import sys
import sysconfig
from pathlib import Path

from tests.lab.load import START, STOP, cgroup, nullb, tenant
from tests.qemu.guest import Guest

ROOT = Path(__file__).resolve().parents[2]
MODULES = ("isoblk_share", "isoblk-iosched", "isoblk_vdisk")
# In the guest the host's files are below /host, to which no link of theirs leads.
PACKAGES = sysconfig.get_path("purelib")
ISOBLK = (
    f"env PYTHONPATH=/host{ROOT / 'src'}:/host{PACKAGES} /host{Path(sys.executable).resolve()}"
    " -B -m isoblk"
)

SHELL = f"""
isoblk() {{ {ISOBLK} "$@"; }}
say() {{ echo "$*" >> /run/isoblk/told; }}
follow() {{
    rm -f /run/said; {ISOBLK} weights follow > /run/said 2>&1 & agent=$!
    for i in $(seq 1000); do grep -q following /run/said && return; sleep 0.1; done
    say "the agent does not begin: $(cat /run/said)"
}}
"""
SCRIPT = f"""{SHELL}
# has WORDS CGROUP: what its file holds. $disk: as the word.
has() {{ say "$1: $(sed "s/^$disk /disk /" /sys/fs/cgroup/$2/io.isoblk.weight | tr '\\n' ' ')"; }}
# until CGROUP TEXT: the file holds TEXT, after half a minute at the most.
until_() {{
    for i in $(seq 300); do
        grep -qx "$2" /sys/fs/cgroup/$1/io.isoblk.weight && return
        sleep 0.1
    done
    say "$1 never had $2"
}}
mkdir /sys/kernel/config/isoblk_vdisk/disk0
echo 1 > /sys/kernel/config/isoblk_vdisk/disk0/power
disk=$(cat /sys/block/disk0/dev)
cd /sys/fs/cgroup
echo +io > cgroup.subtree_control
mkdir before && echo 250 > before/io.weight
follow
has before before
mkdir after && echo 400 > after/io.weight
until_ after "default 400"
has after after
mkdir -p after/deep
echo +io > after/cgroup.subtree_control
echo "default 300" > after/deep/io.weight
until_ after/deep "default 300"
has deep after/deep

# crun's: the weight is below the scope, and is to count there as well.
mkdir -p pod.scope/container
echo +io > pod.scope/cgroup.subtree_control
echo 600 > pod.scope/container/io.weight
until_ pod.scope "default 600"
has scope pod.scope
has container pod.scope/container
echo 50 > pod.scope/io.weight
until_ pod.scope "default 50"
has "its own" pod.scope
rmdir pod.scope/container pod.scope

# A container's, of which systemd knows nothing: number 1, as this shell is.
mkdir pod
sh -c 'echo 450 > pod/io.weight'
until_ pod "default 450"
echo 100 > pod/io.weight
echo 252 > before/io.weight
until_ before "default 252"
has "reload by $$" pod
sh -c 'echo 100 > pod/io.weight'
until_ pod "default 100"
has "taken by another" pod
rmdir pod

# By hand; then given back. What is written to "before" comes later, in the same queue.
echo 777 > after/io.isoblk.weight
echo 500 > after/io.weight
echo 251 > before/io.weight
until_ before "default 251"
has byhand after
echo default > after/io.isoblk.weight
until_ after "default 500"
has back after

# Killed, and what happens meanwhile.
kill -9 $agent; wait $agent || true
echo 222 > before/io.weight
echo 333 > after/deep/io.isoblk.weight
follow
has "meanwhile" before
has "meanwhile by hand" after/deep

# A disk's own weight, before and after the disk has the scheduler.
echo isoblk > /sys/block/disk0/queue/scheduler
for i in $(seq 300); do
    grep -q "^$disk " io.cost.qos && break
    sleep 0.1
done
say "qos: $(sed "s/$disk/disk/; s/ ctrl=.*//" io.cost.qos)"
echo "$disk 900" > before/io.weight
until_ before "$disk 900"
has scheduler before
echo none > /sys/block/disk0/queue/scheduler
echo isoblk > /sys/block/disk0/queue/scheduler
until_ before "$disk 900"
has "again" before
echo none > /sys/block/disk0/queue/scheduler

# The modules come anew, and know nothing.
rmmod isoblk-iosched isoblk_share
insmod /run/isoblk/modules/isoblk_share.ko
until_ before "default 222"
has reloaded before

# A second one, and the end.
isoblk weights follow 2>&1 | sed 's/^/second: /' >> /run/isoblk/told
kill $agent; wait $agent; say "ended: $?"
isoblk weights follow --undo | sed 's/^/undone: /' >> /run/isoblk/told
has taken before
grep following /run/said | sed 's/^/said: /' >> /run/isoblk/told
"""


TOLD = """\
before: default 250
after: default 400
deep: default 300
scope: default 600
container: default 600
its own: default 50
reload by 1: default 450
taken by another: default 100
byhand: default 777
back: default 500
meanwhile: default 222
meanwhile by hand: default 333
qos: disk enable=0
scheduler: default 222 disk 900
again: default 222 disk 900
reloaded: default 222
second: isoblk: weights are followed already; see: systemctl status isoblk-weights
ended: 0
undone: removed the mirrored weights of 3 cgroups
taken: default 100
said: following the weights of 3 cgroups
"""


def test_weights_follow_whatever_becomes_of_agent_modules_and_disk(stock_guest: Guest) -> None:
    left = stock_guest.run(SCRIPT, modules=MODULES, memory_mib=1024)
    assert re.sub(r" +$", "", left.read("told"), flags=re.MULTILINE) == TOLD


WEIGHTS = {"gold": 400, "silver": 200, "bronze": 100}
SCHEDULERS = ("isoblk", "kyber-fair", "feedbac")


def test_a_weight_that_was_set_elsewhere_divides_and_is_shown(stock_guest: Guest) -> None:
    lines = [SHELL, "mount -t tmpfs none /etc/udev/rules.d"]
    # Slow enough for emulated processors: 2,000 requests a second.
    lines += [nullb("disk0", completion_nsec=8_000_000, hw_queue_depth=16, memory_backed=0)]
    lines += [cgroup("/top"), "echo 50 > /sys/fs/cgroup/top/io.weight"]
    for name, weight in WEIGHTS.items():
        lines += [
            cgroup(f"/top/{name}"),
            f"echo {weight} > /sys/fs/cgroup/top/{name}/io.weight",
            tenant(name, rw="randread", iodepth=32, runtime="600s", cgroup=f"/top/{name}"),
        ]
    lines += ["mkdir /sys/fs/cgroup/top/gold/below", "follow", START]
    for scheduler in SCHEDULERS:
        lines += [
            f"isoblk disk use {scheduler} disk0 --tags 128 >> /run/isoblk/told",
            f"isoblk weights --disk disk0 --for 5 --json > /run/isoblk/{scheduler}",
        ]
    lines += [
        "isoblk weights > /run/isoblk/tree",
        "cat /etc/udev/rules.d/90-isoblk.rules > /run/isoblk/rules",
        "isoblk disk reset disk0 >> /run/isoblk/told",
        "ls /etc/udev/rules.d >> /run/isoblk/told",
        "isoblk weights >> /run/isoblk/told 2>&1 || say $?",
        STOP,
        "kill $agent; wait $agent",
    ]
    modules = ("null_blk", "blkload", "isoblk_share", *(f"{name}-iosched" for name in SCHEDULERS))
    left = stock_guest.run("\n".join(lines), modules=modules, memory_mib=1024)
    for scheduler in SCHEDULERS:
        (disk,) = json.loads(left.read(scheduler))["disks"]
        assert (disk["scheduler"], disk["tags"]) == (scheduler, 128)
        found = {one["path"]: one for one in disk["cgroups"]}
        for name, weight in WEIGHTS.items():
            one = found[f"/top/{name}"]
            # The default is 100.
            assert (one["weight"], one["set_by"]) == (weight, "io.weight" if weight != 100 else "")
            assert abs(one["promised"] - weight / 700) < 1e-9
            assert abs(one["got"] - weight / 700) < 0.05
    assert left.read("rules").splitlines()[-1] == (
        'ACTION=="add", SUBSYSTEM=="block", ENV{DEVTYPE}=="disk", KERNEL=="disk0",'
        ' ATTR{queue/scheduler}="feedbac", ATTR{queue/nr_requests}="128"'
    )
    told = left.read("told").splitlines()
    assert told.pop(1).startswith("disk0: generic cost model of its kind; ")
    assert told == [
        *(f"disk0: {one}, 128 tags, also after the next boot" for one in SCHEDULERS),
        "disk0: none, 16 tags",
        "isoblk: no disk of this machine has a scheduler with weights;"
        " choose one: isoblk disk use isoblk DISK",
        "2",
    ]
