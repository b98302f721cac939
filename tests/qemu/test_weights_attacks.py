# SPDX-License-Identifier: GPL-2.0-only
"""Attacks of an unprivileged user on weights, and on the process that follows them."""

import json
import re
import sys
import sysconfig
from pathlib import Path

from tests.qemu.guest import Guest
from tests.qemu.test_weights import MODULES, ROOT, SHELL

PYTHON = (
    f"env PYTHONPATH=/host{ROOT}/src:/host{sysconfig.get_path('purelib')}"
    f" /host{Path(sys.executable).resolve()} -B"
)

# nested ROOT NAME DEPTH; note CGROUP; as a user: what a cgroup of theirs lets them do.
TOOLS = """\
import os, sys
what, *words = sys.argv[1:]
if what == "nested":
    here = os.open(words[0], os.O_RDONLY)
    for _ in range(int(words[2])):
        os.mkdir(words[1], dir_fd=here)
        here, old = os.open(words[1], os.O_RDONLY, dir_fd=here), here
        os.close(old)
elif what == "note":
    try:
        print(os.getxattr(words[0], b"trusted.isoblk.weight").decode())
    except OSError:
        print("none")
elif what == "scope":
    os.chown(words[0], 1000, 1000)
    for name in ("cgroup.procs", "cgroup.subtree_control", "cgroup.threads"):
        os.chown(f"{words[0]}/{name}", 1000, 1000)
    os.setuid(1000)
    os.mkdir(f"{words[0]}/container")
    with open(f"{words[0]}/cgroup.subtree_control", "w") as file:
        file.write("+io")
    with open(f"{words[0]}/container/io.weight", "w") as file:
        file.write("9000")
elif what == "user":
    import isoblk.cli.main as isoblk
    # Once as root, who can read what is imported on the way.
    for user in (0, 1000):
        os.setuid(user)
        sys.argv = ["isoblk", *words]
        try:
            isoblk.main()
        except SystemExit:
            pass
"""

