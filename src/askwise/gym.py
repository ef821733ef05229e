"""The decision process as Gymnasium environments, for agents from elsewhere. The rules are those of `core.episode`; here they are
only dressed in Gymnasium's words.

CostlyEnv           one case after the other
CostlyVectorEnv     B cases side by side, computed together
AgentPolicy         an agent that was trained in them, as a policy for `askwise.evaluation`

Reward, in units of loss: -λ c(a | F̄) for what an action costs, and -ℓ(a, y) for a decision. So the return of an episode is
-(loss + λ cost), and its mean over cases is what `Tradeoff(λ)` maximises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import ArrayLike

try:
    import gymnasium
    from gymnasium.vector import AutoresetMode
    from gymnasium.vector.utils import batch_space
except ImportError:
    raise ImportError("environments need gymnasium 1.1 or newer, which is not installed; pip install 'askwise[gym]'") from None

from askwise.core.arrays import Bools, Doubles, Floats, Ints
from askwise.core.budget import Budget
from askwise.core.cases import Cases, State
from askwise.core.parameters import Real, checked
from askwise.core.policy import Choice, Policy
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.errors import InputError, did_you_mean
from askwise.family.conditions import log_prior
from askwise.model.targeting import asked_weights, weighed_loss

__all__ = ["AgentPolicy", "CostlyEnv", "CostlyVectorEnv", "observation"]

Info = dict[str, Any]


def observation(state: State, schema: Schema) -> Floats:
    """B, C + F (+ 1): values, 0 where unknown; 1 for each test that is held; with a hard budget what is left of it, in parts of
    the cost of all tests together. Unbought and unavailable look alike."""
    parts: list[Any] = [state.values, state.mask]
    if state.left is not None:
        parts.append(state.left[:, None] / (schema.costs.money(schema.costs.total) or 1.0))  # all may be free
    return np.concatenate(parts, 1, dtype=np.float32)


class _PlayedCases:
    """B cases whose actions come from outside."""

    cases: Cases  # there are none before the first reset

    def __init__(self, problem: Problem, budget: Budget) -> None:
        if not isinstance(budget, Budget):
            raise InputError(f"budget is {budget!r}; it must be Tradeoff(lam) or HardBudget(b), or several joined by &")
        self.problem, self.schema = problem.labelled(), problem.schema
        if budget.targets or (budget.lam is None and (budget.hard is None or budget.average is not None)):
            raise InputError(
                f"an environment needs a tradeoff, and {budget} has none; give Tradeoff(lam), alone or with a hard budget, and "
                "set the attribute `lam` where training is to move it"
            )
        if problem.rule is not None:
            only = f"loss is {problem.rule!r}, which judges class probabilities, but in an environment a class is named"
            raise InputError(f"{only}; give a loss matrix")
        weights = asked_weights(budget, self.schema.classes, log_prior(self.problem))
        self.problem = self.problem.with_loss(weighed_loss(problem.loss, weights))
        self.cap = budget.cap(self.schema.costs)
        self.lam = budget.fixed_lam(problem)
        # Rows as often as their weights say, whatever is at stake in them: so the mean return is minus the objective, unscaled.
        self.pool = problem.with_loss(np.ones_like(problem.loss))

    def start(self, row: Ints) -> None:
        """New cases."""
        self.cases = Cases.start(self.problem, row, self.cap)
        self.spent = np.zeros(len(row), np.int64)  # in units
        self.loss = np.zeros(len(row))
        self.decision = np.full(len(row), -1)
        self.state = self.cases.observe()

    def restart(self, which: Bools, rng: np.random.Generator) -> None:
        """New cases in the place of some."""
        fresh = Cases.start(self.problem, self.pool.draw(int(which.sum()), rng), self.cap)
        self.cases.row[which], self.cases.mask[which] = fresh.row, fresh.mask
        self.spent[which], self.loss[which], self.decision[which] = 0, 0.0, -1
        self.state = self.cases.observe()

    def step(self, action: Ints, lam: float) -> Doubles:
        """B: the reward. What a case has spent, lost and decided is there afterwards."""
        self._refuse(action)
        cost = self.cases.cost_of(action)
        self.spent += cost
        self.loss, self.decision = self.cases.loss_of(action), self.cases.decision_of(action)
        self.cases.step(action)
        self.state = self.cases.observe()
        reward: Doubles = -lam * self.schema.costs.money(cost) - self.loss
        return reward

    def observe(self) -> Floats:
        return observation(self.state, self.schema)

    def info(self) -> Info:
        """Arrays over B; new ones at every call. The mask is in the type that Gymnasium's spaces sample with."""
        return {
            "action_mask": self.state.legal.astype(np.int8),
            "row": self.cases.row.copy(),
            "cost": np.asarray(self.schema.costs.money(self.spent), float),
            "loss": self.loss.copy(),
            "decision": self.decision.copy(),
        }

    def rows(self, options: Info | None, name: str, n: int, rng: np.random.Generator) -> Ints:
        """n: those that the options name, or drawn."""
        for option in options or {}:
            if option != name:
                raise InputError(f"reset has no option {option!r}; {did_you_mean(option, [name])}")
        if not options:
            return self.pool.draw(n, rng)
        row = np.array(options[name]).reshape(-1)
        if row.shape != (n,) or row.dtype.kind not in "iu" or row.min() < 0 or row.max() >= len(self.problem):
            raise InputError(f"the option {name!r} is {options[name]!r}; it must be {n} of the rows 0 to {len(self.problem) - 1}")
        return row.astype(np.int64)

    def actions(self, chosen: Any, shape: tuple[int, ...]) -> Ints:
        """B: what an agent chose, checked to be whole numbers."""
        if not hasattr(self, "cases"):
            raise InputError("there is no case yet; call reset() before the first step")
        action = np.asarray(chosen)
        if action.shape != shape or action.dtype.kind not in "iu":
            raise InputError(f"the action is {chosen!r}; it must be {'an integer' if not shape else f'{shape[0]} integers'}")
        return action.reshape(-1).astype(np.int64)

    def _refuse(self, action: Ints) -> None:
        """Says why the first action that is not legal cannot be taken."""
        exists = (action >= 0) & (action < self.schema.n_actions)
        legal = exists & self.state.legal[np.arange(len(action)), np.where(exists, action, 0)]
        if not legal.all():
            first = int(legal.argmin())
            raise InputError(f"{self._why_not(first, int(action[first]))}; choose one that the action mask allows")

    def _why_not(self, case: int, action: int) -> str:
        schema, row = self.schema, self.cases.row[case]
        if not 0 <= action < schema.n_actions:
            return f"there is no action {action}; they are numbered 0 to {schema.n_actions - 1}"
        test, asks = action - schema.first_test, action < schema.first_test
        what = f"action {action} " + ("asks the existing classifier" if asks else f"buys the test {schema.tests[test]!r}")
        if not asks and self.cases.mask[case, test]:
            return f"{what}, which is held already"
        alone = self.cases.keep(np.array([case]))
        if not replace(alone, cap=None).legal()[0, action]:
            lacks = "a test that it needs" if asks else "it"
            lacks += " or for one that it is computed from" if not asks and schema.costs.sources[test].any() else ""
            return f"{what}, but row {row} has no value for {lacks}"
        cost, left = (float(schema.costs.money(int(units[0]))) for units in (alone.cost_of(np.array([action])), alone.left()))
        return f"{what}, which costs {cost:g}, but {left:g} of the hard budget is left"


