# SPDX-License-Identifier: GPL-2.0-only
"""Metrics of a run: a record each, in the file of its subject.

To add a metric, add its record to the list of one of these files. Checks, tables, verdicts and
docs/reference/metrics.md are derived from it.
"""
