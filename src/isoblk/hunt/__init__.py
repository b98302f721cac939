# SPDX-License-Identifier: GPL-2.0-only
"""Search for the workload that a scheduler handles worst, and shrink it.

spec.py decodes a hunt, space.py has the candidates, judge.py scores them, optimise.py proposes the
next ones, shrink.py simplifies a find, journal.py records verdicts, find.py writes finds, and
session.py runs the hunt.
"""
