# SPDX-License-Identifier: GPL-2.0-only
"""The JSON schema of a study file, for editors."""

from typing import Any

import msgspec

from isoblk.metrics.registry import NAMES
from isoblk.run import limits
from isoblk.run.limits import Range
from isoblk.schedulers import io_cost
from isoblk.schedulers.registry import SCHEDULERS
from isoblk.study.model import Study
from isoblk.study.presets import preset_names

_SIZE = "A number of bytes, or text with k, m or g (powers of 1024)."
_SECONDS = "Seconds, or text with ns, us, ms, s, m, h or d."

_RANGES: dict[tuple[str, str], Range] = {
    ("RunTable", "repeats"): limits.REPEATS,
    ("RunTable", "seed"): limits.SEED,
    ("GroupEntry", "weight"): limits.WEIGHT,
    ("EventEntry", "weight"): limits.WEIGHT,
    ("TenantEntry", "count"): Range(1, limits.TENANTS_MAX),
}
_WORKLOAD_RANGES = {
    "iodepth": limits.IODEPTH,
    "numjobs": limits.NUMJOBS,
    "rwmixread": limits.PERCENT,
    "rate_iops": limits.COUNTER,
    "number_ios": limits.COUNTER,
    "fsync": limits.COUNTER,
    "thinktime_blocks": Range(1, limits.COUNTER.high),
}

