"""A model in other runtimes: NumPy alone and onnxruntime say what torch says."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import onnxruntime
import pytest
import torch
from tests.support.commands import ok, run
from tests.support.models import family, paper, table, wide
from tests.support.naive import expected_losses

import askwise
from askwise import AverageBudget, HardBudget, Recorded, Tradeoff
from askwise.components.networks import load_weights
from askwise.core.cases import Cases
from askwise.core.episode import rollout
from askwise.core.policy import Choice, Mixture, Policy, free_first, greedy
from askwise.core.sampling import uniform
from askwise.errors import InputError, StateError
from askwise.family.conditions import affordable
from askwise.family.config import DESIGN
from askwise.family.encodings import FourierFeatures, PiecewiseLinear
from askwise.family.forward import candidates_and_gaps
from askwise.family.network import FamilyNetwork
from askwise.paper.network import NetworkValues, QNetwork

LOSS = [[0, 1, 5], [2, 0, 1], [9, 3, 0]]
MODELS = {
    "family, few tests, set-ups": lambda: (family(), table),
    "family, bins": lambda: (family(bins=4), table),
    "family, waves": lambda: (family(waves=2), table),
    "family, one column of several": lambda: (family(*table(), reveals={"form": ["smoker", "colour"]}), table),
    "family, many tests, losses": lambda: (family(*wide(), loss=LOSS), wide),
    "family, very many tests": lambda: (family(*wide(columns=70), bins=3), lambda n, s: wide(n, s, 70)),
    "family, log loss": lambda: (family(loss="log"), table),
    "family, many tests, Brier score": lambda: (family(*wide(), loss="brier"), wide),
    "paper": lambda: (paper(), table),
    "paper, losses": lambda: (paper(*wide(), loss=LOSS), wide),
}


def torch_values(model, point):
    """Q of a point of the frontier, by the networks that are trained; None for what has no network."""
    if model.family is None:
        if point.weights is None:
            return None
        network = QNetwork(model.schema, 16)
        load_weights(network, point.weights)
        return NetworkValues(network.eval(), torch.device("cpu"))
    made = model.family
    network = FamilyNetwork(model.schema, 16, encoding_of(made))
    load_weights(network, made.weights)
    return None if point.prefix is not None else TorchFamily(network.eval(), made, max(point.lam, made.scale.least))


def encoding_of(made):
    """The module whose buffers are among a family's weights."""
    parts = {k.removeprefix("encoding."): torch.from_numpy(v) for k, v in made.weights.items() if k.startswith("encoding.")}
    if not parts:
        return None
    kind = FourierFeatures if "rate" in parts else PiecewiseLinear
    module = kind.__new__(kind)
    torch.nn.Module.__init__(module)
    for name, value in parts.items():
        module.register_buffer(name, value)
    owner = torch.from_numpy(made.owner)
    owner = torch.cat([owner, owner[module.source]]) if kind is FourierFeatures else owner[module.source]
    module.register_buffer("owner", owner, persistent=False)
    return module


class TorchFamily:
    """The values of a family, from the networks of training."""

    def __init__(self, network, made, lam):
        self.network, self.made, self.lam = network, made, lam

    @torch.no_grad()
    def __call__(self, state):
        net, made, scale, lam = self.network, self.made, self.made.scale, np.full(len(state.mask), self.lam)
        F, mask = state.mask.shape[1], torch.from_numpy(state.mask).float()
        inputs = net.inputs(torch.from_numpy(state.values), mask)
        logits, hidden = net.classify(inputs)
        belief = net.log_belief(logits, mask)
        decide = torch.from_numpy(expected_losses(belief.exp(), made.loss / scale.loss_scale, made.rule)).float()
        conditions = torch.from_numpy(scale.conditions(lam, state.left))
        scores, guide = net.select(inputs, conditions)
        legal = state.legal[:, -F:]
        rooms = torch.from_numpy(affordable(made.alone, state.test_cost, state.left))
        offers, late = candidates_and_gaps(scores.numpy(), legal)
        judged = net.predict(belief, decide.min(1).values, torch.from_numpy(late), hidden, guide, mask, conditions, rooms)
        worth = (judged.value_after + torch.from_numpy(state.test_cost * self.lam / scale.loss_scale).float()).numpy()
        pick = np.where(offers, worth, np.inf).argmin(1)
        on = worth[np.arange(len(pick)), pick] + judged.optimism.numpy()
        q = np.empty(state.legal.shape, np.float32)
        q[:, :-F] = -decide.numpy()
        q[:, -F:] = np.minimum(-worth, -on[:, None]) - 1e3
        q[np.arange(len(q)), pick - F] = -(on + DESIGN.tie_margin)
        return q


