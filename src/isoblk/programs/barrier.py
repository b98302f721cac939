# SPDX-License-Identifier: GPL-2.0-only
"""How processes start at the same moment, with each other and with blkload's tenants.

Each says that it is ready and opens a fifo, in which it waits until somebody opens that for
writing. All files but the fifo are in one directory of the run's.
"""

from isoblk.run.shell import Form, Name, Statement, Variable, fill, run
from isoblk.run.tier import Place

DIRECTORY = "programs"
READY = "ready"  # a line for each that waits
START = "start"  # when they were let go, in ns of Unix time
SAMPLES = "samples"  # what the tenants' cgroups were charged with, again and again
STOP = "stop"  # is there when no more samples are wanted

# Not the shell's or BusyBox's, which may know no nanoseconds.
NOW = run("/usr/bin/date", "+%s%N")


class _Line(Form):
    WAIT = "echo {name} >> {ready}; : < {fifo}"


def fifo(place: Place, directory: str = "") -> str:
    """The fifo. In a guest it is not in the run's directory: the host need not know of it.

    Args:
        place: of the run's files.
        directory: where the files are, with a slash at its end.
    """
    return "/run/go" if place.run.startswith("/") else f"{directory}go"


def wait(name: str, place: Place, directory: str = "") -> Statement:
    """Commands that wait."""
    return fill(_Line.WAIT, name=name, ready=f"{directory}{READY}", fifo=fifo(place, directory))


def pid_name(index: int) -> Name:
    """Shell variable for the process id of the tenant at `index`."""
    return Name(f"pid_{index}")


def pid(index: int) -> Variable:
    """That process id."""
    return Variable(f"pid_{index}")
