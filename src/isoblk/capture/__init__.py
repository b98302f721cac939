# SPDX-License-Identifier: GPL-2.0-only
"""Capture the requests of a disk of this machine, with their cgroups, as a compact trace."""