class OnnxPolicy:
    """What onnxruntime says of states."""

    def __init__(self, model, path):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.run = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        parts = model.encoding.parts
        self.mean, self.deviation = (np.concatenate([getattr(p, n) for p in parts]) for n in ("mean", "deviation"))
        self.model = model

    def draws(self, state):
        return uniform(state.key, self.model.seed)

    def outputs(self, state):
        B, F = state.mask.shape
        raw = state.values.astype(float) * self.deviation + self.mean
        raw[~self.model.schema.by_column(state.mask)] = np.nan  # what is not known must not matter
        given = {
            "values": raw,
            "mask": state.mask,
            "legal": state.legal[:, -F:],
            "test_cost": np.ascontiguousarray(state.test_cost),
            "left": np.full(B, np.inf) if state.left is None else state.left,
        }
        if "draw" in {i.name for i in self.run.get_inputs()}:
            given["draw"] = self.draws(state)
        return dict(zip(("action", "q", "probabilities"), self.run.run(None, given), strict=True))


def alike(q, theirs, state):
    """To 1e-5, wherever something may be done; but the tests that a family does not pick are a thousand lower, where float32 has
    fewer digits, and of two that are as good it may pick either."""
    there, tests = state.legal & np.isfinite(q), slice(-state.mask.shape[1], None)
    mine, other = (np.where(there, x, 0) for x in (q, theirs))
    low, flipped = np.abs(mine) > 100, np.abs(mine - other) > 500
    one = np.where(there, q, -np.inf)[:, tests].max(1), np.where(there, theirs, -np.inf)[:, tests].max(1)
    same = np.isneginf(one[0]) & np.isneginf(one[1])
    best = np.where(same, 0, one[0]) - np.where(same, 0, one[1])
    return (np.abs(mine - other) < np.where(low, 3e-4, 1e-5))[~flipped].all() and (
        np.abs(best)[~low[:, tests].all(1)] < 1e-5
    ).all()


class Agreeing(Policy):
    """Acts as a model does, and compares it with others in every state it comes to."""

    def __init__(self, mine, others):
        self.mine, self.others, self.seen = mine, others, 0

    def act(self, state):
        q = self.mine(state)
        action = greedy(q, state.legal)
        row = np.arange(len(q))
        for other in self.others:
            theirs = other(state)
            assert alike(q, theirs, state)
            best = greedy(theirs, state.legal)
            assert (q[row, action] - q[row, best] < 1e-5).all()
        self.seen += len(q)
        return Choice(action, np.ones(len(q), np.float32))


def some_states(model, X, cap=None, seed=0):
    """Random tests held, within the budget; while something is free, only that is legal."""
    rng = np.random.default_rng(seed)
    problem = model.problem(X, ids=np.arange(len(X)))
    mask = rng.random((len(problem), model.schema.n_tests)) < rng.random((len(problem), 1)) ** 2
    if problem.available is not None:
        mask &= problem.available
    if cap is not None:
        mask &= (model.schema.costs.cost(mask) <= cap)[:, None]
    return free_first(Cases(problem, np.arange(len(problem)), mask, cap).observe())


def best(point):
    """The same policy, as if it had been measured to be the best."""
    return replace(point, measure=replace(point.measure, cost=9.0, loss=0.0))


