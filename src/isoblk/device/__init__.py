# SPDX-License-Identifier: GPL-2.0-only
"""Presets held against their sources, and presets made from measurements."""
