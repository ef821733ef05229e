"""Model files: exact, whole, without code, and refused in one sentence when they are anything else."""

import json
import os
import random
import struct
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from tests.support.patients import PRICES, classifier, numbers, patients

import askwise
from askwise import AverageBudget, HardBudget, Tradeoff
from askwise.errors import StateError
from askwise.model import archives, file
from askwise.reports.model_report import card as card_of
from askwise.reports.model_report import describe, frontier_table

pytest.importorskip("pandas", reason="pandas is not installed")

FIT = patients(160, seed=0)
NEW = patients(60, seed=1)[0]


@pytest.fixture(scope="module", params=[None, AverageBudget("0.7"), HardBudget("1.3"), Tradeoff("0.01")], ids=str)
def fitted(request):
    return classifier(**PRICES, budget=request.param, known=["town"], unit="€").fit(*FIT)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes of a good file; its budget mixes two policies, so that every part of it is used."""
    fitted = classifier(**PRICES, budget=AverageBudget("0.7"), known=["town"]).fit(*FIT)
    assert 0 < fitted.model_.blend.share < 1
    path = tmp_path_factory.mktemp("whole") / "m.askwise"
    fitted.save(path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def parts(whole, tmp_path_factory):
    """Its arrays and its card."""
    path = tmp_path_factory.mktemp("parts") / "m.askwise"
    path.write_bytes(whole)
    return archives.read(path, file.MODEL)


def seal(path, arrays, card):
    """Writes a file as askwise does, whatever it says: tampered with by someone who knows how."""
    archives.write(path, file.MODEL, arrays, card)


def refused(path, **more) -> str:
    with pytest.raises(StateError) as caught:
        askwise.load(path, **more)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    assert caught.value.__cause__ is None, "a user need not see what went wrong inside"
    return message


# ---------------------------------------------------------------------- good files


def test_a_round_trip_is_exact(fitted, tmp_path):
    fitted.save(tmp_path / "m.askwise")
    model = askwise.load(tmp_path / "m.askwise")
    mine, theirs = fitted.acquire(NEW), model.acquire(NEW)
    assert theirs.cost.tobytes() == mine.cost.tobytes()
    assert theirs.probability.tobytes() == mine.probability.tobytes()
    assert theirs.prediction.tolist() == mine.prediction.tolist()
    assert theirs.tests == mine.tests
    problem = model.problem(NEW)
    assert model.belief(problem, model.rollout(problem)).tobytes() == fitted.predict_proba(NEW).tobytes()
    assert (model.unit, model.budget, model.known) == ("€", fitted.model_.budget, ("town",))
    assert model.expected == fitted.model_.expected
    assert describe(model) == describe(fitted.model_)


def test_other_budgets_survive_the_file(fitted, tmp_path):
    fitted.save(tmp_path / "m.askwise")
    model = askwise.load(tmp_path / "m.askwise")
    for budget in (AverageBudget("0.3"), Tradeoff("0.05")):
        assert model.at(budget).acquire(NEW).tests == fitted.at(budget).acquire(NEW).tests


def contents(path):
    """Arrays and card of a file; the bytes themselves may come in another order."""
    arrays, card = archives.read(path, file.MODEL)
    return {name: (a.dtype, a.shape, a.tobytes()) for name, a in arrays.items()}, card


def test_saving_twice_gives_the_same_file(fitted, tmp_path):
    fitted.save(tmp_path / "a")
    file.save(askwise.load(tmp_path / "a"), tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_a_loaded_model_can_do_what_the_classifier_can(fitted, tmp_path):
    fitted.save(tmp_path / "a")
    model = askwise.load(tmp_path / "a")
    assert model.predict(NEW).tolist() == fitted.predict(NEW).tolist()
    assert model.predict_proba(NEW).tobytes() == fitted.predict_proba(NEW).tobytes()
    model.save(tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


@pytest.mark.parametrize("names", [["no", "yes"], [3, 17], [False, True], [0.5, 1.5]], ids=str)
def test_classes_keep_their_type(names, tmp_path):
    X, codes = numbers()
    y = np.array([str(n) for n in names])[codes] if isinstance(names[0], float) else np.array(names)[codes]
    fitted = classifier(time_limit=0).fit(X, y)
    fitted.save(tmp_path / "m")
    said = askwise.load(tmp_path / "m").acquire(X).prediction
    assert said.tolist() == fitted.predict(X).tolist()
    assert said.dtype == fitted.predict(X).dtype


def test_loading_and_deciding_needs_neither_torch_nor_scikit_learn(tmp_path):
    X, y = numbers()
    fitted = classifier(budget=AverageBudget(1)).fit(X, y)
    fitted.save(tmp_path / "m")
    np.save(tmp_path / "X.npy", X)
    program = f"""
