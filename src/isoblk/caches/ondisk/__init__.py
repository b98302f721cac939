# SPDX-License-Identifier: GPL-2.0-only
"""What dm-setcache keeps on its SSD: read, checked and mended without the kernel."""