@pytest.mark.parametrize("name", MODELS)
def test_random_states_in_numpy_and_onnx_as_in_torch(name, tmp_path):
    model, rows = MODELS[name]()
    model.export(tmp_path / "m.npz")
    loaded = askwise.load(tmp_path / "m.npz")
    X, _ = rows(300, 1)
    for i in [i for i, p in enumerate(model.points) if p.cap is None]:  # limits do not change the networks
        alone = replace(model, points=(model.points[0], best(model.points[i])) if i else model.points[:1])
        alone.export(tmp_path / "m.onnx")
        graph, reference = OnnxPolicy(alone, tmp_path / "m.onnx"), torch_values(model, model.points[i])
        for cap in (None, model.schema.costs.total // 2):
            state = some_states(model, X, cap)
            mine = model.arm(model.points[i]).values(state)
            found = graph.outputs(state)
            others = [loaded.arm(loaded.points[i]).values(state), found["q"], *([reference(state)] if reference else [])]
            for theirs in others:
                assert alike(mine, theirs, state), (i, cap)
            assert found["probabilities"].sum(1) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("name", ["family, many tests, losses", "paper, losses"])
def test_ten_thousand_cases_are_decided_alike(name, tmp_path):
    model, rows = MODELS[name]()
    point = [p for p in model.points if p.cap is None][-1]
    model = replace(model, points=(model.points[0], best(point)))
    model.export(tmp_path / "m.npz")
    model.export(tmp_path / "m.onnx")
    loaded, graph = askwise.load(tmp_path / "m.npz"), OnnxPolicy(model, tmp_path / "m.onnx")
    problem = model.problem(rows(10_000, 2)[0])
    policy = Agreeing(model.policy.values, [loaded.policy.values, lambda s: graph.outputs(s)["q"], torch_values(model, point)])
    done = rollout(problem, policy, None)
    assert policy.seen > 15_000  # many of them ask for something
    assert np.array_equal(done.decision, model.rollout(problem).decision)
    assert len(np.unique(done.decision)) > 1


def test_the_graph_follows_a_mixture_and_a_hard_budget(tmp_path):
    for model in (family(budget=AverageBudget(1.1)), family(budget=HardBudget(1.2)), paper(budget=AverageBudget(1.1))):
        model.export(tmp_path / "m.onnx")
        graph = OnnxPolicy(model, tmp_path / "m.onnx")
        assert ("draw" in {i.name for i in graph.run.get_inputs()}) == isinstance(model.policy, Mixture)
        state = some_states(model, table(400, 3)[0], model.cap)
        found = graph.outputs(state)
        assert np.array_equal(found["action"], model.policy.act(state).action)
        belief = model.believed(model._precise.values(state)) if model.family is None else None
        if belief is not None:
            assert found["probabilities"] == pytest.approx(belief, abs=1e-5)


def test_the_graph_says_what_it_is(tmp_path):
    model = family(known=["age"])
    model.export(tmp_path / "m.onnx")
    graph = OnnxPolicy(model, tmp_path / "m.onnx").run
    said = {name: json.loads(value) for name, value in graph.get_modelmeta().custom_metadata_map.items()}
    assert said["tests"] == list(model.schema.tests)
    assert said["classes"] == ["ill", "well"]
    assert said["known"] == ["age"]
    assert [i.name for i in graph.get_inputs()] == ["values", "mask", "legal", "test_cost", "left"]
    assert said["cap"] is None
    hard = family(budget=HardBudget("1.9") & AverageBudget(1))  # between two measured limits
    hard.export(tmp_path / "hard.onnx")
    said = OnnxPolicy(hard, tmp_path / "hard.onnx").run.get_modelmeta().custom_metadata_map
    assert float(said["cap"]) == hard.schema.costs.money(hard.cap) < hard.session().budget == 1.9


@pytest.mark.parametrize("make", [family, paper])
def test_a_npz_file_is_the_whole_model(make, tmp_path):
    model = make(known=["age"])
    model.export(tmp_path / "m.npz")
    there = askwise.load(tmp_path / "m.npz")
    X, _ = table(50, 4)
    assert there.fingerprint == model.fingerprint
    for budget in (None, Tradeoff(0.05), AverageBudget(1.0)):
        mine, theirs = model.at(budget).acquire(X), there.at(budget).acquire(X)
        assert mine.tests == theirs.tests
        assert np.array_equal(mine.probability, theirs.probability)


def test_a_damaged_npz_file_is_refused(tmp_path):
    path = tmp_path / "m.npz"
    family().export(path)
    whole = path.read_bytes()
    newer = whole.replace(b"askwise-model-3", b"askwise-model-4")
    for data in (whole[:-100], whole[: len(whole) // 2], newer, b"PK\x05\x06" + bytes(18)):
        path.write_bytes(data)
        with pytest.raises(StateError, match=r"m\.npz"):
            askwise.load(path)
    at = len(whole) // 3
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    with pytest.raises(StateError, match="damaged"):
        askwise.load(path)


def test_what_cannot_be_exported_is_refused(tmp_path):
    model = family()
    with pytest.raises(InputError, match=r"end in \.npz"):
        model.export(tmp_path / "m.pkl")
    with pytest.raises(InputError, match="nowhere' is not a folder"):
        model.export(tmp_path / "nowhere" / "m.npz")
    with pytest.raises(InputError, match="existing classifier"):
        replace(model, external=Recorded("ours")).export(tmp_path / "m.npz")
    with pytest.raises(InputError, match="encoder of your own"):
        replace(model, encoder=lambda schema, width: None).export(tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


def test_the_command(tmp_path):
    model = paper()
    model.save(tmp_path / "m.askwise")
    for ending in ("npz", "onnx"):
        assert f"m.{ending}" in ok("export", tmp_path / "m.askwise", "--out", tmp_path / f"m.{ending}")
    assert ok("inspect", tmp_path / "m.npz") == ok("inspect", tmp_path / "m.askwise")
    code, _, said = run("export", tmp_path / "m.askwise", "--out", tmp_path / "m.txt")
    assert code == 2
    assert ".npz" in said


def test_a_session_imports_neither_torch_nor_what_is_heavy(tmp_path):
    family().export(tmp_path / "m.npz")
    paper().save(tmp_path / "m.askwise")
    program = f"""
import sys, askwise
for file in ("m.npz", "m.askwise"):
    model = askwise.load({str(tmp_path)!r} + "/" + file)
    session = model.session({{"age": 50}}, case_id=1, budget=3)
    session.refuse("colour")
    while (step := session.next()).decision is None:
        session.tell(step.test, {{"pressure": 0.5, "smoker": True, "town": "Rom", "index": 3}}[step.test])
    askwise.Session.replay(model, session.trace())
    model.decide({{"age": 50}}, dict.fromkeys(model.schema.tests, lambda case: askwise.Unavailable))
    if file == "m.npz":
        assert "safetensors" not in sys.modules
print(sorted({{"torch", "pandas", "sklearn", "scipy", "lightgbm", "onnx", "matplotlib"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")
