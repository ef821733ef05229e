"""Reports to draw, and the words of a picture."""

import numpy as np

from askwise.core.budget import Budget
from askwise.core.policy import Choice, Policy, random_policy
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.evaluation import evaluate


class Plan(Policy):
    """Buys for each case the tests of its own list in their order, then ends. Cases are told apart by their keys."""

    def __init__(self, problem, plans):
        self.schema, self.plans = problem.schema, dict(zip(problem.keys.tolist(), plans, strict=True))

    def act(self, state):
        action = []
        for key, mask in zip(state.key.tolist(), state.mask, strict=True):
            tests, end = self.plans[key]
            left = [self.schema.tests.index(t) for t in tests if not mask[self.schema.tests.index(t)]]
            action.append(self.schema.first_test + left[0] if left else end)
        return Choice(np.array(action), np.ones(len(action), np.float32))


def report_of(schema, plans, y=None, **more):
    """A report in which case i buys plans[i][0] in that order, and ends with the action plans[i][1]."""
    problem = Problem.build(schema, np.ones((len(plans), len(schema.columns))), y, ids=np.arange(len(plans)), **more)
    return evaluate(Plan(problem, plans), problem, Budget())


def small_report():
    """Four tests, two classes, six cases; d is never bought."""
    schema = Schema.build(["a", "b", "c", "d"], ["no", "yes"], [1, 2.5, 4, 8])
    plans = [(["b"], 0), (["b"], 0), (["b"], 0), (["b", "a"], 1), (["a", "b", "c"], 1), ([], 0)]
    return report_of(schema, plans, ["no", "no", "yes", "yes", "yes", "no"])


def random_report(n=300, tests=7, seed=0, **more):
    rng = np.random.default_rng(seed)
    schema = Schema.build([f"t{i}" for i in range(tests)], ["x", "y", "z"])
    problem = Problem.build(schema, rng.normal(size=(n, tests)), rng.choice(["x", "y", "z"], n), **more)
    return evaluate(random_policy(rng), problem, Budget())


def words(figure):
    """Every text of a picture after it was drawn."""
    import matplotlib.text

    figure.draw_without_rendering()
    return [t.get_text() for t in figure.findobj(matplotlib.text.Text) if t.get_visible() and t.get_text()]


def boxes(figure):
    """Height by the words in the box."""
    from matplotlib.patches import Rectangle

    axes, found = figure.axes[0], {}
    for box in (p for p in axes.patches if isinstance(p, Rectangle)):
        for text in axes.texts:
            x, y = text.get_position()
            if box.get_x() < x < box.get_x() + 0.1 and box.get_y() < y < box.get_y() + box.get_height():
                found.setdefault(text.get_text(), []).append(box.get_height())
    return found
