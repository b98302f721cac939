# SPDX-License-Identifier: GPL-2.0-only
"""Find the version of the kernel, or of the repository's own schedulers, that changed a metric.

search.py is the search over any candidates. versions.py and commits.py list and build the
candidates between two versions. measure.py computes a version's value, threshold.py divides good
values from bad, and session.py runs the bisection.
"""
