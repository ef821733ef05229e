"""What comes next for cases in progress, many of them at once: the same choice as in `core.episode`, with its reasons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from askwise.core.cases import Cases
from askwise.core.episode import check_legal
from askwise.core.policy import Greedy, Mixture, Policy
from askwise.core.problem import Problem
from askwise.model.model import LearnedModel
from askwise.session.explanation import StepExplainer
from askwise.session.partial_case import PartialCase
from askwise.session.step import Step


def next_steps(cases: Sequence[PartialCase]) -> list[Step]:
    """The next step of each case; those that follow the same policy are computed together."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for i, case in enumerate(cases):
        groups.setdefault((case.model, case.second, case.cap is None), []).append(i)
    steps: dict[int, Step] = {}
    for (model, second, _), members in groups.items():
        steps |= zip(members, _steps(model, second, [cases[i] for i in members]), strict=True)
    return [steps[i] for i in range(len(cases))]


def _steps(model: LearnedModel, second: bool, waiting: Sequence[PartialCase]) -> list[Step]:
    """Of cases that follow the same point, all of them with a budget or all without."""
    schema, B = model.schema, len(waiting)
    values, held = np.array([case.values for case in waiting]), np.array([case.held for case in waiting])
    free, open_ = np.array([case.free for case in waiting]), np.array([case.open for case in waiting])
    known = free if free.any() else None
    problem = Problem.of_states(schema, values, None if open_.all() else open_, known, model.loss)
    spent = schema.costs.cost(held, known)
    # who was told more than the policy would have asked for goes on with what is free, or decides
    cap = None if waiting[0].cap is None else np.maximum(np.array([case.cap for case in waiting]), spent)
    arm = _arm(model.policy, second)
    observed = Cases(problem, np.arange(B), held, cap).observe()
    choice, view, state = arm.explain(observed)
    check_legal(choice, observed, arm)
    explain = StepExplainer(model, model.followed[second], waiting, known, held, spent, state, view, arm.value_function)
    return [
        explain.decided(i, action) if action < schema.first_test else explain.asked(i, action - schema.first_test)
        for i, action in enumerate(choice.action.tolist())
    ]


def _arm(policy: Policy, second: bool) -> Greedy:
    """The policy that a case follows; those of models act by values."""
    arm = (policy.second if second else policy.first) if isinstance(policy, Mixture) else policy
    assert isinstance(arm, Greedy)
    return arm
