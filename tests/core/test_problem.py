"""What a problem makes of its inputs, and every input that it must refuse in one sentence."""

import numpy as np
import pytest

from askwise.core.cost_spec import CostSpec
from askwise.core.episode import rollout
from askwise.core.policy import Always
from askwise.core.problem import Problem
from askwise.core.sampling import hash_cases
from askwise.core.schema import Schema
from askwise.errors import InputError

NAN = np.nan


def schema(columns=("a", "bee"), classes=(0, 1), external_needs=None, **spec) -> Schema:
    return Schema.build(list(columns), list(classes), CostSpec(**spec), external_needs)


def scan(**more) -> Schema:
    """Three tests: a, the scan with two columns, z."""
    return schema(("a", "x", "y", "z"), reveals={"scan": ["x", "y"]}, **more)


X2 = [[1.0, 2.0], [3.0, 4.0]]


# ------------------------------------------------------------------ the schema


def test_every_column_is_a_test_of_its_own_unless_a_test_reveals_it():
    s = scan()
    assert s.tests == ("a", "scan", "z")
    assert s.owner.tolist() == [0, 1, 1, 2]
    assert s.by_column(np.array([[False, True, False]])).tolist() == [[False, True, True, False]]


def test_columns_of_one_test_need_not_be_neighbours():
    s = schema(("x", "a", "y"), reveals={"scan": ["y", "x"]})
    assert s.tests == ("scan", "a")
    assert s.owner.tolist() == [0, 1, 0]


def test_actions_are_classes_then_the_existing_classifier_then_tests():
    assert (scan().first_test, scan().n_actions) == (2, 5)
    with_classifier = scan(external_needs=["z"])
    assert (with_classifier.first_test, with_classifier.n_actions) == (3, 6)
    assert with_classifier.external_needs.tolist() == [False, False, True]


def test_costs_come_by_name_by_position_or_by_default():
    unit_prices = [scan(costs={"z": 3, "a": 1, "scan": 2}), scan(costs=[1, 2, 3]), scan(costs=np.array([1, 2, 3]))]
    assert [s.costs.own.tolist() for s in unit_prices] == [[1, 2, 3]] * 3
    assert scan().costs.own.tolist() == [1, 1, 1]
    assert scan(derived={"z": ["a"]}).costs.own.tolist() == [1, 1, 0]


# ------------------------------------------------------------------ the rows


def test_a_missing_value_makes_its_whole_test_unavailable():
    p = Problem.build(scan(), [[1, NAN, 3, 4], [1, 2, 3, NAN], [1, 2, 3, 4]], [0, 1, 0])
    assert p.available.tolist() == [[True, False, True], [True, True, False], [True, True, True]]
    assert p.X.tolist() == [[1, 0, 3, 4], [1, 2, 3, 0], [1, 2, 3, 4]]


def test_complete_rows_need_no_table_of_what_is_available():
    assert Problem.build(schema(), X2, [0, 1]).available is None


def test_the_callers_array_is_left_as_it_was():
    X = np.array([[1, NAN], [3, 4]], np.float32)
    p = Problem.build(schema(), X, [0, 1])
    assert np.isnan(X[0, 1])
    assert p.X[0, 1] == 0


@pytest.mark.parametrize(
    ("classes", "y"),
    [
        (("sick", "healthy"), ["healthy", "sick", "sick"]),
        (("sick", "healthy"), np.array(["healthy", "sick", "sick"], object)),
        ((10, -3), [-3, 10, 10]),
        ((False, True), np.array([True, False, False])),
        (np.array([5, 9]), np.array([9, 5, 5], np.int8)),
        ((0.5, 1.5), [1.5, 0.5, 0.5]),
    ],
)
def test_labels_become_positions_in_the_list_of_classes(classes, y):
    assert Problem.build(schema(classes=classes), [[0, 0]] * 3, y).y.tolist() == [1, 0, 0]


