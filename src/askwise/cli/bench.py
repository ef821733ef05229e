"""askwise bench: methods compared, by a plan."""

import argparse

from askwise.bench.run import bench


def run(options: argparse.Namespace) -> int:
    return bench(options.plan, options.out, options.engine, options.processes, options.dry_run)
