# SPDX-License-Identifier: GPL-2.0-only
"""The schedulers and controllers that divide a disk: a class each; registry.py lists them.

To add one: a file with its class, and its name in registry.py.
"""