def test_rows_without_labels_can_be_decided_but_not_learned_from():
    p = Problem.build(schema(), X2)
    assert p.y is None
    with pytest.raises(InputError, match="no target"):
        p.trainable()


def test_learning_needs_two_classes():
    with pytest.raises(InputError, match="all rows are of one class, 'b'"):
        Problem.build(schema(classes=("a", "b")), X2, ["b", "b"]).trainable()
    p = Problem.build(schema(classes=("a", "b")), X2, ["b", "a"])
    assert p.trainable() is p


def test_known_by_name_holds_for_every_row_that_has_the_value():
    p = Problem.build(schema(), [[1, 2], [NAN, 2]], [0, 1], known=["a"])
    assert p.known.tolist() == [[True, False], [False, False]]


def test_known_by_mask_is_taken_as_it_is():
    mask = np.array([[True, False], [False, True]])
    assert (Problem.build(schema(), X2, [0, 1], known=mask).known == mask).all()


def test_no_names_means_that_nothing_is_known():
    p = Problem.build(schema(), X2, [0, 1], known=[])
    assert p.known is None or not p.known.any()


def test_take_picks_the_same_rows_of_everything():
    p = Problem.build(
        schema(external_needs=["a"]),
        [[1, NAN], [3, 4], [5, 6]],
        [0, 1, 1],
        known=np.array([[True, False], [False, True], [False, False]]),
        loss=[[0, 2], [3, 0]],
        weight=[1, 2, 3],
        external=[1, 0, 1],
        ids=["p", "q", "r"],
    )
    for rows in (np.array([2, 0, 0]), np.array([True, False, True])):
        part = p.take(rows)
        for name in ("X", "y", "available", "known", "weight", "external", "ids", "keys"):
            assert (getattr(part, name) == getattr(p, name)[rows]).all(), name
        assert part.schema is p.schema
        assert part.loss is p.loss


def test_with_loss_changes_only_the_loss():
    p = Problem.build(schema(), X2, [0, 1])
    q = p.with_loss(np.array([[0, 5.0], [1, 0]]))
    assert q.loss.tolist() == [[0, 5], [1, 0]]
    assert q.X is p.X


# ------------------------------------------------------------------ losses and weights


@pytest.mark.parametrize("decision", [0, 1, 2])
def test_mean_loss_under_balanced_weights_is_one_minus_balanced_accuracy(decision):
    y = [0] * 7 + [1] * 2 + [2]
    p = Problem.build(schema(classes=(0, 1, 2)), np.zeros((10, 2)), y, class_weight="balanced")
    # a constant decision is right for one class of three: balanced accuracy 1/3
    assert rollout(p, Always(decision), None).loss.mean() == pytest.approx(2 / 3)


def test_class_weights_multiply_the_losses_of_cases_of_that_class():
    p = Problem.build(schema(classes=("a", "b")), X2, ["a", "b"], loss=[[0, 2], [3, 1]], class_weight={"b": 10})
    assert p.loss.tolist() == [[0, 2], [30, 10]]


def test_what_is_at_stake_is_the_mean_of_the_largest_losses():
    p = Problem.build(schema(), np.zeros((4, 2)), [0, 0, 0, 1], loss=[[0, 6], [1, 0]])
    assert p.loss_scale == (6 + 6 + 6 + 1) / 4
    assert Problem.build(schema(), np.zeros((4, 2)), [0, 0, 0, 1]).loss_scale == 1
    assert Problem.build(schema(), np.zeros((4, 2)), [0, 0, 0, 1], class_weight="balanced").loss_scale == pytest.approx(1)


def test_balanced_weight_draws_every_class_equally_often():
    y = np.array([0] * 90 + [1] * 10)
    p = Problem.build(schema(), np.zeros((100, 2)), y, weight="balanced")
    drawn = p.draw(20_000, np.random.default_rng(0))
    assert p.y[drawn].mean() == pytest.approx(0.5, abs=0.02)
    # within a class all rows are alike: 20,000 / 2 / 10 draws of each rare one
    assert np.bincount(drawn, minlength=100)[90:] == pytest.approx(1000, abs=150)


