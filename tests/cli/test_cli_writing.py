"""What commands write: through links and devices, on a full disk, and after they were killed."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.support.commands import fill, ok, run
from tests.support.models import made, table

import askwise

pytest.importorskip("pandas", reason="pandas is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model and some cases."""
    here = tmp_path_factory.mktemp("writing")
    made("family").save(here / "m.askwise")
    table(40)[0].to_csv(here / "cases.csv", index=False)
    return here


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("cases")) / "cases.csv"


def fit(cases: Path, out: Path, *more: str) -> list[str]:
    return ["fit", str(cases), "--target", "diagnosis", "--time-limit", "0.1", "--quiet", "--out", str(out), *more]


def askwise_in(code: str, *argv: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, after some lines that prepare it."""
    program = f"{code}\nimport sys; from askwise.cli import main; sys.exit(main(sys.argv[1:]))"
    return subprocess.run([sys.executable, "-c", program, *argv], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_decisions_go_through_a_pipe_and_a_link(folder: Path, tmp_path: Path, ending: str) -> None:
    real, link, pipe = (tmp_path / f"{name}{ending}" for name in ("real", "link", "pipe"))
    link.symlink_to(real)
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    for out in (link, pipe):
        code, _, err = run("predict", folder / "m.askwise", folder / "cases.csv", "--out", out)
        assert (code, str(out) in err) == (0, True)
    reader.join(10)
    assert link.is_symlink()
    assert pipe.is_fifo()
    assert got == [real.read_bytes()]


def test_decisions_go_to_the_standard_output_by_name(folder: Path) -> None:
    shown = ok("predict", folder / "m.askwise", folder / "cases.csv")
    argv = ["predict", str(folder / "m.askwise"), str(folder / "cases.csv"), "--out", "/dev/stdout"]
    assert askwise_in("", *argv).stdout == shown


def test_a_model_needs_a_file(cases: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.askwise")
    for out in (tmp_path / "pipe.askwise", Path(os.devnull)):
        code, _, err = run(*fit(cases, out))
        assert (code, err) == (2, f"askwise: the model cannot be written to '{out}': that is a device or a pipe; name a file\n")


def test_rows_of_a_bench_need_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rows.jsonl")
    (tmp_path / "plan.toml").write_text('data = ["pima"]\nmethods = ["random"]\n')
    code, _, err = run("bench", tmp_path / "plan.toml", "--out", tmp_path / "rows.jsonl")
    assert code == 2
    assert "rows.jsonl': that is a device or a pipe" in err


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_full_standard_output_is_told_in_one_line(folder: Path, more: list[str]) -> None:
    program = [sys.executable, "-m", "askwise", "predict", str(folder / "m.askwise"), str(folder / "cases.csv"), *more]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "askwise: cannot write 'the standard output': the disk is full\n")


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_decisions_that_do_not_fit_on_the_disk_leave_the_old_ones(folder: Path, tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"d{ending}"
    out.write_text("old")
    small = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))"
    done = askwise_in(small, "predict", str(folder / "m.askwise"), str(folder / "cases.csv"), "--out", str(out))
    assert (done.returncode, done.stderr) == (
        1, f"askwise: cannot write '{out}': file too large; the old file is as it was\n",
    )  # fmt: skip
    assert [p.name for p in tmp_path.iterdir()] == [out.name]
    assert out.read_text() == "old"


def test_a_fit_that_does_not_fit_on_the_disk_says_how_to_go_on(
    cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, state, write = tmp_path / "m.askwise", tmp_path / "m.state", Path.write_bytes

    def full(path: Path, data: bytes) -> int:
        if path.name.startswith(".m.askwise"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(path, data)

    with monkeypatch.context() as m:
        m.setattr(Path, "write_bytes", full)
        code, _, err = run(*fit(cases, out))
    assert code == 1
    assert err == (f"askwise: cannot write '{out}': the disk is full; make room, and continue with the same command and "
                   f"--resume ({state})\n")  # fmt: skip
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.state"]
    assert run(*fit(cases, out, "--resume"))[0] == 0
    assert askwise.load(out).facts["algorithm"] == "stack"


def test_a_fit_killed_before_its_pictures_is_finished_by_resume(cases: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.askwise"
    killed = (
        "import os, signal, askwise.plots as plots\n"
        "from askwise.files import whole\n"
        "def save(figure, path, *_):\n"
        "    with whole(path):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "plots.save = save"
    )
    assert askwise_in(killed, *fit(cases, out)).returncode == -signal.SIGKILL
    left = sorted(p.name for p in tmp_path.iterdir())
    assert re.fullmatch(r"\.m\.png\.\w+\.part m\.askwise", " ".join(left))
    before = out.read_bytes()
    code, _, err = run(*fit(cases, out, "--resume", "--seed", "1"))
    assert code == 2
    assert "'m.askwise' comes from another fit: its seed is 0, here it is 1" in err.replace(f"{tmp_path}/", "")
    code, shown, _ = run(*fit(cases, out, "--resume"))
    assert code == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.askwise", "m.html", "m.md", "m.png", "m.svg"]
    assert out.read_bytes() == before
    assert str(tmp_path / "m.html") in shown
    found = json.loads(run(*fit(cases, out, "--resume", "--json"))[1])
    assert found["facts"]["data"] == askwise.load(out).facts["data"]
