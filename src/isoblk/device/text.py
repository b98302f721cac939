# SPDX-License-Identifier: GPL-2.0-only
"""Format figures as text, and a preset as TOML."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from rich.table import Table
from rich.text import Text

from isoblk.device.measure import Measured
from isoblk.errors import printable
from isoblk.run.spec import VdiskDevice
from isoblk.study.model import ExpectEntry, ExpectMetric
from isoblk.toml import written

_INTEGER_DIGITS = 100  # from here on a figure has no decimals


def figure(value: float, metric: ExpectMetric) -> str:
    """Format a value of a metric with its unit: 279,500 IOPS, 3,200 MB/s, 85.0 µs."""
    if metric == "iops":
        return f"{value:,.0f} IOPS"
    if metric == "bps":
        return f"{_number(value / 1e6)} MB/s"
    return f"{_number(value / 1e6)} ms" if value >= 1e6 else f"{_number(value / 1e3)} µs"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= _INTEGER_DIGITS else f"{value:.1f}"


def tables(measured: Mapping[str, Sequence[Measured]]) -> Iterator[Table]:
    """Yield tables of source against model, with a row for each figure, by the preset's name.

    The first has the figures of the fit, the second those that judge it.
    """
    for fitted, title in ((True, "fitted"), (False, "not fitted")):
        chosen = {
            name: [one for one in figures if one.expect.fitted == fitted]
            for name, figures in measured.items()
        }
        if any(chosen.values()):
            yield _table(title, chosen)


def _table(title: str, measured: Mapping[str, Sequence[Measured]]) -> Table:
    shown = Table(box=None, pad_edge=False, title=title, title_justify="left")
    for heading in ("preset", "figure", "state"):
        shown.add_column(heading, overflow="fold")
    for heading in ("source", "model", "error", "allowed"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for name, figures in measured.items():
        for i, one in enumerate(figures):
            metric = one.expect.metric
            shown.add_row(
                Text("" if i else printable(name)),
                Text(printable(one.expect.what)),
                one.expect.state,
                figure(one.expect.value, metric),
                figure(one.value, metric),
                Text(f"{one.error:+.1%}", style="" if one.ok else "red"),
                "{:+.0%} {:+.0%}".format(*one.allowed),
            )
    return shown


def preset_toml(title: str, source: str, device: VdiskDevice, expect: Sequence[ExpectEntry]) -> str:
    """Return a preset's file, without attributes at their defaults."""
    usual = VdiskDevice()
    common: dict[str, object] = {"driver": "vdisk", "model": device.model, "size": device.size}
    for name in device.__struct_fields__:
        value = getattr(device, name)
        if not isinstance(value, msgspec.Struct) and value != getattr(usual, name):
            common[name] = value
    lines = [
        "# SPDX-License-Identifier: GPL-2.0-only",
        *_pairs({"title": title, "source": source}),
        *_section("[device]", common),
    ]
    if device.model != "fixed":
        part = msgspec.to_builtins(getattr(device, device.model))
        lines += _section(f"[device.{device.model}]", part)
    for entry in expect:
        lines += _section("[[expect]]", _set(entry))
    return "\n".join(lines) + "\n"


def _set(entry: ExpectEntry) -> dict[str, object]:
    values: dict[str, object] = msgspec.to_builtins(entry)
    if float(entry.value).is_integer():
        values["value"] = int(entry.value)
    return values


def _section(header: str, values: Mapping[str, object]) -> list[str]:
    return ["", header, *_pairs(values)]


def _pairs(values: Mapping[str, object]) -> list[str]:
    return [f"{name} = {written(value)}" for name, value in values.items()]