def test_weights_are_drawing_frequencies():
    p = Problem.build(schema(), np.zeros((4, 2)), [0, 1, 0, 1], weight=[0, 1, 3, 0])
    counts = np.bincount(p.draw(4_000, np.random.default_rng(0)), minlength=4)
    assert counts[[0, 3]].tolist() == [0, 0]
    assert counts[2] / counts[1] == pytest.approx(3, rel=0.15)


def test_without_weights_rows_are_drawn_alike():
    p = Problem.build(schema(), np.zeros((4, 2)), [0, 1, 0, 1])
    assert np.bincount(p.draw(4_000, np.random.default_rng(0)), minlength=4) == pytest.approx(1000, abs=120)


# ------------------------------------------------------------------ keys of cases


@pytest.mark.parametrize("ids", [None, ["p", "patient 17", "q"], [7, 8, 123456789], np.array(["p", "q", "r"], object)])
def test_the_key_of_a_case_does_not_depend_on_the_batch(ids):
    p = Problem.build(schema(), [[1, 2], [3, 4], [5, 6]], [0, 1, 0], ids=ids)
    assert len(set(p.keys.tolist())) == 3
    for rows in ([0], [1], [2, 0], [2, 1, 0]):
        alone = Problem.build(schema(), p.X[rows], p.y[rows], ids=None if ids is None else np.asarray(ids)[rows].tolist())
        assert (alone.keys == p.keys[rows]).all()


def test_cases_as_they_stand_are_taken_as_they_are_and_have_no_keys_of_their_own():
    X, available = np.array(X2, np.float32), np.array([[True, False], [True, True]])
    p = Problem.of_states(schema(), X, available, ~available, 1 - np.eye(2))
    assert p.X is X
    assert p.available is available
    assert p.known.tolist() == [[False, True], [False, False]]
    assert p.loss.tolist() == [[0, 1], [1, 0]]
    assert p.y is p.weight is p.external is p.ids is None
    assert p.keys.tolist() == [0, 0]
    assert p.keys.dtype == np.uint64


def test_the_width_of_a_string_array_is_no_part_of_an_id():
    assert hash_cases(np.array(["a"], "U1"))[0] == hash_cases(np.array(["a"], "U40"))[0] == hash_cases(np.array(["a"], object))[0]


def test_similar_cases_have_different_keys():
    ids = ["", "a", "b", "ab", "ba", "aa", "a ", " a"]
    assert len(set(hash_cases(np.array(ids)).tolist())) == len(ids)
    rows = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [0, -1], [1e-30, 0]], np.float32)
    assert len(set(hash_cases(rows).tolist())) == len(rows)


def test_minus_zero_is_zero():
    assert hash_cases(np.array([[0.0]])) == hash_cases(np.array([[-0.0]]))


def test_ids_decide_alone_when_there_are_any():
    one = Problem.build(schema(), [[1, 2]], [0], ids=["p"])
    other = Problem.build(schema(), [[3, 4]], [1], ids=["p"])
    assert one.keys == other.keys


# ------------------------------------------------------------------ everything that is refused


def build(X=X2, y=(0, 1), of=None, **more) -> Problem:
    return Problem.build(schema() if of is None else of, X, None if y is None else np.asarray(y), **more)


MASK = np.array([[True, False], [False, False]])