SCRIPT = f"""{SHELL}
cat > /run/tools.py << 'EOF'
{TOOLS}EOF
tool() {{ {PYTHON} /run/tools.py "$@"; }}
has() {{ say "$1: $(head -n 1 /sys/fs/cgroup/$2/io.isoblk.weight)"; }}
alive() {{ kill -0 $agent 2> /dev/null && say "$1: alive" || say "$1: $(cat /run/said)"; }}
# What was written to "mark" comes last in the queue of events.
mark=100
caught_up() {{
    mark=$((mark + 1))
    echo $mark > /sys/fs/cgroup/mark/io.weight
    for i in $(seq 600); do
        grep -qx "default $mark" /sys/fs/cgroup/mark/io.isoblk.weight && return
        sleep 0.1
    done
    say "never caught up: $(cat /run/said)"
}}
cd /sys/fs/cgroup
echo +io > cgroup.subtree_control
for name in mark never early stays.scope user.scope; do mkdir $name; done
echo 250 > early/io.weight
tool nested . d 1200
tool nested . $(printf '%0250d' 0) 18
mkdir "$(printf 'red\\033[31m\\377')"

# The modules come after the agent.
follow
[ ! -e early/io.isoblk.weight ] && say "no file yet"
insmod /run/isoblk/modules/isoblk_share.ko
insmod /run/isoblk/modules/isoblk-iosched.ko
insmod /run/isoblk/modules/isoblk_vdisk.ko
for i in $(seq 300); do grep -qx "default 250" early/io.isoblk.weight && break; sleep 0.1; done
has "modules after the agent" early
mkdir /sys/kernel/config/isoblk_vdisk/disk0
echo 1 > /sys/kernel/config/isoblk_vdisk/disk0/power
disk=$(cat /sys/block/disk0/dev)
caught_up
alive "1,200 deep"

# A file that may only be written to.
echo 1 > /sys/bus/pci/rescan
caught_up
alive rescan

# The controller is switched off and on: what was ours is not ours any more.
say "note: $(tool note early)"
echo -io > cgroup.subtree_control
echo +io > cgroup.subtree_control
caught_up
has "switched off and on" early
say "note: $(tool note early)"
echo 250 > early/io.isoblk.weight
echo 100 > early/io.weight
caught_up
has "then by hand" early

# Gone, and made again under the same name, quickly.
for i in $(seq 30); do
    mkdir again && echo $((i + 200)) > again/io.weight && rmdir again
done
mkdir again && echo 500 > again/io.weight
caught_up
has again again

# A user's own.
tool scope user.scope
caught_up
has "a user's scope" user.scope

# A disk goes, and another comes, mostly with its number.
echo isoblk > /sys/block/disk0/queue/scheduler
for i in $(seq 300); do grep -q "^$disk " io.cost.qos && break; sleep 0.1; done
echo "$disk 900" > again/io.weight
caught_up
say "disk: $(sed "s/^$disk/disk/" again/io.isoblk.weight | tr '\\n' ' ')"
rmdir /sys/kernel/config/isoblk_vdisk/disk0
mkdir /sys/kernel/config/isoblk_vdisk/disk1
echo 1 > /sys/kernel/config/isoblk_vdisk/disk1/power
echo isoblk > /sys/block/disk1/queue/scheduler
caught_up
say "other disk: $(cat again/io.isoblk.weight | tr '\\n' ' ')"
say "note: $(tool note again)"

# Chosen whole or not at all.
mount -t tmpfs none /etc/udev/rules.d
isoblk disk use none disk1 --tags 1000000 2>&1 | sed 's/^/tags: /' >> /run/isoblk/told
say "after: $(cat /sys/block/disk1/queue/scheduler)"
say "rules: $(ls /etc/udev/rules.d)"

# What somebody sees who is not root.
tool user weights --disk disk1 --for 0.1 --json > /run/isoblk/user
isoblk weights --disk disk1 --for 0.1 --all > /run/isoblk/all

# Nobody asked for it, nobody wrote it.
has "never written to" never
say "note: $(tool note never)"
say "early: $(tool note early)"
alive end
kill $agent; wait $agent; say "ended: $?"

# The modules go first, and then it is to be taken back.
say "note: $(tool note again)"
echo none > /sys/block/disk1/queue/scheduler
rmdir /sys/kernel/config/isoblk_vdisk/disk1
rmmod isoblk_vdisk isoblk-iosched isoblk_share
isoblk weights follow --undo >> /run/isoblk/told
say "note: $(tool note again)"
"""


TOLD = """\
no file yet
modules after the agent: default 250
1,200 deep: alive
rescan: alive
note: default 250
switched off and on: default 100
note: none
then by hand: default 250
again: default 500
a user's scope: default 100
disk: default 500 disk 900
other disk: default 500
note: default 500
tags: isoblk: /sys/devices/virtual/block/disk1/queue/nr_requests:\
 the kernel refuses 1000000: Invalid argument
after: none mq-deadline kyber bfq [isoblk]
rules:
never written to: default 100
note: none
early: none
end: alive
ended: 0
note: default 500
removed the mirrored weights of 3 cgroups
note: none
"""


def test_no_attack_ends_weights_follow_or_causes_a_write_that_was_not_requested(
    stock_guest: Guest,
) -> None:
    left = stock_guest.run(SCRIPT, modules=MODULES, load=False, memory_mib=1024)
    assert re.sub(r" +$", "", left.read("told"), flags=re.MULTILINE) == TOLD
    told = [json.loads(line)["disks"][0] for line in left.read("user").splitlines()]
    assert [one["scheduler"] for one in told] == ["isoblk", "isoblk"]
    disk = told[1]
    found = {one["path"]: one for one in disk["cgroups"]}
    assert (found["/again"]["weight"], found["/again"]["set_by"]) == (500, "io.weight")
    assert disk["divides"].startswith("time of the device")
    assert "/red\x1b[31m\\xff" in found
