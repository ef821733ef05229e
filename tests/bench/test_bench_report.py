"""The page about a bench: its numbers against some worked out by hand, odd rows, odd names."""

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from tests.support.commands import ok, run
from tests.support.made_rows import row, write

from askwise import plots
from askwise.bench.entries import difference, entries, mean_curve, ranks
from askwise.bench.report import report
from askwise.bench.rows import gathered
from askwise.errors import InputError
from askwise.reports.pages import escaped


class Reader(HTMLParser):
    """Tables by caption, as lists of rows; whether every tag is closed; the names of parts."""

    ALONE = ("meta", "path", "use", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.open: list[str] = []
        self.ids: list[str] = []
        self.tags: set[str] = set()
        self.cell: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in self.ALONE:
            self.open.append(tag)
        if tag == "tr":
            self.line: list[str] = []
        if tag in ("th", "td", "caption"):
            self.cell = []

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        if tag not in self.ALONE:
            assert self.open.pop() == tag
        if tag == "caption":
            self.last = self.tables.setdefault("".join(self.cell), [])
        if tag in ("th", "td"):
            self.line.append("".join(self.cell))
        if tag == "tr":
            self.last.append(self.line)

    def handle_data(self, data):
        self.cell.append(data)


def page(tmp_path: Path, *rows, drawn: bool = False, **how) -> tuple[Reader, str, str]:
    """The tables, the HTML and the Markdown of a page about some rows; pictures take long and are left empty unless `drawn`."""
    out = tmp_path / "page.html"
    with pytest.MonkeyPatch.context() as patch:
        if not drawn:
            patch.setattr(plots, "inline", lambda figure: "<svg></svg>")
        report([write(tmp_path / "rows.jsonl", *rows)], out, **how)
    text = out.read_text()
    return Reader(text), text, out.with_suffix(".md").read_text()


def by_name(table: list[list[str]]) -> dict[str, dict[str, str]]:
    return {line[0]: dict(zip(table[0], line, strict=True)) for line in table[1:]}


def test_areas_measures_and_readings(tmp_path):
    many = [row(seed=0, area=0.8), row(seed=1, area=0.9), row(method="other", area=0.7, accuracy_at={}, cost_at={})]
    found, text, md = page(tmp_path, *many)
    tree = by_name(found.tables["toy: area under the frontier"])["tree"]
    assert tree["area"] == "0.8500 ± 0.0707"  # deviation: 0.1 / sqrt 2
    # the two draws of the means are 0.84 and 0.86; quantiles are interpolated between them
    assert tree["95 % interval"] == "0.8405 to 0.8595"
    assert (tree["seeds"], tree["minutes given"], tree["memory, MB"]) == ("2", "1", "101")
    assert tree["minutes taken"] == "1.00 ± 0.71"
    assert tree["cases: training / test"] == "60 / 20"
    read = by_name(found.tables["toy: read off the frontier"])
    assert read["tree"] == {
        "method": "tree", "score at cost 2": "0.7500 ± 0.0707", "cost at score 0.75": "3.00 ± 0.00",
        "cost at score 0.99": "never",
    }  # fmt: skip
    assert set(list(read["other"].values())[1:]) == {"–"}
    # the second point has the least loss on validation cases; its figures are those on test cases
    best = by_name(found.tables["toy: the best point of each method"])["other"]
    assert best == {
        "method": "other",
        "cost": "4.10",
        "loss": "0.2200",
        "accuracy": "0.7800",
        "balanced accuracy": "0.6800",
        "auroc": "–",
    }
    assert "<strong>0.8500 ± 0.0707</strong>" in text
    assert "| tree | **0.8500 ± 0.0707** | 0.8405 to 0.8595 | 2 |" in md


def test_some_seeds_reach_a_score(tmp_path):
    found, _, _ = page(tmp_path, row(cost_at={"0.9": 2.0}), row(seed=1, cost_at={"0.9": None}))
    assert by_name(found.tables["toy: read off the frontier"])["tree"]["cost at score 0.9"] == "2.00 (1 of 2 seeds)"


def test_budgets_wanted_and_achieved(tmp_path):
    found, _, _ = page(
        tmp_path, row(budget={"average": 4.2}), row(budget={"average": 3.8}), row(budget={"average": 3.0}, seed=0),
        row(budget={"average": 3.0}, seed=1, cost=4.4, cost_interval=[3.9, 4.9], score=0.85), row(budget={"hard": 9}),
        row(budget={"hard": 8.5}), row(budget={"tradeoff": 0.01}), row(budget={"average": 3.9, "hard": 8}),
    )  # fmt: skip
    lines = {line[1]: dict(zip(found.tables["toy: budgets"][0], line, strict=True)) for line in found.tables["toy: budgets"][1:]}
    assert {budget: line["kept"] for budget, line in lines.items()} == {
        "average 4.2": "yes",
        "average 3.8": "mean over by 0.2, which chance explains",  # 3.8 is within 3.5 to 4.5
        "average 3": "mean over by 1.2",
        "hard 9": "yes",
        "hard 8.5": "a case over by 0.5",
        "tradeoff 0.01": "–",
        "average 3.9 and hard 8": "mean over by 0.1, which chance explains; a case over by 1",
    }
    two = lines["average 3"]
    assert (two["seeds"], two["mean cost"], two["score"]) == ("2", "4.20 ± 0.28", "0.8000 ± 0.0707")
    head = found.tables["toy: budgets"][0]
    line = next(line for line in found.tables["toy: budgets"] if line[1] == "average 3")
    assert [line[i] for i, name in enumerate(head) if name == "95 % interval"] == ["3.70 to 4.70", "0.7000 to 0.8000"]


def test_ranks_share_places_and_say_where_a_method_is_not(tmp_path):
    found, _, _ = page(
        tmp_path, row(area=0.9), row(method="b", area=0.9), row(method="c", area=0.8),
        row("second", area=0.5), row("second", method="c", area=0.7),
    )  # fmt: skip
    table = by_name(found.tables["Ranks by area"])
    assert table["tree"]["toy"] == table["b"]["toy"] == "1.5 of 3"
    assert (table["c"]["toy"], table["c"]["second"], table["c"]["mean rank"]) == ("3 of 3", "1 of 2", "2.00")
    assert (table["b"]["second"], table["b"]["data sets"]) == ("–", "1")
    assert table["tree"]["mean rank"] == "1.75"
    assert table["tree"]["mean area short of the best"] == "0.1000"  # 0 and 0.2
    assert ranks([0.1, 0.3, 0.30000001, 0.2]) == [4, 1.5, 1.5, 3]


def test_differences_are_paired(tmp_path):
    draws = {"tree": [0.80, 0.90, 1.00], "b": [0.75, 0.86, 0.93], "c": [0.85, 0.85, 0.95]}
    many = [row(method=m, area=float(np.mean(d)), resampled=d) for m, d in draws.items()]
    many += [row(method="alone", area=0.5, resampled=None), row(method="fewer", area=0.5, resampled=[0.4, 0.5, 0.6], n_test=19)]
    found, _, _ = page(tmp_path, *many)
    table = by_name(found.tables["toy: differences of areas"])
    assert set(table) == {"b", "c"}  # without draws, or on other cases, nothing can be said
    # tree less b is 0.05, 0.04, 0.07, whatever both of them are; sorted 0.04, 0.05, 0.07
    assert table["b"]["difference"] == "+0.0533"
    assert table["b"]["95 % interval"] == "+0.0405 to +0.0690"
    assert (table["b"]["beyond chance"], table["c"]["beyond chance"]) == ("yes", "no")
    found, _, _ = page(tmp_path, *many, against="b")
    assert by_name(found.tables["toy: differences of areas"])["tree"]["difference"] == "-0.0533"
    with pytest.raises(InputError, match="'treee'; did you mean 'tree'"):
        page(tmp_path, *many, against="treee")


def test_only_seeds_that_both_have_are_compared():
    mine = entries([row(seed=0, area=0.9), row(seed=1, area=0.1)])[0]
    theirs = entries([row(method="b", seed=0, area=0.8)])[0]
    found = difference(mine, theirs)
    assert (round(found.mean, 9), found.seeds) == (0.1, 1)
    assert difference(mine, entries([row(method="b", seed=7)])[0]) is None


def test_the_mean_curve_has_the_mean_area():
    rows = [row(curve=[[0, 2, 10], [0.5, 0.7, 0.9]]), row(seed=1, curve=[[0, 5, 10], [0.4, 0.8, 0.8]])]
    cost, score = mean_curve(entries(rows)[0])
    assert cost.tolist() == [0, 2, 5, 10]
    assert score == pytest.approx([0.45, (0.7 + 0.56) / 2, (0.775 + 0.8) / 2, 0.85])
    each = [np.trapezoid(r["curve"][1], r["curve"][0]) for r in rows]
    assert np.trapezoid(score, cost) == pytest.approx(np.mean(each))


def test_names_say_what_tells_entries_apart():
    rows = [row(task={"remove": r, "imputation": i}) for r in (0.25, 0.5) for i in (None, "mice")]
    assert [e.name for e in entries(rows)] == [f"tree, {r} % removed, {i}" for r in (25, 50) for i in ("no imputation", "mice")]
    assert [e.name for e in entries([row(), row("other", task={"minutes": 5.0})])] == ["tree", "tree"]  # on each set only one
    two = entries([row(task={"minutes": 2.0}), row(task={"minutes": 5.0, "options": {"width": 8}})])
    assert [e.name for e in two] == ["tree, 2 min, no options", "tree, 5 min, width=8"]
    assert [e.name for e in entries([row(task={"remove": 0.9})])] == ["tree, 90 % removed"]


def limits(**most):
    return {"train": 0, "validation": 10000, "test": 30000, **most}


def file(sha256: str, **more):
    return {"file": "cases.csv", "target": "ill", "sha256": sha256, **more}


@pytest.mark.parametrize(
    ("one", "two", "names"),
    [
        ({}, {"class_weight": "balanced"}, ("toy (class_weight none)", "toy (class_weight balanced)")),
        ({"source": file("ab")}, {"source": file("cd")}, ("toy (file ab)", "toy (file cd)")),
        ({}, {"source": file("cd")}, ("toy (file none, settings 1)", "toy (file cd, settings 2)")),
        ({"source": file("ab")}, {"source": file("ab", costs={"age": 2})}, ("toy (settings 1)", "toy (settings 2)")),
        (
            {},
            {"most_rows": limits(test=9), "n_test": 9},
            ("toy (rows validation 10000, test 30000)", "toy (rows validation 10000, test 9)"),
        ),
    ],
)
def test_other_cases_under_the_same_name_are_told_apart(tmp_path, one, two, names):
    many = [row(**one), row(method="b", **one), row(**two), row(method="c", budget={"hard": 3}, **two), row(method="c", **two)]
    found, text, _ = page(tmp_path, *many, row(seed=1, status="failed", why="no luck", **two))
    first, second = names
    methods = {name: set(by_name(found.tables[f"{name}: area under the frontier"])) for name in names}
    assert methods == {first: {"tree", "b"}, second: {"tree", "c"}}
    assert set(by_name(found.tables[f"{first}: differences of areas"])) == {"b"}
    assert set(by_name(found.tables[f"{second}: differences of areas"])) == {"c"}
    ranking = by_name(found.tables["Ranks by area"])
    assert (ranking["b"][first], ranking["b"][second], ranking["c"][first]) == ("1.5 of 2", "–", "–")
    assert f"{second}: budgets" in found.tables
    assert found.tables["Tasks without a result"][1][0] == second
    assert [line[1] for line in found.tables["What was asked for"][1:]].count(second) == 2
    assert f"Data: {first}, {second}." in text


def test_other_cases_are_never_compared_case_by_case():
    mine = entries([row()])[0]
    for other in ({"class_weight": "balanced"}, {"source": file("ab")}, {"n_test": 9}):
        assert difference(mine, entries([row(method="b", **other)])[0]) is None
    assert difference(mine, entries([row(method="b", most_rows=limits(train=30))])[0]) is not None  # the same test cases


def test_a_method_with_limits_of_its_own_stays_beside_the_others(tmp_path):
    slow = [row(method="slow", seed=seed, area=0.9, most_rows=limits(test=9), n_test=9) for seed in (0, 1)]
    found, _, _ = page(tmp_path, row(), row(method="b"), *slow)
    table = by_name(found.tables["toy: area under the frontier"])
    assert {name: line["cases: training / test"] for name, line in table.items()} == {
        "tree": "60 / 20", "b": "60 / 20", "slow": "60 / 9",
    }  # fmt: skip
    assert set(by_name(found.tables["toy: differences of areas"])) == {"b"}  # less than tree: slow is best, but on other cases


def test_damaged_and_old_rows_are_passed_over_with_a_remark(tmp_path):
    good = row()
    old = {key: value for key, value in good.items() if key != "task"} | {"data": "toy", "method": "tree"}
    lines = [
        '{"task": {"data": "toy", "met', old, "[1, 2]", {**good, "area": float("nan")}, {**good, "status": "half"},
        {**good, "task": {"data": "toy", "method": "tree"}}, {**good, "resampled": 3}, {**good, "curve": [1, 2]},
        {**good, "source": "x.csv"}, "", good,
    ]  # fmt: skip
    found = gathered([write(tmp_path / "r.jsonl", *lines)])
    assert [r["task"]["method"] for r in found.rows] == ["tree"]
    assert [re.match(r"Line (\d+) of r.jsonl (.*); it was passed over", remark).groups() for remark in found.remarks] == [
        ("1", "is damaged"),
        ("2", "is not a row of a bench, or one of another version: it has no task"),
        ("3", "is damaged"),
        ("4", "is of another version: it is done, but has no area"),
        ("5", "has the status 'half', which nobody knows"),
        ("6", "is of another version: the seed of its task is None"),
        ("7", "is of another version: its resampled is 3"),
        ("8", "is of another version: it is done, but has no curve"),
        ("9", "is of another version: its source is 'x.csv'"),
    ]
    _, text, md = page(tmp_path, *lines)
    assert "Line 2 of rows.jsonl is not a row" in text
    assert "Line 2 of rows.jsonl is not a row" in md


def test_a_task_that_was_tried_again_counts_once(tmp_path):
    failed = {**row(), "status": "failed", "why": "RuntimeError: out of luck"}
    assert gathered([write(tmp_path / "a", failed, row())]).rows[0]["status"] == "done"
    assert gathered([write(tmp_path / "a", row(), failed)]).rows[0]["status"] == "done"
    both = gathered([write(tmp_path / "a", failed), write(tmp_path / "b", {**failed, "why": "again"})])
    assert [r["why"] for r in both.rows] == ["again"]
    assert "1 rows are of a task" in both.remarks[-1]


def test_refusals_and_failures_with_why(tmp_path):
    refused = [row(method="two", seed=s, status="refused", why="only two classes, here are 3") for s in (1, 0)]
    found, _, _ = page(tmp_path, *refused, row(method="bad", budget={"hard": 3}, status="failed", why="KeyError: 'x'"))
    assert found.tables["Tasks without a result"][1:] == [
        ["toy", "two", "none", "refused", "0, 1", "only two classes, here are 3"],
        ["toy", "bad", "hard 3", "failed", "0", "KeyError: 'x'"],
    ]
    assert "toy: area under the frontier" not in found.tables


def test_how_to_repeat_it(tmp_path):
    found, text, md = page(tmp_path, row(), row(seed=1, commit="def5678+", task={"options": {"width": 8}}))
    asked = dict(zip(*found.tables["What was asked for"], strict=True))
    assert (asked["plan"], asked["method"], asked["seeds"], asked["budgets"]) == ("first", "tree", "0, 1", "frontier")
    assert asked["options"] == '{"width": 8}'
    assert asked["at most so many rows"] == "validation 10000, test 30000"
    assert found.tables["Versions"] == [["askwise", "python"], ["0.1.0", "3.12.1"]]
    commands = "git checkout def5678\naskwise bench first.toml --out rows.jsonl\naskwise bench report rows.jsonl --out page.html"
    assert commands in text
    assert commands in md
    assert "abc1234, def5678+" in text
    times = by_name(found.tables["Times"])["tree"]
    assert (times["tasks done"], times["minutes in all"], times["of the time given"]) == ("2", "2.0", "100 %")


def test_odd_names_are_escaped(tmp_path):
    odd = "<script>alert('1')</script> | `a` *b* [c](http://x) $x$ _d_ & \\"
    rows = [row(odd, odd, area=0.5 + seed / 10, seed=seed, plan=odd, commit=odd, task={"label": odd}) for seed in (0, 1)]
    rows += [
        row(odd, "x", budget={"hard": 9}),
        row(odd, odd, seed=5, status="failed", why=odd),
        row("<script>", "x", budget={"hard": 9}),
    ]
    found, _, md = page(tmp_path, *rows, drawn=True)
    assert f"{odd}: area under the frontier" in found.tables
    assert "script" not in found.tags
    outside = re.sub(r"^(`{3,})\n.*?\n\1$", "", md, flags=re.S | re.M)
    assert "<script" not in outside
    assert re.findall(r"(?<!\\)[`*\[](?!\[)", outside.replace("**", "").replace("![", "")) == []
    for line in outside.splitlines():
        if line.startswith("|"):  # each table keeps its columns
            assert len(re.findall(r"(?<!\\)\|", line)) in {len(lines[0]) + 1 for lines in found.tables.values()}
    # pictures of two sets whose names are alike as file names
    files = [p.name for p in tmp_path.glob("*.svg")]
    assert len(files) == 3
    assert all(re.fullmatch(r"[\w.-]+", name) for name in files)
    assert all(f"]({name})" in md for name in files)


def test_markdown_finds_nothing_in_plain_text():
    assert escaped("miniboone_tiny") == "miniboone_tiny"
    assert escaped("_a_ <b>\n# c") == r"\_a\_ &lt;b&gt; # c"
    assert escaped("# a") == r"\# a"
    assert escaped("1. a") == r"\1. a"


def test_the_page_needs_nothing_and_can_be_read_by_everyone(tmp_path):
    found, text, _ = page(tmp_path, row(), row(method="b"), row("more"), row(budget={"average": 4}), drawn=True)
    assert text.startswith("<!doctype html>\n<html lang='en'>")
    assert not found.tags & {"script", "link", "iframe", "img"}
    rest = re.sub(r"""\sxmlns(:\w+)?=["'][^"']*["']""", "", text)
    assert re.findall(r"https?://[^\s\"'<>]*", rest) == []
    assert re.findall(r"""(?:src|href)=["'](?!#)[^"']*""", rest) == []
    assert len(found.ids) == len(set(found.ids))  # also of several pictures
    assert set(re.findall(r"(?:href=[\"']#|url\(#)([\w.-]+)", text)) <= set(found.ids)
    assert text.count("<table>") == text.count("<caption>") == text.count("<thead>")
    assert text.count("<svg") == text.count("role='img' tabindex='0' aria-label='") == text.count("<figcaption>") == 3
    assert "@media print" in text
    assert re.findall(r"<h(\d)", text)[:2] == ["1", "2"]


def test_the_command(tmp_path):
    rows = write(tmp_path / "mine.jsonl", row(), row("more"))
    said = ok("bench", "report", rows, "--title", "A <title>").split()
    assert [Path(p).name for p in said] == ["mine.html", "mine.md", "mine_frontier_toy.svg", "mine_frontier_more.svg"]
    assert "<title>A &lt;title&gt;</title>" in (tmp_path / "mine.html").read_text()
    first = {p: Path(p).read_bytes() for p in said}
    ok("bench", "report", rows, "--title", "A <title>")
    assert {p: Path(p).read_bytes() for p in said} == first  # the same rows give the same bytes


@pytest.mark.parametrize(
    ("lines", "options", "words"),
    [
        ([], [], "there are no rows of a bench in rows.jsonl; make some with `askwise bench PLAN.toml`"),
        (["{"], [], "there are no rows of a bench in rows.jsonl (1 lines were passed over)"),
        (["{"], ["--out", "page.pdf"], "end its name in .html"),
        (["{"], ["--out", "nowhere/page.html"], "is not a folder"),
    ],
)
def test_bad_input_gets_one_sentence(tmp_path, monkeypatch, lines, options, words):
    monkeypatch.chdir(tmp_path)
    write(Path("rows.jsonl"), *lines)
    code, out, err = run("bench", "report", "rows.jsonl", *options)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err
    assert [p.name for p in tmp_path.iterdir()] == ["rows.jsonl"]


def test_a_file_that_is_not_there():
    code, _, err = run("bench", "report", "nothing.jsonl")
    assert code == 2
    assert "there is no file 'nothing.jsonl'" in err
