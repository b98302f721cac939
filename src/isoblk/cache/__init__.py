# SPDX-License-Identifier: GPL-2.0-only
"""SSD caches: those that studies compare, and dm-setcache as `isoblk cache` sets it up."""
