"""The environments: Gymnasium's own checker, the naive twin and `rollout` as second opinions, many cases against one."""

import json
import subprocess
import sys
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from tests.support.naive import NaiveCase, World, random_world

from askwise import AtLeast, AtMost, AverageBudget, Budget, ClassWeights, HardBudget, Problem, Schema, Tradeoff
from askwise.core.cases import Cases, State
from askwise.core.cost_spec import CostSpec
from askwise.core.episode import rollout
from askwise.core.policy import Choice, Policy
from askwise.errors import InputError
from askwise.evaluation import evaluate
from askwise.gym import AgentPolicy, CostlyEnv, CostlyVectorEnv

WORLDS = [random_world(seed) for seed in range(25)]
PRICE = 0.3
MODES = [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP]


def name(world: World | None) -> str | None:
    return world and world.name


def test_the_test_problems_cover_every_feature() -> None:
    for has in (
        lambda w: np.isnan(w.X).any(), lambda w: w.known is not None, lambda w: w.needs, lambda w: w.loss, lambda w: w.hard,
        lambda w: w.setup, lambda w: w.derived, lambda w: w.X.shape[1] > len(w.tests), lambda w: w.hard is None,
    ):  # fmt: skip
        assert any(has(world) for world in WORLDS)


def budget_of(world: World) -> Budget:
    return Tradeoff(PRICE) if world.hard is None else Tradeoff(PRICE) & HardBudget(world.hard)


def plain(**more) -> Problem:
    schema = Schema.build(list("abc"), ["no", "yes"], {"a": 1, "b": 2, "c": 0.5})
    return Problem.build(schema, np.arange(12.0).reshape(4, 3) - 5, ["no", "yes", "yes", "no"], **more)


def blood(**more) -> Problem:
    """Two blood tests that share a draw, and an existing classifier that needs both. Actions: no, yes, ask, age, t3, t4."""
    schema = Schema.build(
        ["age", "t3", "t4"],
        ["no", "yes"],
        CostSpec({"age": 1, "t3": 0.2, "t4": 0.7}, setup={"draw": (0.1, ["t3", "t4"])}),
        external_needs=["t3", "t4"],
    )
    X = [[1, 2, 3], [4, 5, np.nan]]
    return Problem.build(schema, X, ["no", "yes"], external=["yes", "yes"], loss=[[0, 2], [5, 0]], **more)


@dataclass
class Script(Policy):
    """Takes prescribed actions."""

    actions: list[int]

    def act(self, state: State) -> Choice:
        return Choice(np.array([self.actions.pop(0)]), np.ones(1, np.float32))


class Forgiving(CostlyEnv):
    """Decides where it is told something that is not legal, since the checker acts without looking at masks."""

    def step(self, action):
        return super().step(action if self.action_masks()[action] else 0)


# ------------------------------------------------------------------ Gymnasium's contract


@pytest.mark.filterwarnings("ignore:.*space m.* value is .*infinity")  # values have no bounds that all rows of a schema share
@pytest.mark.parametrize("world", [None, *WORLDS], ids=name)
def test_gymnasiums_checker_accepts_the_environments(world: World | None) -> None:
    problem, budget = (plain(), Tradeoff(PRICE)) if world is None else (world.problem(), budget_of(world))
    kind = CostlyEnv if world is None else Forgiving
    env = kind(problem, budget)
    env.spec = EnvSpec("askwise/Costly-v0", entry_point=kind, kwargs={"problem": problem, "budget": budget})
    check_env(env)


@pytest.mark.parametrize("mode", MODES)
def test_many_cases_look_as_gymnasium_would_make_them_from_single_ones(mode: AutoresetMode) -> None:
    problem, budget = blood().take(np.array([0])), Tradeoff(PRICE) & HardBudget(1)  # one row: all draws are alike
    ours = CostlyVectorEnv(problem, budget, 3, mode)
    theirs = SyncVectorEnv([lambda: CostlyEnv(problem, budget)] * 3, autoreset_mode=mode)
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    assert ours.metadata == theirs.metadata
    assert data_equivalence(ours.reset(seed=0), theirs.reset(seed=0), exact=True)
    rng, ended = np.random.default_rng(0), 0
    for _ in range(30):
        action = np.array([rng.choice(np.flatnonzero(mask)) for mask in ours.action_masks()])
        mine, reference = ours.step(action), theirs.step(action)
        for *_, over, _, info in (mine, reference):  # what the others would have said is anybody's guess
            info["final_info"] = {key: value[over] for key, value in info.get("final_info", {}).items()}
        assert data_equivalence(mine, reference, exact=True)
        assert mine[0] in ours.observation_space
        ended += mine[2].sum()
    assert ended > 10


