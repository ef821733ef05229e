"""Each method is a module, or anything else, with `fit(problem, validation, budget, *, seconds, seed)`, which returns a policy.

They are found through the entry points of the group `askwise.methods`, those that come with askwise like those of any other
package. Where a method also has `points(problem, validation, *, seconds, seed, threads)`, these policies make its frontier.

- exact: the optimum by dynamic programming, for few discrete tests
- family: ours, one training for every tradeoff and every budget
- stack: ours for tables, the same with a cross-fitted stack of learners
- paper: the paper's algorithm
- baseline: the paper's baseline, a network for each prefix of a ridge classifier's order
- static_gbm: boosted trees on the prefixes of one order
- static_linear: logistic regression on the prefixes of one order
- cascade: the same, and after each prefix a case goes on or is decided
- random: tests in a random order, for comparison
- gdfs: greedy picks, learned by gradients
- dime: greedy picks by expected information for the cost
- opportunistic: a Q-network that looks for the test that changes the belief most
- aaco: plans from how similar training rows fared
- cegb: LightGBM with its penalty for new columns
- budget_prune: a random forest, pruned together
- adapt_gbrt: a gate that keeps easy cases for a cheap model
"""

from __future__ import annotations

import ast
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from askwise.errors import InputError, did_you_mean

GROUP = "askwise.methods"


def names() -> list[str]:
    """All methods that are installed."""
    return sorted(set(entry_points(group=GROUP).names))


def about() -> dict[str, str]:
    """What each says of itself in its first paragraph, read and not imported: some load torch."""
    paragraphs = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            spec = find_spec(point.module)
        except ModuleNotFoundError:
            spec = None
        path = Path(spec.origin) if spec is not None and spec.origin is not None else None
        words = ast.get_docstring(ast.parse(path.read_text())) if path is not None and path.suffix == ".py" else None
        paragraphs[point.name] = (words or "").split("\n\n")[0].replace("\n", " ")
    return paragraphs


def get(name: str) -> Any:
    """A method by its name; imported only now."""
    points = list(entry_points(group=GROUP, name=name))
    if not points:
        raise InputError(f"there is no method {name!r}; {did_you_mean(name, names(), most=len(names()))}")
    if len(points) > 1:
        raise InputError(f"method {name!r} comes from two packages, {points[0].value} and {points[1].value}; uninstall one")
    try:
        method = points[0].load()
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"method {name!r} is {points[0].value}, which cannot be imported: {error}; repair or uninstall its package"
        ) from error
    if not callable(getattr(method, "fit", None)):
        raise InputError(
            f"method {name!r} is {points[0].value}, which has no function fit(problem, validation, budget, *, seconds, seed)"
        )
    return method
