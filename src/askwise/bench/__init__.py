"""Comparing methods: a plan in TOML, its tasks, each in a process of its own, here or on a Dask cluster, and a row for each.

task: one task of a plan, as data
plan: a TOML file, checked, to the tasks
own_table: a table of one's own in a plan
split_files: the data of a task as one file
metrics: the figures of a row
execution: what one task does
fork_server: a process of its own for each task
rows: the file of rows
engine: where tasks run, here or on a cluster
run: all of it together, behind `askwise bench`
entries: rows for reading, by method
tables: the tables of a page about rows
report: that page, behind `askwise bench report`
"""