BAD_SCHEMAS = {
    "no columns": (lambda: schema(()), ["no columns"]),
    "no classes": (lambda: schema(classes=()), ["no classes"]),
    "one class": (lambda: schema(classes=("sick",)), ["one class", "'sick'"]),
    "class twice": (lambda: schema(classes=(0, 1, 1)), ["class", "1", "twice"]),
    "column twice": (lambda: schema(("a", "bee", "a")), ["column", "'a'", "twice"]),
    "reveals nothing": (lambda: schema(reveals={"scan": []}), ["'scan'", "nothing"]),
    "reveals unknown": (lambda: schema(reveals={"scan": ["be"]}), ["'scan'", "'be'", "did you mean 'bee'"]),
    "revealed twice": (lambda: schema(reveals={"one": ["a"], "two": ["a"]}), ["'a'", "'one'", "'two'"]),
    "name taken": (lambda: schema(reveals={"a": ["bee"]}), ["'a'", "column"]),
    "too few costs": (lambda: schema(costs=[1]), ["1 costs", "2 tests"]),
    "cost of unknown": (lambda: schema(costs={"a": 1, "bee": 1, "see": 1}), ["'see'", "did you mean 'bee'"]),
    "cost of a column": (lambda: scan(costs={"a": 1, "x": 1, "z": 1, "scan": 1}), ["'x'", "cost"]),
    "no cost": (lambda: schema(costs={"a": 1}), ["'bee'", "no cost"]),
    "negative price": (lambda: schema(costs=[1, -1]), ["'bee'", "-1"]),
    "set-up of unknown": (lambda: schema(setup={"draw": (1, ["be"])}), ["'draw'", "'be'", "'bee'"]),
    "derived from unknown": (lambda: schema(derived={"a": ["be"]}), ["'a'", "'be'", "'bee'"]),
    "classifier needs unknown": (lambda: schema(external_needs=["be"]), ["classifier", "'be'", "'bee'"]),
}

