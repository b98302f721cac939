# SPDX-License-Identifier: GPL-2.0-only
"""Traces of block I/O: import from many formats into the compact one that blkload replays."""