import sys, numpy as np, askwise
report = askwise.load({str(tmp_path / "m")!r}).acquire(np.load({str(tmp_path / "X.npy")!r}))
print(sorted({{"torch", "sklearn", "pandas", "matplotlib"}} & set(sys.modules)), report.cost.sum())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.split() == ["[]", str(fitted.acquire(X).cost.sum())]


def test_the_card_can_be_read_without_askwise(whole):
    length = struct.unpack("<Q", whole[:8])[0]
    card = json.loads(json.loads(whole[8 : 8 + length])["__metadata__"]["facts"])
    assert card["classes"] == ["ill", "well"]
    assert card["tests"] == list(FIT[0].columns)
    assert Fraction(card["budget"]["average"]) == Fraction("0.7")
    assert card["facts"]["config"]["width"] == 32
    assert len(card["facts"]["data"]) == 16  # the fingerprint
    versions = [value for key, value in card["facts"].items() if key in ("askwise", "versions", "version")]
    assert askwise.__version__ in str(versions)


def test_a_crash_while_saving_leaves_the_old_file(whole, parts, tmp_path, monkeypatch):
    path = tmp_path / "m.askwise"
    path.write_bytes(whole)
    model = askwise.load(path)

    def crash(_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(OSError, match="disk full"):
        file.save(model, path)
    assert path.read_bytes() == whole
    assert [p.name for p in tmp_path.iterdir()] == ["m.askwise"]


# ---------------------------------------------------------------------- what stays with the user


def narrow(schema, width):
    """An encoder of one's own."""
    from torch import nn

    return nn.Sequential(nn.Linear(len(schema.columns) + schema.n_tests, width), nn.Tanh())


def narrower(schema, width):
    return narrow(schema, width // 2)


def test_a_network_of_ones_own_must_be_handed_over_again(tmp_path):
    X, y = numbers()
    fitted = classifier(network=narrow, budget=Tradeoff(0)).fit(X, y)
    fitted.save(tmp_path / "m")
    assert "network=" in refused(tmp_path / "m")
    back = askwise.load(tmp_path / "m", network=narrow).acquire(X)
    assert back.tests == fitted.acquire(X).tests
    assert back.probability.tobytes() == fitted.acquire(X).probability.tobytes()
    classifier(time_limit=0).fit(X, y).save(tmp_path / "without")
    assert "leave network= out" in refused(tmp_path / "without", network=narrow)


def test_another_network_than_it_was_fitted_with_is_refused(tmp_path):
    X, y = numbers()
    classifier(network=narrow, budget=Tradeoff(0)).fit(X, y).save(tmp_path / "m")
    refused(tmp_path / "m", network=narrower)


# ---------------------------------------------------------------------- other files


def test_a_file_cut_short_anywhere_is_refused(whole, tmp_path):
    path = tmp_path / "m.askwise"
    for keep in [*range(12), *range(12, len(whole), len(whole) // 60), len(whole) - 1]:
        path.write_bytes(whole[:keep])
        assert "cut short or damaged" in refused(path)


def test_a_file_with_something_behind_it_is_refused(whole, tmp_path):
    (tmp_path / "m").write_bytes(whole + b"\0")
    refused(tmp_path / "m")


def test_a_file_that_is_too_large_is_not_even_opened(whole, tmp_path, monkeypatch):
    (tmp_path / "m").write_bytes(whole)
    monkeypatch.setattr(archives, "LARGEST", len(whole) - 1)
    assert "is larger than" in refused(tmp_path / "m")


def test_other_files_are_refused(tmp_path):
    assert "there is no file" in refused(tmp_path / "nothing")
    (tmp_path / "folder.askwise").mkdir()
    refused(tmp_path / "folder.askwise")
    (tmp_path / "empty").write_bytes(b"")
    assert "cut short or damaged" in refused(tmp_path / "empty")
    (tmp_path / "noise").write_bytes(random.Random(0).randbytes(5000))
    refused(tmp_path / "noise")
    for name, data in (("cases.csv", b"age,diagnosis\n1,ill\n"), ("m.onnx", b"\x08\x08\x12\x07askwise")):
        (tmp_path / name).write_bytes(data)
        assert refused(tmp_path / name).endswith(f"{name}' is not a model; name a file that askwise has written")
    file.write_state(tmp_path / "run.state", {"a": np.zeros(2)}, {"step": 3})
    assert "is not a model" in refused(tmp_path / "run.state")


@pytest.mark.parametrize("version", ["4", "10", "2.5", "x", "", "²"])
def test_a_newer_file_says_so(parts, tmp_path, version):
    archives.write(tmp_path / "m", f"askwise-model-{version}", *parts)
    assert "newer version of askwise" in refused(tmp_path / "m")


@pytest.mark.parametrize("version", ["0", "1", "2"])
def test_a_file_of_an_earlier_version_says_what_to_do(parts, tmp_path, version):
    archives.write(tmp_path / "m", f"askwise-model-{version}", *parts)
    words = "was written by an earlier version of askwise, which this one does not read; fit again"
    assert refused(tmp_path / "m") == f"{str(tmp_path / 'm')!r} {words}"


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 5000, '{"seed": ' + "9" * 5000 + "}", "null", "[]", "{}", "", '"\\ud800"'])
def test_a_card_that_is_no_card_is_refused(whole, parts, tmp_path, text):
    import safetensors.numpy

    safetensors.numpy.save_file(parts[0], tmp_path / "m", {"format": file.MODEL, "facts": text})
    refused(tmp_path / "m")


# ---------------------------------------------------------------------- damage and tampering


def test_every_changed_byte_is_noticed(whole, tmp_path):
    """In weights too: a policy that is a little different is worse than none."""
    path, chance, missed = tmp_path / "m", random.Random(0), []
    header = 8 + struct.unpack("<Q", whole[:8])[0]
    places = chance.sample(range(header), 150) + chance.sample(range(header, len(whole)), 100)
    for place in places:
        changed = bytearray(whole)
        changed[place] ^= 1 << chance.randrange(8)
        path.write_bytes(changed)
        try:
            askwise.load(path)
            missed.append(place)
        except StateError:
            pass
    assert missed == []


def use(model) -> None:
    """Everything that is done with models; whatever a file says, this must come to something sensible."""
    report = model.acquire(NEW)
    assert np.isfinite(report.cost).all()
    assert (report.cost >= 0).all()
    assert ((report.probability >= 0) & (report.probability <= 1)).all()
    assert all(isinstance(t, str) for tests in report.tests for t in tests)
    assert describe(model)
    assert frontier_table(model)
    json.dumps({k: v for k, v in card_of(model).items() if k != "facts"}, allow_nan=False)  # facts are only told


def outcome(path) -> str | None:
    """What is wrong with how a file was taken: nothing, if it was refused in a line, or can be used."""
    try:
        model = askwise.load(path)
    except StateError as error:
        return None if "\n" not in str(error) else f"several lines: {error}"
    except Exception as error:
        return f"load: {type(error).__name__}: {error}"
    try:
        use(model)
    except Exception as error:
        return f"use: {type(error).__name__}: {error}"
    return None


def places_of(value, path=()):
    """Every place in a card."""
    if path:
        yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    for key, more in inside:
        if key not in ("records", "config"):  # told, but not used
            yield from places_of(more, (*path, key))


def changed_at(card, path, how):
    """A copy of a card in which one place is another value, or gone."""
    copy = json.loads(json.dumps(card))
    holder = copy
    for key in path[:-1]:
        holder = holder[key]
    if how == "gone":
        del holder[path[-1]]
    else:
        holder[path[-1]] = how
    return copy


VALUES = ["gone", None, 0, -1, 1.5, "x", "", [], {}, [1], True, "1/0", float("nan"), float("inf"), 10**30, ["a", "a"], [[1]]]


def test_no_change_to_the_card_gets_through(parts, tmp_path):
    arrays, card = parts
    todo = [(path, how) for path in places_of(card) for how in VALUES]
    chosen = random.Random(0).sample(todo, 500)
    wrong = []
    for path, how in chosen:
        seal(tmp_path / "m", arrays, changed_at(card, path, how))
        found = outcome(tmp_path / "m")
        if found is not None:
            wrong.append(f"{'.'.join(map(str, path))} = {how!r}: {found[:150]}")
    assert wrong == []


def test_no_field_can_take_anothers_place(parts, tmp_path):
    arrays, card = parts
    wrong = []
    for a in card:
        for b in card:
            if a < b and card[a] != card[b]:
                seal(tmp_path / "m", arrays, {**card, a: card[b], b: card[a]})
                found = outcome(tmp_path / "m")
                if found is not None:
                    wrong.append(f"{a} <-> {b}: {found[:150]}")
    assert wrong == []


CHANGES = {
    "flat": np.ravel,
    "doubled": lambda a: np.concatenate([a, a]),
    "empty": lambda a: a[:0],
    "shorter": lambda a: a[:-1],
    "narrower": lambda a: a[..., :-1],
    "on its side": np.transpose,
    "one number": lambda a: np.array(3, a.dtype),
    "NaN": lambda a: np.full(a.shape, np.nan, np.float32),
    "negative": lambda a: -1 - a.astype(np.int64),
    "huge": lambda a: np.full(a.shape, 2**40),
    "all ones": np.ones_like,
    "truths": lambda a: a.astype(bool),
    "floats": lambda a: a.astype(np.float64) + 0.5,
}


def test_no_change_to_the_arrays_gets_through(parts, tmp_path):
    arrays, card = parts
    wrong = []
    for name, value in arrays.items():
        for how, change in CHANGES.items():
            seal(tmp_path / "m", {**arrays, name: np.ascontiguousarray(change(value))}, card)
            found = outcome(tmp_path / "m")
            if found is not None:
                wrong.append(f"{name} {how}: {found[:150]}")
        seal(tmp_path / "m", {k: v for k, v in arrays.items() if k != name}, card)
        found = outcome(tmp_path / "m")
        if found is not None:
            wrong.append(f"{name} gone: {found[:150]}")
    assert wrong == []


def test_a_hard_budget_in_a_card_is_still_kept(parts, tmp_path):
    """A file cannot promise a cap that use would not keep: the cap is enforced case by case, whatever the network wants."""
    arrays, card = parts
    seal(tmp_path / "m", arrays, {**card, "budget": {**card["budget"], "hard": "1"}})
    try:
        model = askwise.load(tmp_path / "m")
    except StateError:
        return
    assert model.acquire(NEW).cost.max() <= 1


def test_a_huge_exponent_does_not_hang(parts, tmp_path):
    """Fraction('1e9999999') is a number of ten million digits."""
    arrays, card = parts
    seal(tmp_path / "m", arrays, {**card, "cost_unit": "1e300000"})
    refused(tmp_path / "m")
