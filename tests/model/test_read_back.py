"""What is accepted before a fit can be loaded after it, and "written" is said only of what was read again."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.commands import run
from tests.support.models import family
from tests.support.patients import classifier, numbers

import askwise
from askwise import FamilyConfig, Tradeoff
from askwise.errors import StateError
from askwise.model import file

pytest.importorskip("pandas", reason="pandas is not installed")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("ending", ["askwise", "npz"])
def test_a_file_that_cannot_be_read_again_does_not_replace_the_old_one(ending, tmp_path):
    path = tmp_path / f"m.{ending}"

    def write(model):
        model.save(path) if ending == "askwise" else model.export(path)

    write(family())
    before = path.read_bytes()
    for wrong in ({"unit": 3}, {"seed": -1}, {"at_once": (0.0,)}):
        with pytest.raises(StateError, match="was not written, since it could not be read again") as caught:
            write(replace(family(), **wrong))
        assert "\n" not in str(caught.value)
        assert ".part" not in str(caught.value)
        assert path.read_bytes() == before
        assert names(tmp_path) == [path.name]


def test_a_disk_that_gives_other_bytes_back_is_noticed(tmp_path, monkeypatch):
    path = tmp_path / "m.askwise"
    family().save(path)
    before = path.read_bytes()
    write = Path.write_bytes
    monkeypatch.setattr(Path, "write_bytes", lambda path, data: write(path, data[:-1] + bytes([data[-1] ^ 1])))
    with pytest.raises(StateError, match="was not written"):
        family(seed=1).save(path)
    assert path.read_bytes() == before


@pytest.fixture
def cases(tmp_path):
    import pandas as pd

    X, y = numbers(60)
    pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y).to_csv(tmp_path / "cases.csv", index=False)
    return tmp_path / "cases.csv"


def fit(cases, *more):
    return run("fit", cases, "--target", "y", "--out", cases.with_name("m.askwise"), "--quiet", *more)


@pytest.mark.parametrize("option", ["--hard-budget", "--average-budget", "--tradeoff"])
@pytest.mark.parametrize("amount", ["1e20", "1e300", "1e-20", "1e999999999"])
def test_amounts_that_no_file_keeps_are_refused_before_training(option, amount, cases):
    code, out, err = fit(cases, option, amount)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"is '{amount}'; it must be a finite number, 0 or more: either 0 or from 1e-12 to 1e15" in err
    assert names(cases.parent) == ["cases.csv"]


def test_costs_that_no_file_keeps_are_refused_before_training(cases):
    for text in ("a,1e-20\nb,1\nc,1", "a,1e999999999\nb,1\nc,1", "a,1e300\nb,1\nc,1"):
        (cases.parent / "prices.csv").write_text(f"test,cost\n{text}\n")
        code, out, err = fit(cases, "--costs", cases.parent / "prices.csv")
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "the cost of test 'a'" in err
    (cases.parent / "setup.csv").write_text("setup,cost,tests\ndraw,1e20,a;b\n")
    code, out, err = fit(cases, "--setup", cases.parent / "setup.csv")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "the cost of set-up 'draw' is '1e20'" in err


def test_a_file_is_reported_as_written_only_if_it_can_be_read(cases, monkeypatch):
    out = cases.with_name("m.askwise")
    family().save(out)
    before = out.read_bytes()

    def damaged(*_, **__):
        raise StateError("it is damaged")

    monkeypatch.setattr(file, "load", damaged)
    code, said, err = fit(cases, "--time-limit", "0")
    assert (code, said) == (2, "")
    assert "was not written, since it could not be read again: it is damaged" in err
    assert out.read_bytes() == before


@pytest.mark.parametrize("costs", [["1e-12"] * 3, ["1e15", 0, 1], ["1e-6", "1e6", "1e9"]], ids=str)
@pytest.mark.parametrize("loss", [None, [[0, 1e15], [1e-12, 0]]], ids=str)
def test_the_outermost_amounts_train_and_load(costs, loss, tmp_path):
    X, y = numbers(60)
    quick = FamilyConfig(max_steps=20, width=16, prefix_batch=32, parallel_cases=8, interim_measurements=1)
    fitted = classifier(algorithm="family", config=quick, costs=costs, loss=loss, budget=Tradeoff("1e-12")).fit(X, y)
    fitted.save(tmp_path / "m")
    assert askwise.load(tmp_path / "m").acquire(X).tests == fitted.acquire(X).tests


@pytest.mark.parametrize("wrong", [{"unit": 3}, {"unit": None}, {"random_state": 2**70}], ids=str)
def test_settings_that_no_file_keeps_are_refused_before_training(wrong):
    trained = []
    with pytest.raises(askwise.errors.InputError, match=next(iter(wrong))):
        classifier(**wrong).fit(*numbers(40), callback=trained.append)
    assert trained == []
