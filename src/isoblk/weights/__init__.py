# SPDX-License-Identifier: GPL-2.0-only
"""Weights of this machine's cgroups: followed, shown, and the disks that obey them."""
