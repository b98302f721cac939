# SPDX-License-Identifier: GPL-2.0-only
"""Try out whether a guest runs on this machine: it boots, loads the modules, writes and reads a
disk.

An error that would fail every run is thereby found in a fraction of a second, before the first.
"""

import errno
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from isoblk.campaign.execute import Bench, DiskFullError
from isoblk.errors import RunError
from isoblk.machine import Ran
from isoblk.machine.uml import memory_mib
from isoblk.plan.plan import CONFIGFS, DISK, RUN_DIR, prologue
from isoblk.run.shell import render
from isoblk.schedulers.registry import OWN_MODULES

# All modules that a run may need, in order of loading.
MODULES = (
    *("isoblk_vdisk", "null_blk", "blkload", "dm-setcache"),
    *OWN_MODULES,
)
_BLOCK = 65536
_SCRIPT = f"""\
cd {CONFIGFS}/isoblk_vdisk
mkdir {DISK}
echo memory > {DISK}/store
echo 1m > {DISK}/size
echo 1 > {DISK}/power
dd if={RUN_DIR}/plan.sh of=/dev/{DISK} bs={_BLOCK} count=1 conv=sync oflag=direct 2> /dev/null
dd if=/dev/{DISK} of={RUN_DIR}/read bs={_BLOCK} count=1 iflag=direct 2> /dev/null
"""


def try_out(bench: Bench, where: Path | None = None) -> Ran:
    """Run a guest that does a little of everything.

    Args:
        bench: with a uml machine.
        where: directory for its files, which are removed; None for a temporary one.

    Returns:
        Time and memory of the guest.

    Raises:
        UserError: the machine does not let guests run, for a known reason.
        RunError: the guest fails for another reason.
        DiskFullError: its files do not fit.
    """
    try:
        return _tried(bench, where)
    except OSError as error:
        # The error may name the source of the copy, which is not at fault.
        place = str(where or gettempdir())
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFullError("the disk is full", where=place, next="free some space") from None
        raise RunError(
            f"cannot write the files of a trial guest: {error.strerror}", where=place
        ) from None


def _tried(bench: Bench, where: Path | None) -> Ran:
    with TemporaryDirectory(prefix=".trial-", dir=where) as temporary:
        directory = Path(temporary)
        # Of schedulers from another state, those that exist there.
        there = tuple(name for name in MODULES if name in bench.modules or name not in OWN_MODULES)
        script = "\n".join([render(prologue(there, "v2")), _SCRIPT])
        (directory / "plan.sh").write_text(script)
        modules = bench.module_files(there)
        try:
            ran = bench.machine.run(directory, modules, seed=1, memory_mib=memory_mib(tenants=1))
            read = (directory / "read").read_bytes()
        except RunError as error:
            raise RunError(f"no guest runs here: {error}") from None
        if read.rstrip(b"\0") != script.encode():
            raise RunError("no guest runs here: its disk returned other data than were written")
    return ran
