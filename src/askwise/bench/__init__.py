"""Comparing methods: a plan in TOML, its tasks, each in a process of its own, here or on a Dask cluster, and a row for each."""
