# SPDX-License-Identifier: GPL-2.0-only
"""Numbers as people read them; the same in terminal, page, figure and message."""

from isoblk.run.record import Unit


def count(value: float) -> str:
    """785432 -> "785 K"."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("K", 1e3)):
        if abs(value) >= size * 0.9995:
            return f"{significant(value / size)} {unit}"
    return significant(value)


def rate(value: float) -> str:
    """Bytes a second, decimal units as disks are sold in: "3.21 GB/s"."""
    text = count(value)
    return f"{text}B/s" if text[-1].isalpha() else f"{text} B/s"


def size(value: float) -> str:
    """Bytes, decimal units: "3.21 GB"."""
    text = count(value)
    return f"{text}B" if text[-1].isalpha() else f"{text} B"


def figure(value: float, unit: Unit) -> str:
    """What a program says, in its unit."""
    match unit:
        case "B/s":
            return rate(value)
        case "B":
            return size(value)
        case "ops/s":
            return f"{count(value)}/s"
        case "ns":
            return time(value)
        case "ops":
            return count(value)
        case "":
            return f"{value:.4g}"


def percent(value: float) -> str:
    """0.0374 -> "3.7 %"."""
    scaled = value * 100
    return f"{scaled:,.0f} %" if abs(scaled) >= 99.95 else f"{scaled:.1f} %"


def time(ns: float) -> str:
    """81234 -> "81.2 µs"."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size * 0.9995:
            return f"{significant(ns / size)} {unit}"
    return f"{significant(ns)} ns"


def significant(value: float) -> str:
    """Three significant digits, or all before the point."""
    size = abs(value)
    if size >= 99.95:
        return f"{value:,.0f}"
    if size >= 9.995 or value == 0:
        return f"{value:.1f}" if value else "0"
    return f"{value:#.3g}"


def ratio(value: float) -> str:
    """A factor: "2.72x"."""
    return f"{significant(value)}x"


def index(value: float) -> str:
    """Jain's index: "0.997"."""
    return f"{value:.3f}"