def test_statistics_of_gymnasium_add_up() -> None:
    problem = WORLDS[0].problem()
    envs = gymnasium.wrappers.vector.RecordEpisodeStatistics(CostlyVectorEnv(problem, Tradeoff(PRICE), 4))
    envs.reset(seed=0)
    *_, info = envs.step(np.zeros(4, int))
    assert info["episode"]["r"].tolist() == (-info["final_info"]["loss"]).tolist()


def test_seeds_decide_which_rows_come() -> None:
    problem = Problem.build(Schema.build(["a"], [0, 1]), np.arange(1000)[:, None], np.arange(1000) % 2)

    def rows(env: CostlyEnv, seed: int) -> list[int]:
        return [env.reset(seed=seed)[1]["row"], *(env.reset()[1]["row"] for _ in range(5))]

    one, other = CostlyEnv(problem, Tradeoff(1)), CostlyEnv(problem, Tradeoff(1))
    assert rows(one, 7) == rows(other, 7) == rows(one, 7)
    assert rows(one, 7) != rows(one, 8)

    def many(n: int, seed: int) -> list[list[int]]:
        envs = CostlyVectorEnv(problem, Tradeoff(1), n)
        start = envs.reset(seed=seed)[1]["row"].tolist()
        return [start, *(envs.step(np.zeros(n, int))[4]["row"].tolist() for _ in range(5))]

    assert many(3, 7) == many(3, 7)
    assert many(3, 7) != many(3, 8)
    assert [row for (row,) in many(1, 7)] == rows(one, 7)


def test_rows_are_drawn_by_weight_and_not_by_their_largest_loss() -> None:
    envs = CostlyVectorEnv(plain(weight=[1, 0, 3, 0], loss=[[0, 1], [50, 0]]), Tradeoff(1), 4000)
    share = np.bincount(envs.reset(seed=0)[1]["row"], minlength=4) / 4000
    np.testing.assert_allclose(share, [0.25, 0, 0.75, 0], atol=0.03)


# ------------------------------------------------------------------ by hand


def test_a_case_equals_the_one_worked_by_hand() -> None:
    env = CostlyEnv(blood(), Tradeoff(0.5) & HardBudget(1.2))
    seen, info = env.reset(options={"row": 0})
    np.testing.assert_allclose(seen, [0, 0, 0, 0, 0, 0, 1.2 / 2], rtol=1e-6)  # all tests together cost 2
    assert seen.dtype == np.float32
    assert info["action_mask"].tolist() == [1] * 6
    assert (info["row"], info["cost"], info["loss"], info["decision"]) == (0, 0, 0, -1)
    seen, reward, terminated, truncated, info = env.step(4)  # t3, and the draw
    np.testing.assert_allclose(seen, [0, 2, 0, 0, 1, 0, 0.9 / 2], rtol=1e-6)
    assert reward == pytest.approx(-0.15)
    assert info["action_mask"].tolist() == [1, 1, 1, 0, 0, 1]
    assert (terminated, truncated) == (False, False)
    assert info["cost"] == pytest.approx(0.3)
    env.lam = 1.0
    seen, reward, terminated, truncated, info = env.step(2)  # the classifier pays for t4, and is wrong
    np.testing.assert_allclose(seen, [0, 2, 3, 0, 1, 1, 0.2 / 2], rtol=1e-6)
    assert reward == pytest.approx(-0.7 - 2)
    assert (terminated, truncated) == (True, False)
    assert (info["loss"], info["decision"]) == (2, 1)
    assert info["cost"] == pytest.approx(1.0)


