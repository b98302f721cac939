# SPDX-License-Identifier: GPL-2.0-only
"""What is said of a run in one number: a record each, in the file of its subject.

To add a metric: its record, in the list of one of these files. Checks, tables, verdicts and
docs/reference/metrics.md follow from it.
"""
