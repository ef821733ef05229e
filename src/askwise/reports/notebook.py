"""What a notebook shows of a classifier."""

from __future__ import annotations

from html import escape
from typing import Any


class NotebookBox:
    """Shows scikit-learn's box or, once `model_` is there, the settings and what money buys."""

    def _repr_html_inner(self) -> Any:
        if not hasattr(self, "model_"):
            return super()._repr_html_inner()  # type: ignore[misc]
        return f"<pre>{escape(repr(self))}</pre>" + self.model_._repr_html_()

    def _repr_mimebundle_(self, **options: Any) -> Any:
        shown = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        return {**shown, "text/html": self._repr_html_inner()} if "text/html" in shown else shown
