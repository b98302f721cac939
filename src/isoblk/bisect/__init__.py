# SPDX-License-Identifier: GPL-2.0-only
"""Which version changed a metric: of the kernel, or of the repository's own schedulers.

search.py is the search, whatever is searched; versions.py, commits.py what there is between two
versions, and how one is built; measure.py what a version's value is; threshold.py which value is
good and which is bad; session.py is the whole.
"""
