# SPDX-License-Identifier: GPL-2.0-only
"""Traces of block I/O: from files of many formats to the compact one that blkload replays."""

from isoblk.trace.resolve import resolve

__all__ = ["resolve"]
