"""Pictures: what money buys, how training went, which tests are bought and when, the paths cases take.

Every function takes data and returns a matplotlib `Figure`; `save` writes it. Nothing here switches a backend or keeps state,
and matplotlib is imported only when something is drawn. Every picture can be read without its colours.
"""

from askwise.plots.canvas import inline, save
from askwise.plots.lines import frontier, frontiers, progress, targets
from askwise.plots.maps import bought, pixels
from askwise.plots.tree import paths

__all__ = ["bought", "frontier", "frontiers", "inline", "paths", "pixels", "progress", "save", "targets"]