BAD_ROWS = {
    "no rows": (lambda: build(np.zeros((0, 2)), []), ["no rows"]),
    "one axis": (lambda: build([1.0, 2.0]), ["shape (2,)", "2 columns"]),
    "three axes": (lambda: build(np.zeros((2, 2, 1))), ["shape (2, 2, 1)"]),
    "too many columns": (lambda: build(np.zeros((2, 3))), ["shape (2, 3)", "2 columns"]),
    "ragged rows": (lambda: build([[1, 2], [3]]), ["data", "2 columns"]),
    "infinite": (lambda: build([[1, 2], [3, -np.inf]]), ["'bee'", "row 1", "inf"]),
    "too large for float32": (lambda: build([[1, 2], [3, 1e39]]), ["'bee'", "row 1"]),
    "text": (lambda: build([[1, 2], [3, "high"]]), ["'bee'", "row 1", "'high'"]),
    "label unknown": (lambda: build(y=[0, 2]), ["target", "2", "row 1", "there are 0, 1"]),
    "label misspelt": (lambda: build(y=["sick", "helthy"], of=schema(classes=("sick", "healthy"))), ["'helthy'", "'healthy'"]),
    "label of another kind": (lambda: build(y=["0", "1"]), ["target", "'0'", "row 0"]),
    "label missing": (lambda: build(y=[0, NAN]), ["target", "nan", "row 1"]),
    "label missing among words": (
        lambda: build(y=np.array(["sick", None], object), of=schema(classes=("sick", "healthy"))),
        ["target", "None", "row 1"],
    ),
    "too few labels": (lambda: build(y=[0]), ["target", "(1,)", "2 rows"]),
    "table of labels": (lambda: build(y=[[0], [1]]), ["target", "(2, 1)"]),
    "loss for three classes": (lambda: build(loss=np.ones((3, 3))), ["loss matrix", "(3, 3)", "(2, 2)"]),
    "loss per class": (lambda: build(loss=[1, 2]), ["loss matrix", "(2,)", "(2, 2)"]),
    "ragged loss": (lambda: build(loss=[[0, 1], [1]]), ["loss matrix"]),
    "negative loss": (lambda: build(loss=[[0, -1], [1, 0]]), ["loss matrix", "negative"]),
    "NaN loss": (lambda: build(loss=[[0, NAN], [1, 0]]), ["loss matrix", "not finite"]),
    "infinite loss": (lambda: build(loss=[[0, np.inf], [1, 0]]), ["loss matrix", "not finite"]),
    "no loss at all": (lambda: build(loss=np.zeros((2, 2))), ["loss matrix", "zero"]),
    "text loss": (lambda: build(loss=[[0, "bad"], [1, 0]]), ["loss matrix"]),
    "weight of unknown class": (lambda: build(class_weight={2: 1.0}), ["2", "not a class"]),
    "negative class weight": (lambda: build(class_weight={1: -1.0}), ["class 1", "-1"]),
    "NaN class weight": (lambda: build(class_weight={1: NAN}), ["class 1", "nan"]),
    "text class weight": (lambda: build(class_weight={1: "large"}), ["class 1", "'large'"]),
    "class weights all zero": (lambda: build(class_weight={0: 0.0, 1: 0.0}), ["weight"]),
    "class weight misspelt": (lambda: build(class_weight="balance"), ["'balance'", "'balanced'"]),
    "balanced without target": (lambda: build(y=None, class_weight="balanced"), ["balanced", "target"]),
    "weight misspelt": (lambda: build(weight="even"), ["'even'", "'balanced'"]),
    "balanced draws without target": (lambda: build(y=None, weight="balanced"), ["balanced", "target"]),
    "too few weights": (lambda: build(weight=[1.0]), ["weights", "2"]),
    "negative weight": (lambda: build(weight=[1.0, -1.0]), ["weights", "0 or more"]),
    "NaN weight": (lambda: build(weight=[1.0, NAN]), ["weights", "finite"]),
    "weights all zero": (lambda: build(weight=[0.0, 0.0]), ["weights", "not all 0"]),
    "text weights": (lambda: build(weight=["many", "few"]), ["weights"]),
    "too few ids": (lambda: build(ids=["p"]), ["case ids", "2 rows"]),
    "known unknown": (lambda: build(known=["be"]), ["known", "'be'", "did you mean 'bee'"]),
    "known of wrong shape": (lambda: build(known=MASK[:1]), ["known", "(1, 2)", "(2, 2)"]),
    "known not true or false": (lambda: build(known=MASK.astype(int)), ["known", "int"]),
    "known but missing": (lambda: build([[NAN, 2], [3, 4]], known=MASK), ["known", "'a'", "row 0", "missing"]),
    "classifier without needs": (lambda: build(external=[0, 1]), ["existing classifier", "needs"]),
    "classifier without answers": (lambda: build(of=schema(external_needs=["a"])), ["existing classifier", "answers"]),
    "classifier says nonsense": (lambda: build(of=schema(external_needs=["a"]), external=[0, 5]), ["existing classifier", "5"]),
    "too few answers": (lambda: build(of=schema(external_needs=["a"]), external=[0]), ["existing classifier", "2 rows"]),
}


@pytest.mark.parametrize(("make", "words"), [*BAD_SCHEMAS.values(), *BAD_ROWS.values()], ids=[*BAD_SCHEMAS, *BAD_ROWS])
def test_bad_input_is_refused_in_one_sentence_that_names_it(make, words):
    with pytest.raises(InputError) as caught:
        make()
    message = str(caught.value)
    assert "\n" not in message
    assert [w for w in words if w not in message] == [], message


def test_a_derived_value_whose_source_is_missing_is_not_there_unless_it_is_known() -> None:
    schema = Schema.build(["a", "b", "c"], [0, 1], CostSpec({"a": 1}, derived={"b": ["a"], "c": ["b"]}))
    X = np.array([[1, 2, 3], [np.nan, 2, 3], [np.nan, 2, 3], [np.nan, 2, 3]])
    known = np.zeros((4, 3), bool)
    known[2, 1] = known[3, 2] = True
    built = Problem.build(schema, X, known=known)
    assert built.available.tolist() == [[True] * 3, [False] * 3, [False, True, True], [False, False, True]]
    assert built.X.tolist() == [[1, 2, 3], [0, 0, 0], [0, 2, 3], [0, 0, 3]]
    assert np.isnan(X).sum() == 3  # what was given stays as it was