def test_class_weights_are_in_the_rewards_and_targets_are_refused() -> None:
    env = CostlyEnv(plain(), Tradeoff(PRICE) & ClassWeights({"yes": 3}))  # there are as many of either, so they weigh 1.5 and 0.5
    for row, action, reward in ((0, 1, -0.5), (1, 0, -1.5), (1, 1, 0.0)):
        env.reset(options={"row": row})
        assert env.step(action)[1] == pytest.approx(reward, abs=1e-6)
    for target in (AtLeast(recall={"yes": 0.9}), AtLeast(accuracy=0.9) & HardBudget(2), AtMost(loss=0.1)):
        for make in (CostlyEnv, CostlyVectorEnv):
            with pytest.raises(InputError, match=r"an environment needs a tradeoff, and .* has none"):
                make(plain(), target)
    with pytest.raises(InputError, match="names the class 'maybe'"):
        CostlyEnv(plain(), Tradeoff(PRICE) & ClassWeights({"maybe": 3}))


def test_the_tradeoff_is_that_of_the_budget() -> None:
    assert CostlyEnv(blood(), Tradeoff(0.25) & HardBudget(1)).lam == 0.25
    # only a hard budget: what the engine trains with, which does no more than break ties; 5 and 2 are at stake
    assert CostlyVectorEnv(blood(), HardBudget(1)).lam == pytest.approx(1e-3 * 3.5 / 2)
    for budget in (Budget(), AverageBudget(1), AverageBudget(1) & HardBudget(2)):
        with pytest.raises(InputError, match="needs a tradeoff"):
            CostlyEnv(blood(), budget)
    for wrong in (None, 0.5):
        with pytest.raises(InputError, match=rf"budget is {wrong}; it must be Tradeoff\(lam\)"):
            CostlyVectorEnv(blood(), wrong)
    for env in (CostlyEnv(blood(), Tradeoff(0.25)), CostlyVectorEnv(blood(), Tradeoff(0.25))):
        for lam in ("x", float("nan"), float("inf"), -1, None, True):
            with pytest.raises(InputError, match=f"lam is {lam!r}; it must be a finite number, 0 or more"):
                env.lam = lam
        env.lam = np.float32(0.5)
        assert env.lam == 0.5
    with pytest.raises(InputError, match="no target"):
        CostlyEnv(replace(plain(), y=None), Tradeoff(1))


@pytest.mark.parametrize(
    ("row", "hard", "before", "action", "why"),
    [
        (0, 2, [], 6, "there is no action 6; they are numbered 0 to 5"),
        (0, 2, [], -1, "there is no action -1"),
        (0, 2, [4], 4, "buys the test 't3', which is held already"),
        (1, 2, [], 5, "buys the test 't4', but row 1 has no value for it"),
        (1, 2, [], 2, "asks the existing classifier, but row 1 has no value for a test that it needs"),
        (0, 1, [4], 3, "buys the test 'age', which costs 1, but 0.7 of the hard budget is left"),
        (0, 0.9, [], 2, "asks the existing classifier, which costs 1, but 0.9 of the hard budget is left"),
        (0, 2, [], 0.5, "the action is 0.5; it must be an integer"),
        (0, 2, [], [3], "it must be an integer"),
        (0, 2, [0], 0, "this case is decided; call reset"),
    ],
)
def test_what_is_not_legal_is_refused_and_changes_nothing(row: int, hard: float, before: list[int], action, why: str) -> None:
    env = CostlyEnv(blood(), Tradeoff(0.5) & HardBudget(hard))
    env.reset(options={"row": row})
    for earlier in before:
        env.step(earlier)
    mask, spent = env.action_masks(), env._play.spent.copy()
    with pytest.raises(InputError, match=why):
        env.step(action)
    assert (env.action_masks() == mask).all()
    assert env._play.spent == spent


