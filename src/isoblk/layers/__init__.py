# SPDX-License-Identifier: GPL-2.0-only
"""Block layers between the tenants and the disk: encryption, volumes, checksums, RAID, images."""
