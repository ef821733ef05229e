"""Targets and class weights on the command line."""

import json
import re
import warnings

import pytest
from tests.support.commands import ok, run
from tests.support.patients import PRICES, patients

from askwise import AtLeast, AtMost, ClassWeights, CostlyClassifier, HardBudget, StackConfig, Tradeoff, load
from askwise.cli.options import budget_of
from askwise.cli.parser import parser
from askwise.errors import InputError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = tmp_path_factory.mktemp("targets")
    X, y = patients(200, holes=False)
    X.assign(diagnosis=y).to_csv(here / "cases.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quick = StackConfig.quick().but(value_steps=40, network_steps=30)
        CostlyClassifier(**PRICES, config=quick, random_state=0, n_jobs=1).fit(X, y).save(here / "m.askwise")
    return here


def parsed(*argv):
    return budget_of(parser().parse_args(["evaluate", "m.askwise", *argv]))


@pytest.mark.parametrize(
    ("argv", "budget"),
    [
        (["--at-least", "recall:ill=0.97", "--confidence", "0.9"], AtLeast(recall={"ill": 0.97}, confidence=0.9)),
        (
            ["--at-least", "recall:a=b=0.9", "--at-least", "accuracy=0.5", "--hard-budget", "3"],
            HardBudget(3) & AtLeast(recall={"a=b": 0.9}) & AtLeast(accuracy=0.5),
        ),
        (["--at-least", "specificity:x:y=0.9"], AtLeast(specificity={"x:y": 0.9})),
        (["--at-most", "loss=0.1"], AtMost(loss=0.1)),
        (["--weigh", "ill=5", "--weigh", "well=0.5", "--tradeoff", "1"], ClassWeights({"ill": 5, "well": 0.5}) & Tradeoff(1)),
    ],
)
def test_options_are_budgets(argv, budget):
    assert parsed(*argv) == budget


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["--at-least", "recall=0.9"], "--at-least recall=0.9 cannot be read; write --at-least recall:CLASS=0.9"),
        (["--at-least", "accuracy:ill=0.9"], "write --at-least accuracy=0.9"),
        (["--at-least", "precision:ill=0.9"], "is about 'precision'"),
        (["--at-least", "loss=0.9"], "is about 'loss'"),
        (["--at-least", "accuracy"], "has no value; write it like --at-least accuracy=0.9"),
        (["--at-most", "loss=little"], "ends in 'little', which is not a number"),
        (["--weigh", "ill"], "has no value; write it like --weigh CLASS=5"),
        (["--weigh", "ill=-1"], "the weight of 'ill' is -1"),
        (["--weigh", "ill=5", "--weigh", "ill=6"], "sets the weight of 'ill' twice; set it once"),
        (["--confidence", "0.9"], "--confidence is about an average budget or a target"),
        (["--at-least", "accuracy=0.9", "--mixing"], "--mixing is about an average budget"),
        (["--at-least", "accuracy=0.9", "--tradeoff", "1"], "a tradeoff and a target contradict each other"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(argv, why):
    with pytest.raises(InputError, match=re.escape(why)):
        parsed(*argv)


def test_evaluate_says_whether_cases_bear_each_promise_out(folder):
    argv = ["evaluate", folder / "m.askwise", folder / "cases.csv", "--target", "diagnosis", "--hard-budget", "2.5"]
    argv += ["--at-least", "recall:ill=0.6", "--at-most", "loss=0.4"]
    text, figures = ok(*argv), json.loads(ok(*argv, "--json"))
    assert re.search(r"^recall of 'ill' of at least 0\.6: these come to [\d.]+, of \d+ cases \(kept\)$", text, re.MULTILINE)
    assert [p["promise"] for p in figures["promises"]] == [
        "no case costs more than 2.5",
        "recall of 'ill' of at least 0.6",
        "cases lose at most 0.4 on average",
    ]
    assert figures["cost"] == pytest.approx(load(folder / "m.askwise").at(parsed(*argv[5:])).expected["cost"], abs=0.5)


def test_predict_and_ask_follow_the_target(folder):
    argv = ["predict", folder / "m.askwise", folder / "cases.csv", "--json"]
    plain, weighed = (ok(*argv, *more) for more in ([], ["--weigh", "ill=25"]))
    assert weighed.count('"ill"') > plain.count('"ill"')
    code, _, err = run(*argv, "--at-least", "accuracy=1")
    assert code == 2
    assert "AtLeast(accuracy=1) cannot be reached" in err
    code, _, err = run(*argv, "--at-least", "recall:il=0.9")
    assert code == 2
    assert "did you mean 'ill'" in err
