"""Methods: each a module, or anything else, with `fit(problem, validation, budget, *, seconds, seed)`, which returns a policy.

They are found through the entry points of the group `askwise.methods`, those that come with askwise like those of any other
package. Where a method also has `points(problem, validation, *, seconds, seed, threads)`, these policies make its frontier.
"""

from __future__ import annotations

import ast
from difflib import get_close_matches
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from askwise.errors import InputError

GROUP = "askwise.methods"


def names() -> list[str]:
    """All methods that are installed."""
    return sorted(set(entry_points(group=GROUP).names))


def about() -> dict[str, str]:
    """What each says of itself in its first paragraph, read and not imported: some load torch."""
    found = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            spec = find_spec(point.module)
        except ModuleNotFoundError:
            spec = None
        path = Path(spec.origin) if spec is not None and spec.origin is not None else None
        words = ast.get_docstring(ast.parse(path.read_text())) if path is not None and path.suffix == ".py" else None
        found[point.name] = (words or "").split("\n\n")[0].replace("\n", " ")
    return found


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
