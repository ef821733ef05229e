"""How many processes work at a time, from what was asked for and what is free."""

import multiprocessing
import os

import pytest

from askwise import processes
from askwise.errors import InputError
from askwise.processes import check_processes, child_environment, free_cores, jobs_of


@pytest.mark.parametrize(
    ("load", "cores", "all_cores", "free"),
    [(0.0, 8, 8, 8), (1.0, 8, 8, 8), (3.0, 8, 8, 6), (9.0, 8, 8, 1), (40.0, 2, 2, 1), (33.0, 4, 64, 2), (1.4, 2, 2, 2)],
)
def test_only_cores_that_others_leave_are_free(monkeypatch, load, cores, all_cores, free):
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(os, "cpu_count", lambda: all_cores)
    monkeypatch.setattr(processes, "cores", lambda: cores)
    assert free_cores() == jobs_of(None) == free
    assert (jobs_of(1), jobs_of(3), jobs_of(-1)) == (1, 3, cores)


def test_a_process_that_works_beside_others_has_one_core(monkeypatch):
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: "somebody")
    monkeypatch.setattr(processes, "cores", lambda: 8)
    assert jobs_of(None) == 1
    assert jobs_of(2) == 2


def test_helpers_can_import_what_can_be_imported_here_and_have_one_thread(monkeypatch):
    monkeypatch.syspath_prepend("/of/my/own")
    environment = child_environment()
    assert environment["PYTHONPATH"].split(os.pathsep)[0] == "/of/my/own"
    assert environment["OMP_NUM_THREADS"] == "1"


def test_a_wrong_number_of_processes_is_told():
    check_processes(None)
    check_processes(2)
    with pytest.raises(InputError, match="--processes is 0; it must be 1 or more"):
        check_processes(0)
