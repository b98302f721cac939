# SPDX-License-Identifier: GPL-2.0-only
"""Programs that run inside a guest, and what they share. A test starts one by `program` of
tests/lab/guest.py; all but `cache_flight` need the standard library alone."""
