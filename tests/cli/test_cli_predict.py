"""Large tables are decided part by part: the same answers as in one go, bounded memory, and files that are whole or not there."""

import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.support.commands import ok, run
from tests.support.patients import patients

from askwise.cli import scoring
from askwise.tables import parquet


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, free) -> Path:
    """A model that mixes two policies, and cases in row groups of 70, some columns of which the model does not know."""
    here = tmp_path_factory.mktemp("scoring")
    free.save(here / "m.askwise")
    cases = patients(300, seed=5)[0].assign(name=[f"p{i:03}" for i in range(300)], more=1.5)
    cases.to_parquet(here / "cases.parquet", row_group_size=70)
    cases.to_csv(here / "cases.csv", index=False)
    (here / "many").mkdir()
    for i, some in enumerate(np.array_split(np.arange(300), 3)):
        cases.iloc[some].to_parquet(here / "many" / f"part.{i}.parquet", row_group_size=64)
    return here


ARGS = ("--average-budget", "0.5", "--ids", "name")


def test_parts_give_what_one_go_gives(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "BATCH", 32)
    sizes, real = [], scoring.decided
    monkeypatch.setattr(scoring, "decided", lambda m, table, ids: (sizes.append(len(table)), real(m, table, ids))[1])
    whole = rows_of(ok("predict", folder / "m.askwise", folder / "cases.csv", *ARGS))
    assert sizes == [300]
    same(rows_of(ok("predict", folder / "m.askwise", folder / "cases.parquet", *ARGS)), whole)
    assert sizes[1:] == [32, 32, 6, 32, 32, 6, 32, 32, 6, 32, 32, 6, 20]
    same(rows_of(ok("predict", folder / "m.askwise", folder / "many", *ARGS)), whole)
    parts = json.loads(ok("predict", folder / "m.askwise", folder / "cases.parquet", *ARGS, "--json"))
    same(pd.DataFrame(parts).assign(tests=lambda f: f["tests"].map(";".join)), whole)
    code, out, err = run("predict", folder / "m.askwise", folder / "cases.parquet", *ARGS, "--out", tmp_path / "d.parquet")
    assert (code, out) == (0, "")
    assert err.startswith("300 cases, mean cost 0.")
    same(pd.read_parquet(tmp_path / "d.parquet"), whole)
    assert len(set(whole["cost"])) > 1


def rows_of(text: str) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(text), keep_default_na=False)


def same(found: pd.DataFrame, whole: pd.DataFrame) -> None:
    """Probabilities but for the last of sixteen digits."""
    pd.testing.assert_frame_equal(found, whole, check_dtype=False, rtol=1e-12)
    exact = ["name", "cost", "prediction", "tests"]
    assert found[exact].to_numpy().tolist() == whole[exact].to_numpy().tolist()


def test_dask_gives_the_same(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    from askwise import cluster

    monkeypatch.setattr(cluster, "cores", lambda: 1)
    argv = ["predict", folder / "m.askwise", folder / "cases.parquet", *ARGS, "--out"]
    assert run(*argv, tmp_path / "here.parquet")[0] == 0
    code, out, err = run(*argv, tmp_path / "there.parquet", "--engine", "dask")
    assert (code, out) == (0, "")
    assert err.startswith("300 cases")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "here.parquet"), pd.read_parquet(tmp_path / "there.parquet"))


def test_what_is_wrong_is_told_and_nothing_is_written(folder: Path, tmp_path: Path) -> None:
    cases = pd.read_parquet(folder / "cases.parquet")
    argv = ["--out", tmp_path / "d.parquet"]

    def says(made: pd.DataFrame, words: str, *more) -> None:
        made.to_parquet(tmp_path / "c.parquet", row_group_size=100)
        code, out, err = run("predict", folder / "m.askwise", tmp_path / "c.parquet", *argv, *more)
        assert (code, out) == (2, "")
        assert words in err
        assert err.count("\n") == 1
        assert sorted(p.name for p in tmp_path.iterdir()) == ["c.parquet"]

    says(cases.rename(columns={"pressure": "presure"}), "there is no column 'pressure' in the data; did you mean 'presure'?")
    says(cases.iloc[:0], "the file 'c.parquet' has no rows")
    cases.loc[250, "name"] = None
    says(cases, "is empty in row 251 of 'c.parquet'; fill it in\n", "--ids", "name")
    says(
        cases.assign(age=np.where(cases.index == 250, np.inf, cases["age"])),
        "holds inf in row 251 of 'c.parquet'; values must be finite",
    )
    bad = cases["age"].astype(str).mask(cases.index == 270, "in row 3")
    says(cases.assign(age=bad), "column 'age' holds 'in row 3' in row 271 of 'c.parquet'; it must be a number")
    (tmp_path / "c.parquet").write_bytes(b"PAR1 and no more")
    code, _, err = run("predict", folder / "m.askwise", tmp_path / "c.parquet")
    assert code == 2
    assert "'c.parquet' cannot be read as a table" in err
    code, _, err = run("predict", folder / "m.askwise", folder / "cases.csv", "--engine", "dask")
    assert code == 2
    assert "the engine 'dask' is for Parquet" in err
    (tmp_path / "none").mkdir()
    code, _, err = run("predict", folder / "m.askwise", tmp_path / "none")
    assert code == 2
    assert "there is no Parquet file in the folder" in err


def test_decisions_are_not_written_among_the_cases(folder: Path) -> None:
    before = sorted((folder / "many").iterdir())
    code, out, err = run("predict", folder / "m.askwise", folder / "many", "--out", folder / "many" / "d.parquet")
    assert (code, out) == (2, "")
    assert "d.parquet': that file is also an input; name another file" in err
    assert sorted((folder / "many").iterdir()) == before


# getrusage would count the memory of the parent too
PEAK = """
import sys
from pathlib import Path
from askwise import cli
cli.main(["predict", *sys.argv[1:]])
print(int(next(line for line in Path("/proc/self/status").open() if line.startswith("VmHWM")).split()[1]) // 1024)
"""


def test_memory_does_not_grow_with_the_table(folder: Path, tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    one = pa.Table.from_pandas(pd.concat([patients(300, seed=5)[0]] * 100, ignore_index=True), preserve_index=False)
    peaks = []
    for times in (1, 12):  # 30,000 and 360,000 rows; as a frame the second takes about 100 MB more
        with parquet.ParquetWriter(tmp_path / "c.parquet", one.schema) as writer:
            for _ in range(times):
                writer.write_table(one)
        command = [sys.executable, "-c", PEAK, folder / "m.askwise", tmp_path / "c.parquet", "--out", tmp_path / "d.parquet"]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout))
        assert parquet.ParquetFile(tmp_path / "d.parquet").metadata.num_rows == 30_000 * times
    assert peaks[1] < peaks[0] + 60
