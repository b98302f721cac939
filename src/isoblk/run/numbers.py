# SPDX-License-Identifier: GPL-2.0-only
"""Format numbers for reading, equally in terminal, page, figure and message."""

from isoblk.run.record import Unit


def count(value: float) -> str:
    """Format 785432 as "785 K"."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("K", 1e3)):
        if abs(value) >= size * 0.9995:
            return f"{significant(value / size)} {unit}"
    return significant(value)


def rate(value: float) -> str:
    """Format bytes per second in decimal units, as disks are labelled: "3.21 GB/s"."""
    text = count(value)
    return f"{text}B/s" if text[-1].isalpha() else f"{text} B/s"


def size(value: float) -> str:
    """Format bytes in decimal units: "3.21 GB"."""
    text = count(value)
    return f"{text}B" if text[-1].isalpha() else f"{text} B"


def figure(value: float, unit: Unit) -> str:
    """Format a program's figure in its unit."""
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
    """Format 0.0374 as "3.7 %"."""
    scaled = value * 100
    return f"{scaled:,.0f} %" if abs(scaled) >= 99.95 else f"{scaled:.1f} %"


def time(ns: float) -> str:
    """Format 81234 ns as "81.2 µs"."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size * 0.9995:
            return f"{significant(ns / size)} {unit}"
    return f"{significant(ns)} ns"


def significant(value: float) -> str:
    """Format three significant digits, or all digits before the point."""
    size = abs(value)
    if size >= 99.95:
        return f"{value:,.0f}"
    if size >= 9.995 or value == 0:
        return f"{value:.1f}" if value else "0"
    return f"{value:#.3g}"


def ratio(value: float) -> str:
    """Format a factor: "2.72x"."""
    return f"{significant(value)}x"


def index(value: float) -> str:
    """Format Jain's index: "0.997"."""
    return f"{value:.3f}"
