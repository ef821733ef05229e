"""What somebody sees who trains on the thyroid data for the first time: the words and the pictures.

    ./dev sh python -m benchmarks.product.transcript [--out docs/thyroid]

Runs `askwise fit --data thyroid` as a user would, in an empty folder, and writes what it said to transcript.txt, its pictures
to *.svg and a page that shows them.
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
PAGE = f"""# A first run

Made by `./dev sh python -m benchmarks.product.transcript`, which runs `{" ".join(COMMAND)}` in an empty folder; everything it
printed is in [transcript.txt](transcript.txt). Run it again whenever training changes.

## What each amount of money buys

![cost against score](frontier.svg)

Each point of the line is a policy that one run of training found, chosen on validation rows and drawn with what it comes to on
test rows. The score is one minus the expected loss with balanced class weights, so deciding without any test has one half.

## How training went

![area under the validation frontier over the steps of training](progress.svg)

One training learns all tradeoffs at once. Now and then the whole frontier is measured on validation rows; the area under it
is one number for all budgets, and the best state is kept.

## Which tests are bought

![share and position of every test, by class](bought.svg)

For cases of each true class: the share that buys a test, and its mean position among the tests bought. Rows are test rows,
which training never saw, decided by the policy that the model follows by default.

## The most common paths

![tree of the tests that cases buy, with decisions](paths.svg)

Cases start on the left, and a band is as wide as the cases that take it are many. On the right is what a path costs and how
often its decision is right.
"""


def transcript(folder: Path) -> str:
    """Runs the command in a folder and tells all about it; its files stay there."""
    began = time.perf_counter()
    program = Path(sys.executable).with_name(COMMAND[0])
    run = subprocess.run([program, *COMMAND[1:]], cwd=folder, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    parts = [f"$ {' '.join(COMMAND)}", f"exit code {run.returncode}, {seconds:.0f} s"]
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
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        text = transcript(Path(name))
        model = askwise.load(Path(name) / "thyroid.askwise")
        shutil.copyfile(Path(name) / "thyroid.svg", options.out / "frontier.svg")
    data = raw("thyroid")
    test = data.splits(0)[2]
    problem = model.problem(data.table.iloc[test], np.asarray(data.y)[test])
    report = Report(problem, model.rollout(problem))
    plots.save(plots.progress(model), options.out / "progress.svg")
    plots.save(plots.bought(report), options.out / "bought.svg")
    plots.save(plots.paths(report, unit=model.unit), options.out / "paths.svg")
    (options.out / "transcript.txt").write_text(text)
    (options.out / "README.md").write_text(PAGE)
    print(text)


if __name__ == "__main__":
    main()
