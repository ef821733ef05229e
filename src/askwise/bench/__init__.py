"""Comparing methods: a plan in TOML, its tasks, each in a process of its own, here or on a Dask cluster, and a row for each.

task: one task of a plan, as data
rows: rows in a file, and those of several files, checked
plan_settings: the settings of a plan, each with its default and what it may be
own_table: a table of one's own in a plan
plan: a TOML file to tasks
split_files: the data of a task as one file
metrics: the figures of a row
execution: what one task does
fork_server: a process of its own for each task
engine: where tasks run, here or on a cluster
run: all of it together, behind `askwise bench`
entries: rows by data set and method
tables: the tables of a page about rows
report: that page, behind `askwise bench report`
"""
