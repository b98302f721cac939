# SPDX-License-Identifier: GPL-2.0-only
"""From the requests of a disk of this machine, and the cgroup of each, to a compact trace."""