class _CostlyCases:
    """What both environments have: cases that are played, where what is seen and done of one lies, and the tradeoff λ."""

    def __init__(self, problem: Problem, budget: Budget) -> None:
        self._play, schema = _PlayedCases(problem, budget), problem.schema
        self.lam = self._play.lam
        # the same for all rows of a schema, so that agents can move between them
        bound = np.repeat([np.inf, 1.0], [len(schema.columns), schema.n_tests + (self._play.cap is not None)]).astype(np.float32)
        self._of_one = gymnasium.spaces.Box(np.where(bound == 1, 0, -bound), bound, dtype=np.float32)
        self._action_of_one = gymnasium.spaces.Discrete(schema.n_actions)

    @property
    def lam(self) -> float:
        return self._lam

    @lam.setter
    def lam(self, lam: Any) -> None:
        self._lam: float = checked(lam, Real(at_least=0), "lam")


class CostlyEnv(_CostlyCases, gymnasium.Env[Floats, np.int64]):
    """One case at a time. Actions: a class each, then the existing classifier if there is one, then a test each.

    `lam` is the tradeoff λ: that of the budget, or one that breaks ties towards stopping where there is only a hard budget. It
    may be set between steps. `reset(options={"row": 3})` starts with that row; otherwise rows are drawn.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - as Gymnasium declares it

    def __init__(self, problem: Problem, budget: Budget) -> None:
        super().__init__(problem, budget)
        self.observation_space, self.action_space = self._of_one, self._action_of_one

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Floats, Info]:
        super().reset(seed=seed)
        self._play.start(self._play.rows(options, "row", 1, self.np_random))
        return self._play.observe()[0], self._info()

    def step(self, action: Any) -> tuple[Floats, SupportsFloat, bool, bool, Info]:
        """Buys a test, or decides, which ends the episode. An action that is not legal is an error, and changes nothing."""
        chosen = self._play.actions(action, ())
        if self._play.decision[0] >= 0:
            raise InputError("this case is decided; call reset() for the next one")
        reward = float(self._play.step(chosen, self.lam)[0])
        return self._play.observe()[0], reward, bool(self._play.decision[0] >= 0), False, self._info()

    def action_masks(self) -> Bools:
        """A: what may be done now, under the name by which agents with masks ask for it."""
        self._play.actions(0, ())  # only after a reset
        mask: Bools = self._play.state.legal[0].copy()
        return mask

    def _info(self) -> Info:
        return {key: value[0] if value.ndim > 1 else value[0].item() for key, value in self._play.info().items()}


class CostlyVectorEnv(_CostlyCases, gymnasium.vector.VectorEnv[Floats, Ints, Any]):
    """`num_envs` cases side by side; each step is one computation for all of them. Otherwise as `CostlyEnv`.

    A case that is decided makes room for a new one in the same step, its last observation being in `info["final_obs"]`, or with
    `AutoresetMode.NEXT_STEP` in the next, which ignores its action. `reset(options={"rows": [...]})` starts with these rows.
    """

    def __init__(
        self, problem: Problem, budget: Budget, num_envs: int = 1, autoreset_mode: AutoresetMode = AutoresetMode.SAME_STEP
    ) -> None:
        if num_envs < 1:
            raise InputError(f"num_envs is {num_envs}; it must be 1 or more")
        if autoreset_mode not in (AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP):
            raise InputError(f"autoreset_mode is {autoreset_mode}; it must be AutoresetMode.SAME_STEP or AutoresetMode.NEXT_STEP")
        super().__init__(problem, budget)
        self.num_envs, self.metadata = num_envs, {"render_modes": [], "autoreset_mode": autoreset_mode}
        self.single_observation_space, self.single_action_space = self._of_one, self._action_of_one
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Floats, Info]:
        super().reset(seed=seed)
        self._play.start(self._play.rows(options, "rows", self.num_envs, self.np_random))
        return self._play.observe(), _marked(self._play.info(), np.ones(self.num_envs, bool))

    def step(self, actions: Any) -> tuple[Floats, Doubles, Bools, Bools, Info]:
        """Of each case. An action that is not legal is an error, and changes nothing for any of them."""
        play, everyone = self._play, np.ones(self.num_envs, bool)
        chosen = play.actions(actions, (self.num_envs,))
        before = play.decision >= 0  # only with NEXT_STEP
        reward = play.step(np.where(before, 0, chosen), self.lam)  # a class is always legal, and costs nothing
        reward[before] = 0.0
        over = (play.decision >= 0) & ~before
        info: Info = {}
        if self.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP:
            if before.any():
                play.restart(before, self.np_random)
        elif over.any():
            final, last = np.full(self.num_envs, None, object), play.observe()
            for case in np.flatnonzero(over).tolist():  # Gymnasium wants one object each
                final[case] = last[case]
            info = _marked({"final_obs": final, "final_info": _marked(play.info(), over)}, over)
            play.restart(over, self.np_random)
        return play.observe(), reward, over, np.zeros(self.num_envs, bool), info | _marked(play.info(), everyone)

    def action_masks(self) -> Bools:
        """B, A: what may be done now."""
        self._play.actions(np.zeros(self.num_envs, int), (self.num_envs,))  # only after a reset
        return self._play.state.legal.copy()


def _marked(info: Info, whom: Bools) -> Info:
    """With an entry `_key` for each key, which says for which of the cases it means something."""
    return info | {f"_{key}": whom.copy() for key in info}


@dataclass(frozen=True)
class AgentPolicy(Policy):
    """A policy for `askwise.evaluation`, from a function of B observations and action masks (B, A) to B actions."""

    agent: Callable[[Floats, Bools], ArrayLike]
    schema: Schema

    def act(self, state: State) -> Choice:
        action = np.asarray(self.agent(observation(state, self.schema), state.legal.copy()), np.int64)
        return Choice(action, np.ones(len(action), np.float32))
