# SPDX-License-Identifier: GPL-2.0-only
"""Traces of block I/O: from files of many formats to the compact one that blkload replays."""
