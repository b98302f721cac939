# SPDX-License-Identifier: GPL-2.0-only
"""Start processes at the same moment, with each other and with blkload's tenants.

Each process reports that it is ready, and opens a fifo, which blocks until the fifo is opened for
writing. All files except the fifo are in one directory of the run's.
"""

from isoblk.run.shell import Form, Name, Statement, Variable, fill, run
from isoblk.run.tier import Place

DIRECTORY = "programs"
READY = "ready"  # a line per waiting process
START = "start"  # time of the start, in ns of Unix time
SAMPLES = "samples"  # samples of the charges to the tenants' cgroups
STOP = "stop"  # exists when no more samples are wanted

# Not the shell's or BusyBox's, which may lack nanoseconds.
NOW = run("/usr/bin/date", "+%s%N")


class _Line(Form):
    WAIT = "echo {name} >> {ready}; : < {fifo}"


def fifo(place: Place, directory: str = "") -> str:
    """Return the path of the fifo. In a guest it is not in the run's directory, so that the host
    does not see it.

    Args:
        place: of the run's files.
        directory: of the files, with a trailing slash.
    """
    return "/run/go" if place.run.startswith("/") else f"{directory}go"


def wait(name: str, place: Place, directory: str = "") -> Statement:
    """Return the commands that wait."""
    return fill(_Line.WAIT, name=name, ready=f"{directory}{READY}", fifo=fifo(place, directory))


def pid_name(index: int) -> Name:
    """Return the shell variable for the process id of the tenant at `index`."""
    return Name(f"pid_{index}")


def pid(index: int) -> Variable:
    """Return that process id."""
    return Variable(f"pid_{index}")
