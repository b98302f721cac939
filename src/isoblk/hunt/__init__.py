# SPDX-License-Identifier: GPL-2.0-only
"""Looking for the workload that a scheduler handles worst, and shrinking it.

spec.py says what a hunt is, space.py what it looks among, judge.py what a candidate is worth,
optimise.py where to look next, shrink.py makes a find small, journal.py keeps what was tried,
find.py writes what was found, and session.py is the whole.
"""