def test_vector_environments_refuse_illegal_actions_too() -> None:
    envs = CostlyVectorEnv(blood(), Tradeoff(0.5), 2)
    for call in (envs.action_masks, lambda: envs.step([0, 0])):
        with pytest.raises(InputError, match=r"call reset\(\) before"):
            call()
    with pytest.raises(InputError, match=r"call reset\(\) before"):
        CostlyEnv(blood(), Tradeoff(0.5)).action_masks()
    envs.reset(options={"rows": [0, 1]})
    with pytest.raises(InputError, match="row 1 has no value for it"):
        envs.step([4, 5])
    assert not envs._play.spent.any()
    with pytest.raises(InputError, match="it must be 2 integers"):
        envs.step([4])
    for options, why in (
        ({"rows": [0]}, "it must be 2 of the rows 0 to 1"), ({"rows": [0, 2]}, "2 of the rows"), ({"rows": [0.0, 1]}, "2 of"),
        ({"row": [0, 1]}, "no option 'row'; did you mean 'rows'"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=why):
            envs.reset(options=options)
    with pytest.raises(InputError, match="num_envs is 0"):
        CostlyVectorEnv(blood(), Tradeoff(0.5), 0)
    with pytest.raises(InputError, match="autoreset_mode"):
        CostlyVectorEnv(blood(), Tradeoff(0.5), 2, AutoresetMode.DISABLED)


# ------------------------------------------------------------------ second opinions


@pytest.mark.parametrize("world", WORLDS, ids=name)
def test_random_play_agrees_with_rollout_and_with_the_naive_twin(world: World) -> None:
    problem, budget = world.problem(), budget_of(world)
    cap, schema = world.cap(problem), problem.schema
    env = CostlyEnv(problem, budget)
    env.action_space.seed(0)
    for row in range(len(problem)):
        seen, info = env.reset(options={"row": row})
        case, cases, actions, total = NaiveCase(world, row), Cases.start(problem, np.array([row]), cap), [], 0.0
        while True:
            legal = [case.legal(a) for a in range(schema.n_actions)]
            assert info["action_mask"].tolist() == legal == env.action_masks().tolist() == cases.legal()[0].tolist()
            np.testing.assert_allclose(seen[: len(schema.columns)], case.observation())
            held = seen[len(schema.columns) :][: schema.n_tests]
            assert {t for t, has in zip(world.tests, held, strict=True) if has} == case.held
            assert len(seen) == len(schema.columns) + schema.n_tests + (world.hard is not None)
            if world.hard is not None:
                whole = float(schema.costs.money(schema.costs.total)) or 1
                assert seen[-1] * whole == pytest.approx(schema.costs.money(cap) - float(case.spent), abs=1e-5)
            action = int(env.action_space.sample(info["action_mask"]))
            seen, reward, over, _, info = env.step(action)
            case.step(action)
            cases.step(np.array([action]))
            actions.append(action)
            total += reward
            assert info["cost"] == pytest.approx(float(case.spent))
            if over:
                break
        script = Script(list(actions))
        done = rollout(problem, script, cap, np.array([row]))
        assert not script.actions
        assert info["cost"] == schema.costs.money(int(done.cost[0]))
        assert (info["loss"], info["decision"]) == (done.loss[0], done.decision[0])
        assert total == pytest.approx(-(done.loss[0] + PRICE * schema.costs.money(int(done.cost[0]))))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("world", WORLDS[::3], ids=name)
def test_many_cases_are_as_single_ones_step_by_step(world: World, mode: AutoresetMode) -> None:
    problem, budget = world.problem(), budget_of(world)
    n, rng = 8, np.random.default_rng(0)
    envs, single = CostlyVectorEnv(problem, budget, n, mode), [CostlyEnv(problem, budget) for _ in range(n)]
    rows = rng.integers(len(problem), size=n)
    seen, info = envs.reset(seed=1, options={"rows": rows})
    apart = [env.reset(options={"row": int(row)}) for env, row in zip(single, rows, strict=True)]
    waiting, drawn = [False] * n, 0

    def same(i: int, seen: np.ndarray | None, info: dict) -> None:
        assert data_equivalence(apart[i][0], seen, exact=True)
        assert data_equivalence(
            apart[i][1], {k: v[i] if v.ndim > 1 else v[i].item() for k, v in info.items() if k[0] != "_"}, True
        )

    for _ in range(25):
        for i in range(n):
            same(i, seen[i], info)
        actions = [int(rng.choice(np.flatnonzero(m))) for m in envs.action_masks()]
        seen, reward, over, truncated, info = envs.step(np.array(actions))
        assert not truncated.any()
        final, final_info = (info.pop(key, None) for key in ("final_obs", "final_info"))
        for i, env in enumerate(single):
            if waiting[i]:  # the action was not heard
                assert (reward[i], over[i]) == (0, False)
                apart[i], waiting[i] = env.reset(options={"row": int(info["row"][i])}), False
                continue
            obs, r, done, _, facts = env.step(actions[i])
            apart[i] = obs, facts
            assert (reward[i], over[i]) == (r, done)
            drawn += done
            if done and mode is AutoresetMode.SAME_STEP:
                same(i, final[i], final_info)
                apart[i] = env.reset(options={"row": int(info["row"][i])})
            waiting[i] = done and mode is AutoresetMode.NEXT_STEP
    assert drawn > n


@pytest.mark.parametrize("world", WORLDS, ids=name)
def test_an_agent_comes_to_the_same_in_the_environment_and_in_evaluate(world: World) -> None:
    problem, budget = world.problem(), budget_of(world)
    envs = CostlyVectorEnv(problem, budget, len(problem))
    weights = np.random.default_rng(0).normal(size=(*envs.single_observation_space.shape, problem.schema.n_actions))
    weights[-problem.schema.n_tests :, problem.schema.first_test :] += 1  # it buys some, and then stops

    def agent(seen: np.ndarray, masks: np.ndarray) -> np.ndarray:
        return np.where(masks, np.round(seen @ weights, 3), -np.inf).argmax(1)

    report = evaluate(AgentPolicy(agent, problem.schema), problem, budget)
    seen, info = envs.reset(options={"rows": np.arange(len(problem))})
    found: dict[int, tuple] = {}
    total = np.zeros(len(problem))
    for _ in range(problem.schema.n_tests + 1):
        seen, reward, over, _, info = envs.step(agent(seen, envs.action_masks()))
        total += reward
        for i in np.flatnonzero(over):
            found.setdefault(i, (total[i], *(info["final_info"][key][i] for key in ("cost", "loss", "decision"))))
    assert len(found) == len(problem)
    returned, cost, loss, decision = (np.array(part) for part in zip(*(found[i] for i in range(len(problem))), strict=True))
    np.testing.assert_array_equal(cost, report.cost_per_case)
    np.testing.assert_array_equal(loss, report.episodes.loss)
    np.testing.assert_array_equal(decision, report.episodes.decision)
    np.testing.assert_allclose(returned, -(loss + PRICE * cost))


def test_hidden_values_stay_hidden() -> None:
    one = plain()
    other = replace(one, X=one.X + np.float32(100), available=np.array([[True, True, False]] * 4))
    seen = [CostlyEnv(problem, Tradeoff(1)).reset(options={"row": 2})[0].tolist() for problem in (one, other)]
    assert seen[0] == seen[1] == [0.0] * 6


def test_arrays_handed_out_are_not_changed_later() -> None:
    envs = CostlyVectorEnv(plain(), Tradeoff(1), 2)
    rows = np.array([0, 1])
    _, info = envs.reset(options={"rows": rows})
    rows[:] = 3
    info["action_mask"][:] = 0
    info["row"][:] = 3
    envs.action_masks()[:] = False
    envs.step([0, 0])  # still legal
    _, info = envs.reset(options={"rows": [0, 1]})
    assert envs.step([0, 0])[1].tolist() == [0, -1]
    env = CostlyEnv(plain(), Tradeoff(1))
    env.reset(options={"row": 0})
    env.action_masks()[:] = False
    assert env.step(0)[1] == 0


needs_sb3 = pytest.mark.skipif(find_spec("sb3_contrib") is None, reason="sb3-contrib, for the example, is not installed")


@needs_sb3
def test_the_example_trains() -> None:
    example = Path(__file__).parent.parent / "examples" / "maskable_ppo.py"
    command = [sys.executable, str(example), "--data", "wine", "--hard-budget", "3", "--steps", "2048"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "accuracy" in done.stdout


@needs_sb3
def test_the_example_is_a_method_of_a_plan(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text("""
minutes = 0.03
methods = ["examples.maskable_ppo"]
budgets = [{ tradeoff = 0.05 }, { hard = 3 }, { average = 3 }]
data = [{ name = "wine" }]
""")
    command = [sys.executable, "-m", "askwise", "bench", str(plan), "--out", str(tmp_path / "rows.jsonl"), "--processes", "1"]
    subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent.parent)
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    found = {kind: row for row in rows for kind in row["task"]["budget"]}
    tradeoff, hard, average = (found[kind] for kind in ("tradeoff", "hard", "average"))
    assert tradeoff["status"] == hard["status"] == "done"
    assert hard["most"] <= 3
    assert "MaskablePPO cannot aim at" in average["why"]
