"""What `askwise evaluate` says of each class."""

import json
import re

import pytest
from tests.support.commands import fill, ok

import askwise
from askwise.tables.reading import read_table


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return fill(tmp_path_factory.mktemp("evaluate"))


def test_evaluate_tells_recall_and_precision_by_class_with_intervals(folder):
    argv = ["evaluate", folder / "hard.askwise", folder / "cases.csv", "--target", "diagnosis"]
    figures, text = json.loads(ok(*argv, "--json")), ok(*argv)
    table = read_table(folder / "cases.csv")
    truth, decision = table["diagnosis"].to_numpy(), askwise.load(folder / "hard.askwise").acquire(table).prediction
    names = [each["class"] for each in figures["by_class"]]
    assert sorted(names) == ["ill", "well"]
    assert figures["confusion"] == [[int(((truth == a) & (decision == b)).sum()) for b in names] for a in names]
    for row, each in zip(figures["confusion"], figures["by_class"], strict=True):
        name = each["class"]
        assert (each["cases"], each["decisions"]) == ((truth == name).sum(), (decision == name).sum())
        assert each["recall"] == pytest.approx((decision == name)[truth == name].mean())
        assert each["precision"] == pytest.approx((truth == name)[decision == name].mean())
        recall, precision = (
            f"{100 * each[figure]:.1f} % +{100 * low:.1f} to {100 * high:.1f} %"
            for figure in ("recall", "precision")
            for low, high in [each[f"{figure}_interval"]]
        )
        assert re.search(rf"^ +{name} +{each['cases']} +{recall} +{each['decisions']} +{precision}$", text, re.MULTILINE)
        assert re.search(rf"^ +{name} +{row[0]} +{row[1]}$", text, re.MULTILINE)
    assert figures["balanced_accuracy"] == pytest.approx(sum(each["recall"] for each in figures["by_class"]) / 2)
