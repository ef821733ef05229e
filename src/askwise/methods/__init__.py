"""Methods: each a module, or anything else, with `fit(problem, validation, budget, *, seconds, seed)`, which returns a policy.

They are found through the entry points of the group `askwise.methods`, those that come with askwise like those of any other
package. Where a method also has `points(problem, validation, *, seconds, seed, threads)`, these policies make its frontier.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib.metadata import entry_points
from typing import Any

from askwise.errors import InputError

GROUP = "askwise.methods"


def names() -> list[str]:
    """All methods that are installed."""
    return sorted(set(entry_points(group=GROUP).names))


def get(name: str) -> Any:
    """A method by its name; imported only now."""
    found = list(entry_points(group=GROUP, name=name))
    if not found:
        close = get_close_matches(name.replace("_", "-"), names(), 1)
        raise InputError(
            f"there is no method {name!r}" + (f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(names())}")
        )
    if len(found) > 1:
        raise InputError(f"method {name!r} comes from two packages, {found[0].value} and {found[1].value}; uninstall one")
    try:
        method = found[0].load()
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"method {name!r} is {found[0].value}, which cannot be imported: {error}; repair or uninstall its package"
        ) from error
    if not callable(getattr(method, "fit", None)):
        raise InputError(
            f"method {name!r} is {found[0].value}, which has no function fit(problem, validation, budget, *, seconds, seed)"
        )
    return method
