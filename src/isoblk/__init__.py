# SPDX-License-Identifier: GPL-2.0-only
"""isoblk: divide one fast disk among containers by weight, and prove it."""

__version__ = "0.1.0"