_TEXTS: dict[tuple[str, str], str] = {
    ("Study", "name"): "Name of the study and of its result directory.",
    ("Study", "title"): "One line, the title of the report.",
    ("Study", "description"): "What is asked, and why with this device and these loads.",
    ("Study", "scheduler"): "Scheduler, or controller on top of none.",
    ("Study", "device"): "A preset, or a table with preset and/or driver and attributes.",
    ("Study", "scale"): 'Sizes and counts written as "8g/scale" are divided by this.',
    ("Study", "cache"): "What puts the SSD in front of the device.",
    ("Study", "ssd"): "The SSD: a preset, or a table with preset and/or driver and attributes.",
    ("Study", "caching"): "How the SSD is used, whatever the cache.",
    ("Study", "caches"): "By cache, its own options.",
    ("CachingTable", "origin"): "How much of the device is used; 0: all. " + _SIZE,
    ("CachingTable", "ssd"): "How much of the SSD is used; 0: all. " + _SIZE,
    ("CachingTable", "files"): "Made before the SSD is there, or by way of the cache.",
    ("CachingTable", "passes"): "How often the load runs; the last pass is measured.",
    ("CachingTable", "placement"): "Where the tenants' data lie on the cached device.",
    ("CachingTable", "working_set"): "Scattered: how much of it they have. " + _SIZE,
    ("CachingTable", "piece"): "Scattered: size of a piece. " + _SIZE,
    ("CachingTable", "scheduler_on"): "Whose queue has the scheduler.",
    ("Study", "run"): "How long, how often, on which version of cgroups.",
    ("Study", "workload"): "Options of all tenants that do not set them.",
    ("Study", "filesystem"): "For tenants whose programs work on files: a partition of the device.",
    ("FilesystemTable", "type"): "What mkfs makes.",
    ("FilesystemTable", "offset"): "First byte on the device. " + _SIZE,
    ("FilesystemTable", "size"): "Bytes from offset; 0: to the end of the device. " + _SIZE,
    ("FilesystemTable", "mkfs"): "Further arguments of mkfs.",
    ("FilesystemTable", "mount"): "Options of mount -o.",
    ("Study", "tenant"): "The cgroups under test and their loads.",
    ("Study", "group"): "Weights of inner cgroups; those not named weigh 100.",
    ("Study", "event"): "Changes of a tenant's weight, or of the device, while the load runs.",
    ("Study", "queue"): "Files below /sys/block/DISK/queue to write.",
    ("Study", "iosched"): "By scheduler, files below queue/iosched to write.",
    ("Study", "schedulers"): "Elevators of others, by the names that the study calls them.",
    ("OtherTable", "module"): "The kernel module; run --module says where it is. None: built in.",
    ("OtherTable", "elevator"): "What goes to queue/scheduler; default: the table's name.",
    (
        "OtherTable",
        "weight_file",
    ): 'The cgroup file for weights: "io.NAME.weight"; none: no weights.',
    ("Study", "io_cost"): "For scheduler io.cost: the device's model and the qos.",
    ("Study", "io_max"): "For scheduler io.max: how the caps are made.",
    ("Study", "io_latency"): "For scheduler io.latency: the target.",
    ("Study", "matrix"): "Dotted field to list of values; the runs are the product.",
    ("Study", "claim"): "What the results are held against.",
    ("RunTable", "warmup"): "Time before the measured time. " + _SECONDS,
    ("RunTable", "runtime"): "The measured time. " + _SECONDS,
    ("RunTable", "window"): "Width of the time series' windows, in ms, or text with ms or s.",
    ("RunTable", "repeats"): "How often each point is run, each time with another seed.",
    ("RunTable", "seed"): "Seed of the first repeat; repeat r has seed + r.",
    ("RunTable", "cgroup"): "Version of cgroups; io.cost, io.max and io.latency need v2.",
    ("TenantEntry", "name"): "Name; with a count, NAME1, NAME2, ...",
    ("TenantEntry", "count"): "Makes this many tenants alike.",
    ("TenantEntry", "weight"): "1..10000 (bfq: 1..1000), or a list repeated over the count.",
    ("TenantEntry", "latency_target"): "For isoblk, kyber-fair, feedbac and io.latency: by when"
    " a request is to have ended; 0: none. us, or text with us, ms or s.",
    ("TenantEntry", "cgroup"): "Path below the root of the hierarchy; default: the name.",
    ("GroupEntry", "path"): "Path of a cgroup that holds tenants' cgroups.",
    ("GroupEntry", "weight"): "1..10000 (bfq: 1..1000).",
    ("EventEntry", "weight"): "The new weight, 1..10000 (bfq: 1..1000).",
    ("EventEntry", "at"): "When, after the start of all tenants. " + _SECONDS,
    ("EventEntry", "tenant"): "The tenant's name.",
    ("EventEntry", "device"): "Attributes of a vdisk: servers, read_ns, flash.program_ns, ...",
    ("IoCostTable", "model"): 'The six coefficients of io.cost.model, or "calibrated".',
    ("IoCostTable", "qos"): "As io.cost.qos: " + ", ".join(io_cost.QOS) + ".",
    ("IoMaxTable", "scale"): "Caps are the weight's share of the total under none, times this.",
    ("IoLatencyTable", "target"): "The heaviest tenant's target: us, or text with us, ms or s.",
    ("ClaimEntry", "text"): "The claim in words.",
    ("ClaimEntry", "source"): "Where it is made.",
    ("ClaimEntry", "metric"): "One of: " + ", ".join(NAMES) + ".",
    ("ClaimEntry", "op"): 'How the metric compares; "~": within the tolerance.',
    ("ClaimEntry", "value"): "What the metric is compared with.",
    ("ClaimEntry", "tolerance"): 'For "~": relative to the value.',
    ("ClaimEntry", "where"): "Matrix key to value: the runs the claim is about.",
    ("Study", "compare"): "A source's own figures, for the report to draw beside the runs'.",
    ("CompareTable", "title"): "Of the figures.",
    ("CompareTable", "source"): "Whose figures they are, in a word.",
    ("CompareTable", "metric"): "What they are.",
    ("CompareTable", "x"): "The matrix key whose values stand along the axis.",
    ("CompareTable", "scale"): "What one of the source's units is in the metric's.",
    ("CompareTable", "series"): "The figures.",
    ("CompareSeries", "text"): "What is above its panel.",
    ("CompareSeries", "where"): "Matrix key to value: the runs it belongs to.",
    ("CompareSeries", "values"): "One for each value of x; 0: the source has none.",
    ("ClaimEntry", "than"): "Matrix key to value: the metric is a ratio to that run's.",
    ("ClaimEntry", "why"): "Explains the verdict; {METRIC}, {than.METRIC}: the runs' own figures.",
    ("ClaimEntry", "among"): "For weight_ratio_error: the tenants it is about.",
}
_WORKLOAD_TEXTS = {
    "workload": "The program that makes the load.",
    "rw": "Access pattern.",
    "rwmixread": "Percentage of reads of rw and randrw.",
    "bs": "Size of a request. " + _SIZE,
    "bsrange": "LOW-HIGH: every multiple of LOW equally likely.",
    "bssplit": "SIZE/PERCENT:SIZE/PERCENT, adding up to 100.",
    "iodepth": "Requests in flight, a job.",
    "numjobs": "Jobs, each with its own iodepth.",
    "rate_iops": "Arrivals a second, a job; 0: the next request when one ends.",
    "rate_process": "How arrivals are spaced.",
    "thinktime": "Pause after thinktime_blocks requests: us, or text with a suffix.",
    "thinktime_blocks": "Requests between two pauses.",
    "cputime": "CPU time that issuing a request takes: ns, or text with a suffix.",
    "startdelay": "Pause after the start of all tenants. " + _SECONDS,
    "runtime": "How long, warm-up included; 0: to the end of the run. " + _SECONDS,
    "number_ios": "Requests a job; 0: no limit.",
    "offset": "First byte on the device. " + _SIZE,
    "offset_increment": "Of `count` tenants each begins so far behind the one before. " + _SIZE,
    "size": "Bytes from offset; 0: to the end of the device. " + _SIZE,
    "random_distribution": "random, zipf:THETA or pareto:H.",
    "fsync": "Flush after every so many writes; 0: never.",
    "fua": "Every write is FUA.",
    "meta": "Requests are of metadata, as file systems mark them (REQ_META).",
    "background": "Writes are those of writeback: nobody waits for them (no REQ_SYNC).",
    "relay": "One thread submits for all such tenants, as dm-crypt does for its users.",
    "ioprio": "I/O priority of the tenant's threads; none: that of their nice value, as be/4.",
    "verify": "Written blocks carry address and generation, and reads check them.",
    "trace": 'A trace to replay: a file, or the name of a stand-in; "": none.',
    "trace_stream": "Of the trace, only the requests of that stream (volume, cgroup).",
    "replay": "At the recorded times, or one request when another ends.",
    "speed": "2: a timed replay takes half the recorded time. 0.001..1e9.",
    "trace_fit": "Addresses beyond the region: modulo its size, or all of them scaled to it.",
    "trace_loop": "Begin anew after the last request.",
    "options": "Of a program other than blkload and fio: its own options.",
    "memory": "Of such a program: memory.max of its cgroup; 0: no limit. " + _SIZE,
}


