# SPDX-License-Identifier: GPL-2.0-only
"""Read, check and repair dm-setcache's data on its SSD without the kernel."""
