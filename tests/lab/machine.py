# SPDX-License-Identifier: GPL-2.0-only
"""User Mode Linux as a machine of its own, in real time, that isoblk itself runs on."""

import subprocess
from pathlib import Path

from isoblk.campaign.execute import Bench
from isoblk.kernel import host_library
from isoblk.machine.process import PATH
from tests.lab.guest import PYTHON, ROOT, SEE_HOST, on_host

# The beginning of an init. Only files in /run and /dev/shm can be written.
BEGIN = f"""\
#!/bin/sh
export PATH=/run/bin:{PATH} LC_ALL=C TERM=dumb
trap 'echo o > /proc/sysrq-trigger; sleep 9' EXIT
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir /dev/shm
mount -t tmpfs shm /dev/shm
mount -t tmpfs run /run
{SEE_HOST}
mount -t cgroup2 cgroup /sys/fs/cgroup
mkdir /run/work
cd /run/work
export HOME=/run/work TMPDIR=/run/work ISOBLK_STATE=/run/work/state
export PYTHONPATH={on_host(ROOT / "src")} PYTHONDONTWRITEBYTECODE=1
mkdir /run/bin
cat > /run/bin/isoblk << 'END'
#!/bin/sh
exec {PYTHON} -m isoblk "$@"
END
chmod +x /run/bin/isoblk
"""


def boot(bench: Bench, directory: Path, script: str, *, time_limit_s: float) -> str:
    """Run a script as the machine's init, in a directory of its own; the console."""
    init = directory / "init"
    init.write_text(BEGIN + script)
    init.chmod(0o755)
    with host_library(bench.kernel).open("rb") as library:
        return subprocess.run(
            [
                str(bench.kernel.linux),
                *("mem=1G", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro"),
                *("init=/proc/self/cwd/init", "con=null", "con0=fd:0,fd:1", "uml_dir=./"),
            ],
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={
                "PATH": PATH,
                "TMPDIR": str(directory),
                "LD_PRELOAD": f"/proc/self/fd/{library.fileno()}",
            },
            pass_fds=(library.fileno(),),
            timeout=time_limit_s,
            check=False,
        ).stdout.decode(errors="replace")
