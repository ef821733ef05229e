"""The work behind `askwise bench`: what is left of a plan is run, and each row is written as its task ends."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from askwise.bench import engine, rows
from askwise.bench.plan import Plan, read
from askwise.bench.rows import Row
from askwise.bench.task import Task, shown
from askwise.cluster import checked, cores
from askwise.files import check_out
from askwise.processes import check_processes


def bench(path: Path, out: Path | None, where: str, processes: int | None, dry: bool) -> int:
    """Runs a plan; 1 where some tasks failed."""
    checked(where)
    check_processes(processes)
    plan, out = read(path), out or path.with_suffix(".jsonl")
    check_out(out, "the rows", [path, *(Path(task.folder) / task.source["file"] for task in plan.tasks if task.source)])
    rows.check(out)
    if dry:
        todo = left(plan, rows.read(out))
        print("\n".join(f"{task}, {task.minutes:g} min" for task in todo))
        _summary(plan, len(todo))
        return 0
    with rows.alone(out), in_good_order():
        todo = left(plan, rows.read(out))
        _summary(plan, len(todo))
        ended: Counter[str] = Counter()
        for row in fill(out, plan.name, todo, where, processes or cores()):
            ended[row["status"]] += 1
            print(f"[{ended.total()}/{len(todo)}] {line_about(row)}", flush=True)
    if ended:
        print(", ".join(f"{n} {status}" for status, n in sorted(ended.items())) + f": {out}")
    return 1 if ended["failed"] else 0


@contextmanager
def in_good_order() -> Iterator[None]:
    """While this lasts SIGTERM is an exception, like Ctrl-C: on its way out tasks are ended and the files of data removed."""
    if threading.current_thread() is not threading.main_thread():  # signals are the business of the main thread alone
        yield
        return

    def end(*_: object) -> None:
        raise SystemExit(128 + signal.SIGTERM)  # what a shell says of a process that SIGTERM has ended

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def left(plan: Plan, there: list[Row]) -> list[Task]:
    """The tasks that have not been done or refused."""
    over = rows.over(there)
    return [task for task in plan.tasks if rows.identity(task.row) not in over]


def fill(out: Path, name: str, tasks: list[Task], where: str, processes: int) -> Iterator[Row]:
    """Runs the tasks and appends their rows."""
    if not tasks:
        return
    code = commit()
    for row in engine.rows_of(tasks, where, processes):
        unknown: Row = {"minutes_taken": None, "memory_mb": None, "versions": {}}  # where its process died, or never began
        row = {"began": datetime.now(UTC).isoformat(timespec="seconds"), **unknown, **row, "plan": name, "commit": code}
        rows.append(out, row)
        yield row


def line_about(row: Row) -> str:
    """One line about a row."""
    if row["status"] != "done":
        return f"{shown(row['task'])}: {row['status']}: {row['why']}"
    minutes = f"{row['minutes_taken']:.2g} of {row['task']['minutes']:g} min"
    result = f"area {row['area']:.4f}" if "area" in row else f"cost {row['cost']:.4g}, score {row['score']:.4f}"
    return f"{shown(row['task'])}: {result} in {minutes}, {row['memory_mb']} MB"


def _summary(plan: Plan, todo: int) -> None:
    print(f"{plan.name}: {len(plan.tasks)} tasks, {len(plan.tasks) - todo} of them finished before, {todo} to do", flush=True)


def commit() -> str | None:
    """What the code was: the commit, with a + where files differ from it; None where it was not run from a clone."""
    here = Path(__file__).parent.parent

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], capture_output=True, text=True, cwd=here, check=False).stdout.strip()

    try:
        short = git("rev-parse", "--short", "HEAD")
        return short + ("+" if git("status", "--porcelain", "--", ".") else "") if short else None
    except OSError:  # no git here
        return None
