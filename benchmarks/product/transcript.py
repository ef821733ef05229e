"""What somebody sees who trains on the thyroid data for the first time: the words and the pictures.

    ./dev sh python -m benchmarks.product.transcript [--out docs/thyroid] [--algorithm stack]

Runs `askwise fit --data thyroid` as a user would, in an empty folder, and writes what it said to transcript.txt, its pictures
to *.svg and a page that shows them. `--algorithm`: another one than the default.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import askwise
from askwise import plots
from askwise.datasets.named import raw
from askwise.evaluation import Report
from benchmarks.script import arguments

ROOT = Path(__file__).parents[2]
COMMAND = ["askwise", "fit", "--data", "thyroid"]
PAGE = """# A first run

Made by `./dev sh python -m benchmarks.product.transcript`, which runs `{command}` in an empty folder; everything it
printed is in [transcript.txt](transcript.txt). Run it again whenever training changes.

## What each amount of money buys

![mean cost per patient against the score, with a band, the same tests for everybody, and all tests](frontier.svg)

The line joins the best of all policies that were measured; between two of them, some cases follow one and the rest the other. The
band is one standard error to either side, and the legend says on how many cases, which were held out when the policy was learned.
Squares are what one would build by hand: the same tests for everybody, in the best fixed order. The thin dashed line is what the
policies of the thick one come to on test rows, which no part of the fit has seen. The score is one minus the expected loss with
balanced class weights, so deciding without any test has one half; the corner shows the upper end once more, enlarged.

## How training went

![area under the frontier over the steps of training](progress.svg)

One training learns all tradeoffs at once. Now and then the whole frontier is measured on held-out rows; the area under it
is one number for all budgets.

## Which tests are bought

![share of the cases of each class that buys each test](bought.svg)

For held-out cases of each true class: the share that buys a test, under the policy that the model follows by default.

## The most common paths

![tree of the tests that cases buy, with decisions](paths.svg)

Cases start on the left, and a band is as wide as the cases that take it are many. On the right is what a path costs and how
often its decision is right. Cases are test rows.

## How it ends

![share of the cases of each class that is decided rightly](recall.svg)

![how often what had a probability came true](calibration.svg)

Held-out cases again. A point on the dash-dotted line has probabilities that are what they say; above it is the number of cases.
"""


def transcript(folder: Path, command: list[str]) -> str:
    """Runs the command in a folder and tells all about it; its files stay there."""
    began = time.perf_counter()
    program = Path(sys.executable).with_name(command[0])
    run = subprocess.run([program, *command[1:]], cwd=folder, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    parts = [f"$ {' '.join(command)}", f"exit code {run.returncode}, {seconds:.0f} s"]
    parts += [f"--- {name}\n{text.rstrip()}" for name, text in (("stderr", run.stderr), ("stdout", run.stdout))]
    text = "\n\n".join(parts) + "\n"
    for place in (folder, ROOT, Path.home()):
        text = text.replace(f"{place}/", "")
    if run.returncode:
        raise SystemExit(text)
    return text


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "thyroid")
    parser.add_argument("--algorithm")
    options = parser.parse_args()
    command = [*COMMAND, *(["--algorithm", options.algorithm] if options.algorithm else [])]
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        text = transcript(Path(name), command)
        model = askwise.load(Path(name) / "thyroid.askwise")
        shutil.copyfile(Path(name) / "thyroid.svg", options.out / "frontier.svg")
    data = raw("thyroid")
    test = data.splits(0)[2]
    problem = model.problem(data.table.iloc[test], np.asarray(data.y)[test])
    report = Report(problem, model.rollout(problem))
    plots.save(plots.progress(model), options.out / "progress.svg")
    plots.save(plots.bought(model), options.out / "bought.svg")
    plots.save(plots.recall(model), options.out / "recall.svg")
    plots.save(plots.calibration(model), options.out / "calibration.svg")
    plots.save(plots.paths(report, unit=model.unit), options.out / "paths.svg")
    (options.out / "transcript.txt").write_text(text)
    (options.out / "README.md").write_text(PAGE.format(command=" ".join(command)))
    print(text)


if __name__ == "__main__":
    main()
