# SPDX-License-Identifier: GPL-2.0-only
"""Weights of this machine's cgroups, and schedulers of its disks: show, mirror, set."""
