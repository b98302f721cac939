# SPDX-License-Identifier: GPL-2.0-only
"""Compare device presets with their sources, and make presets from measurements."""
