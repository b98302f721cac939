# SPDX-License-Identifier: GPL-2.0-only
"""`python -m isoblk`."""

from isoblk.cli import main

main()
