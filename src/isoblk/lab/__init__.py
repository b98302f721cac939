# SPDX-License-Identifier: GPL-2.0-only
"""The lab as a library: run studies from Python, and read results as tables.

    import isoblk

    with isoblk.Lab.open(jobs=2) as lab:
        results = lab.run("studies/weights.toml", "results/weights")
    results.tenants.filter(scheduler="isoblk")

The commands use the same class. docs/guides/python.md has more.
"""

from isoblk.lab.lab import Lab
from isoblk.lab.tables import Results, load

__all__ = ["Lab", "Results", "load"]
