# SPDX-License-Identifier: GPL-2.0-only
"""Make runs on the workers of a Dask cluster.

order has the messages between campaign and worker, parcel packs a run's directory, remote runs on a
worker; tasks, roster and cluster are the campaign's side: tasks, workers and runs. Only tasks and
remote import Dask.
"""