def study_schema() -> dict[str, Any]:
    """JSON schema (draft 2020-12) of a study file, with each field's meaning and range.

    A file that fits it may still be wrong where fields depend on each other; check_study()
    looks at those too.
    """
    schema = msgspec.json.schema(Study)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "isoblk study"
    definitions: dict[str, dict[str, Any]] = schema["$defs"]
    for struct, definition in definitions.items():
        definition["description"] = " ".join(definition["description"].split())
        for name, field in definition["properties"].items():
            if allowed := _RANGES.get((struct, name)):
                field |= {"minimum": allowed.low, "maximum": allowed.high}
            if text := _TEXTS.get((struct, name)):
                field["description"] = text
    for struct in ("WorkloadFields", "TenantEntry"):
        for name, text in _WORKLOAD_TEXTS.items():
            field = definitions[struct]["properties"][name]
            field["description"] = text
            if allowed := _WORKLOAD_RANGES.get(name):
                field |= {"minimum": allowed.low, "maximum": allowed.high}
    for option in definitions["TenantEntry"]["properties"]["weight"]["anyOf"]:
        whole = option["items"] if option["type"] == "array" else option
        whole |= {"minimum": limits.WEIGHT.low, "maximum": limits.WEIGHT.high}
    name_rules = {"pattern": f"^{limits.TENANT_NAME.pattern}$", "maxLength": limits.NAME_MAX}
    definitions["Study"]["properties"]["name"] |= name_rules
    definitions["TenantEntry"]["properties"]["name"] |= name_rules
    definitions["Study"]["properties"]["scheduler"]["examples"] = list(SCHEDULERS)
    definitions["Study"]["properties"]["device"]["examples"] = list(preset_names())
    return schema
