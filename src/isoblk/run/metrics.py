# SPDX-License-Identifier: GPL-2.0-only
"""The metrics a claim may speak of. A name that ends in ".<tenant>" is one a tenant."""

import re
from collections.abc import Callable, Collection

PER_TENANT = ".<tenant>"
SAYS = "says."
_SAYS_METRIC = "says.<tenant>.<figure>"
RATIO = "weight_ratio_error"
"""The metric that a claim may restrict to some of the tenants."""
SERVICE_ERROR = "service_error"
LOST = "lost"
"""The metrics that need runs of their own."""
PER_FIGURE = ".<figure>"
CACHE = "cache"
# Of the measured pass. top: the cached device. read_hit_ratio: reads that the SSD answered, by the
# cache's own count. asked: by the tenants.
# bypassed_bytes: what it chose not to cache, where it tells. ssd.write_bps: ssd.write_bytes over
# the time that the load ran. ssd.write_factor: ssd.write_bytes for each byte that the tenants
# read or wrote; ssd.read_factor likewise.
CACHE_FIGURES = (
    "read_hit_ratio",
    "bypassed_bytes",
    "ssd.write_bps",
    "ssd.read_factor",
    "ssd.write_factor",
    "asked.read_bytes",
    "asked.write_bytes",
    *(
        f"{where}.{what}"
        for where in ("top", "origin", "ssd")
        for what in ("reads", "read_bytes", "writes", "write_bytes")
    ),
)

METRICS: dict[str, str] = {
    "share.<tenant>": "the tenant's bytes / all tenants' bytes, in the measured time",
    RATIO: "max over tenants of |share / plain weight share - 1|",
    "share_error": "max over tenants of |share / ideal - 1|; the ideal is the weighted "
    "max-min fair share, in which nobody gets more than it reaches alone",
    SERVICE_ERROR: "share_error of service: a tenant's rate / the rate of its kind of requests "
    "alone and without end, in place of its bytes",
    "jain": "Jain's index (sum y)^2 / (n sum y^2) over y = bytes / weight share; 1 is fair",
    "total_iops": "requests a second, all tenants",
    "total_bps": "bytes a second, all tenants",
    "total_vs_none": "total_bps / total_bps of `none` at the same study point",
    "total_vs_best": "total_bps / the larger of those of `none` and of `kyber` at the same study "
    "point",
    LOST: "1 - total_bps / the most that exact shares allow: that of `none` at the same study "
    "point, or less where the tenants have too few requests",
    "jain_in_group": "the least of Jain's indexes of each cgroup that holds several tenants",
    "least_in_group": "the least, over cgroups that hold three tenants or more, of what the "
    "least of these got / their median",
    "iops.<tenant>": "the tenant's requests / the time it was measured, which ends with its work",
    "bps.<tenant>": "the tenant's bytes / the time it was measured",
    "slowdown.<tenant>": "the tenant's rate alone on the device / its rate in this run",
    "p50.<tenant>": "median latency, ns, all ops together",
    "p99.<tenant>": "99th percentile of latency, ns, all ops together",
    "p99_9.<tenant>": "99.9th percentile of latency, ns, all ops together",
    "p99_99.<tenant>": "99.99th percentile of latency, ns, all ops together",
    "p99_excess.<tenant>": "p99 / the larger of twice its p99 alone and its p99 alone + the "
    "device's time for one request of another tenant",
    "mean_latency.<tenant>": "mean latency, ns, all ops together",
    "share_error_100ms": "95th percentile of the share error over the run's windows",
    "share_error_100ms_max": "the largest share error of the run's windows",
    "converged_ms": "longest time that the shares took to follow a change of demand or weight, "
    "ms; without end if they did not",
    "prediction_error": "feedbac: largest |predicted / used - 1| of a prediction period that ended "
    "in the measured time",
    "prediction_error_mean": "feedbac: the mean of |predicted / used - 1| over those periods",
    "prediction_settled_ms": "feedbac: longest time from a change of the device to the end of the "
    "last prediction period that is off by more than 1 %, ms; without end if the last one is",
    "says.<tenant>.<figure>": "what the tenant's program says itself, as in the report's "
    "table: bytes, operations or ns",
    "cache.<figure>": "of a study with an SSD: " + ", ".join(CACHE_FIGURES),
    "burst_ms.<tenant>": "the most that the tenant got beyond its share by weight in any stretch "
    "of 100 ms windows, in ms of that share",
}


_PLACE = re.compile(r"\{(than\.)?([^{}]*)\}")


def places(why: str) -> list[tuple[str, bool]]:
    """The metrics that a claim's reason gives figures of, and whether they are the other run's."""
    return [(match[2], bool(match[1])) for match in _PLACE.finditer(why)]


def fill(why: str, value: Callable[[str, bool], str]) -> str:
    """A claim's reason with figures. value: text of a metric, and of which run: places()."""
    return _PLACE.sub(lambda match: value(match[2], bool(match[1])), why)


def split_says(name: str, tenants: Collection[str]) -> tuple[str, str] | None:
    """The tenant and the figure of "says.TENANT.FIGURE"; None if it is none of those tenants'.

    Both may have dots in them: of several tenants that fit, the one with the longest name.
    """
    rest = name.removeprefix(SAYS)
    fits = [one for one in tenants if rest != name and rest.startswith(f"{one}.")]
    if not fits:
        return None
    tenant = max(fits, key=len)
    return tenant, rest[len(tenant) + 1 :]


def split_metric(name: str, tenants: Collection[str]) -> tuple[str, str | None]:
    """A metric's name in METRICS, and the tenant it is about (None: it is about the run).

    Args:
        name: as a claim has it: "jain", "share.web".
        tenants: names of the run's tenants.

    Raises:
        ValueError: no such metric, or no such tenant; the text is fit for a user.
    """
    if name in METRICS and not name.endswith(PER_TENANT):
        return name, None
    if name.startswith(SAYS):
        parts = split_says(name, tenants)
        if parts is None or not parts[1]:
            raise ValueError(f"metric {name!r} is not says.TENANT.FIGURE of a tenant")
        return _SAYS_METRIC, parts[0]
    base, dot, tenant = name.partition(".")
    if base == CACHE:
        if tenant not in CACHE_FIGURES:
            raise ValueError(f"metric {base!r} has no figure {tenant!r}")
        return base + PER_FIGURE, None
    if base + PER_TENANT not in METRICS:
        raise ValueError(f"unknown metric {name!r}")
    if not dot or tenant == PER_TENANT[1:]:
        raise ValueError(f"metric {base!r} needs a tenant, as in {base}.NAME")
    if tenant not in tenants:
        raise ValueError(f"metric {name!r}: no tenant is called {tenant!r}")
    return base + PER_TENANT, tenant
