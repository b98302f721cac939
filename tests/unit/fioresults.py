# SPDX-License-Identifier: GPL-2.0-only
"""fio's JSON output, as far as isoblk reads it."""

from typing import Any


def fio_document(*jobs: dict[str, Any], **shared: str) -> dict[str, Any]:
    """A file of jobs; shared: its global options. All are direct."""
    return {
        "fio version": "fio-3.36",
        "global options": {"ioengine": "libaio", "direct": "1"} | shared,
        "jobs": list(jobs),
    }


def fio_job(
    name: str,
    options: dict[str, str],
    *,
    iops: float = 1000,
    bps: float = 0,
    mean_ns: float = 50_000,
    group: int = 0,
) -> dict[str, Any]:
    """A job that did nothing but what its `rw` says."""
    idle = {"iops": 0.0, "bw": 0, "bw_bytes": 0, "lat_ns": {"mean": 0.0}}
    bps = bps or iops * 4096
    busy = {
        "iops": iops,
        "bw": int(bps) // 1024,
        "bw_bytes": int(bps),
        "lat_ns": {"mean": mean_ns},
    }
    op = "write" if "write" in options["rw"] else "read"
    sections = {"read": idle, "write": idle, "trim": idle} | {op: busy}
    return {
        "jobname": name,
        "groupid": group,
        "error": 0,
        "job options": {"name": name, **options},
        **sections,
    }
