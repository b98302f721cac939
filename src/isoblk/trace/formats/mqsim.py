# SPDX-License-Identifier: GPL-2.0-only
"""MQSim's traces: DiskSim's fields with the time in whole nanoseconds.

    arrival_ns device sector sectors type

Type: 1 for a read, 0 for a write. DiskSim's own files have milliseconds with a fraction, which
distinguishes the two. Source: MQSim's documentation and examples, github.com/CMU-SAFARI/MQSim.
"""

from isoblk.trace.batch import Format
from isoblk.trace.formats import disksim

FORMAT = Format(
    "mqsim",
    "MQSim",
    lambda head: disksim.whole_times(head) * disksim.matches(head),
    disksim.batches(1),
    disksim.batches,
)
