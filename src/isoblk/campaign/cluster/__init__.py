# SPDX-License-Identifier: GPL-2.0-only
"""Runs made by the workers of a Dask cluster. Here: what a campaign and a worker tell each other
(order), a run's directory as bytes (parcel), what a worker does (remote); and of the campaign the
tasks (tasks), the workers (roster) and the runs (cluster). Only tasks and remote know Dask."""
