# SPDX-License-Identifier: GPL-2.0-only
"""How processes start at the same moment, with each other and with blkload's tenants.

Each says that it is ready and opens a fifo, in which it waits until somebody opens that for
writing. All files are in one directory of the run's.
"""

DIRECTORY = "programs"
GO = "go"  # the fifo
READY = "ready"  # a line for each that waits
START = "start"  # when they were let go, in ns of Unix time
SAMPLES = "samples"  # what the tenants' cgroups were charged with, again and again
STOP = "stop"  # is there when no more samples are wanted

# Not the shell's or BusyBox's, which may know no nanoseconds.
NOW = "/usr/bin/date +%s%N"


def wait(name: str, directory: str = "") -> str:
    """Commands that wait. directory: where the files are, with a slash at its end."""
    return f"echo {name} >> {directory}{READY}; : < {directory}{GO}"


def pid_variable(index: int) -> str:
    """Shell variable that holds the process id of the tenant at `index`."""
    return f"pid_{index}"
