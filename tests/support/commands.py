"""Commands run in this process, and a folder of files to run them on."""

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from tests.support.patients import COSTS, DERIVED, PRICES, SETUP, classifier, patients

from askwise import HardBudget
from askwise.cli import main
from askwise.tables.reading import read_table

EXPECTED = ("askwise: the training reached ", "askwise: these cases are rows that the model was fitted on")


def run(*argv) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command, in this process, but that a training was cut short, and that cases are those
    of the fit: tests train briefly, and have few cases."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(a) for a in argv])
    lines = err.getvalue().splitlines(keepends=True)
    return code, out.getvalue(), "".join(line for line in lines if not line.startswith(EXPECTED))


def ok(*argv) -> str:
    code, out, err = run(*argv)
    assert (code, err) == (0, "")
    return out


def fill(here: Path) -> Path:
    """Cases, prices, and a model that was fitted on them."""
    X, y = patients(160)
    X.assign(diagnosis=y).to_csv(here / "cases.csv", index=False)
    (here / "prices.csv").write_text("test,cost\n" + "".join(f"{t},{c}\n" for t, c in COSTS.items() if t != "index"))
    lines = "".join(f"{name},{price},{';'.join(tests)}\n" for name, (price, tests) in SETUP.items())
    (here / "setup.csv").write_text("setup,cost,tests\n" + lines)
    (here / "derived.csv").write_text("test,sources\n" + "".join(f"{t},{';'.join(s)}\n" for t, s in DERIVED.items()))
    (here / "loss.csv").write_text("truth,well,ill\nill,20,0\nwell,0,1\n")
    (here / "reveals.csv").write_text("test,columns\nform,smoker;colour;town\n")
    table = read_table(here / "cases.csv").drop(columns="diagnosis")
    classifier(**PRICES, unit="€").fit(table, y).save(here / "m.askwise")
    classifier(**PRICES, budget=HardBudget("1.3")).fit(table, y).save(here / "hard.askwise")
    return here
