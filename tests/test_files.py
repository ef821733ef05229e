"""Files that are written: always whole, never in the place of something else, and nothing left of a process that was killed."""

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from askwise.errors import InputError, WriteError
from askwise.files import check_out, remove_leftovers, temporary_folder, whole, write_whole

KILLED = """
import os, signal, sys
from pathlib import Path
from askwise.files import temporary_folder, whole
with {what} as path:
    print(path, flush=True)
    {then}
"""


def killed(what: str, then: str = "os.kill(os.getpid(), signal.SIGKILL)", **more) -> Path:
    """What a process had begun when it was killed."""
    done = subprocess.run([sys.executable, "-c", KILLED.format(what=what, then=then)], capture_output=True, text=True, **more)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return Path(done.stdout.strip())


def test_a_link_stays_and_its_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "d.csv").write_text("old")
    for name, target in (("d.csv", "there/d.csv"), ("new.csv", "there/new.csv")):  # the second leads nowhere yet
        (tmp_path / name).symlink_to(target)
        write_whole(tmp_path / name, b"new")
        assert os.readlink(tmp_path / name) == target
        assert (tmp_path / target).read_bytes() == b"new"
    assert sorted(p.name for p in (tmp_path / "there").iterdir()) == ["d.csv", "new.csv"]


def test_writing_to_a_pipe_works(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    write_whole(tmp_path / "pipe", b"all of it")
    reader.join(10)
    assert got == [b"all of it"]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_writing_to_a_device_works(tmp_path: Path) -> None:
    write_whole(Path(os.devnull), b"nothing is kept")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)
    program = "from pathlib import Path; from askwise.files import write_whole; write_whole(Path('/dev/stdout'), b'seen')"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout == b"seen"
    with (tmp_path / "log").open("wb") as log:  # a file that a shell has opened stays that file
        subprocess.run([sys.executable, "-c", program], stdout=log, check=True)
        assert (os.fstat(log.fileno()).st_ino, (tmp_path / "log").read_bytes()) == ((tmp_path / "log").stat().st_ino, b"seen")


def test_a_full_device_is_named_in_the_error() -> None:
    with pytest.raises(WriteError, match=r"cannot write '/dev/full': the disk is full"):
        write_whole(Path("/dev/full"), b"x")


def test_on_a_full_disk_the_error_names_the_file_and_the_old_one_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_whole(tmp_path / "m.csv", b"old")

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(WriteError) as said:
        write_whole(tmp_path / "m.csv", b"new")
    assert str(said.value) == f"cannot write '{tmp_path}/m.csv': the disk is full; the old file is as it was"
    assert isinstance(said.value, OSError)
    assert [p.name for p in tmp_path.iterdir()] == ["m.csv"]
    assert (tmp_path / "m.csv").read_bytes() == b"old"


def test_other_errors_are_not_blamed_on_the_file(tmp_path: Path) -> None:
    with pytest.raises(ConnectionResetError), whole(tmp_path / "d.csv"):
        raise ConnectionResetError(errno.ECONNRESET, "a cluster is gone")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_permission_is_named_in_the_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "d.csv").write_text("mine")
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(InputError, match=r"'.*round': this link leads back to itself"):
        check_out(tmp_path / "round", "the decisions")
    with pytest.raises(InputError, match=r"cannot write '.*/d.csv/x.csv': '.*/d.csv' is not a folder"):
        check_out(tmp_path / "d.csv" / "x.csv", "the decisions")
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    with pytest.raises(InputError, match=rf"cannot write '.*d.csv': you may not write to '{tmp_path}'"):
        check_out(tmp_path / "d.csv", "the decisions")


def test_permissions_of_a_file_stay_the_same(tmp_path: Path) -> None:
    write_whole(tmp_path / "m", b"old")
    (tmp_path / "m").chmod(0o600)
    write_whole(tmp_path / "m", b"new")
    assert stat.S_IMODE((tmp_path / "m").stat().st_mode) == 0o600


def test_leftovers_of_a_killed_process_are_removed_by_the_next_one(tmp_path: Path) -> None:
    target = tmp_path / "d[1].csv"
    target.write_text("old")
    mine = tmp_path / ".d[1].csv.notes.part"  # not made by us
    mine.write_text("mine")
    part = killed(f"whole(Path({str(target)!r}))")
    assert part.parent == tmp_path
    assert part.exists()
    assert target.read_text() == "old"
    write_whole(target, b"new")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([mine.name, target.name])


def test_files_of_a_running_process_are_kept(tmp_path: Path) -> None:
    with whole(tmp_path / "d.csv") as first:
        first.write_text("first")
        with whole(tmp_path / "d.csv") as second:
            second.write_text("second")
        remove_leftovers(tmp_path / "d.csv")
        assert first.exists()
    assert (tmp_path / "d.csv").read_text() == "first"
    assert [p.name for p in tmp_path.iterdir()] == ["d.csv"]


def test_temporary_folders_of_killed_processes_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    left = killed("temporary_folder('askwise-tasks-')", "(path / 'x').write_text('x'); os.kill(os.getpid(), signal.SIGKILL)")
    assert (left / "x").exists()
    with temporary_folder("askwise-tasks-") as one:
        with temporary_folder("askwise-tasks-") as other:
            assert sorted(tmp_path.iterdir()) == sorted([one, other])
        assert list(tmp_path.iterdir()) == [one]
    assert list(tmp_path.iterdir()) == []
