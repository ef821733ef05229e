"""Pictures: what money buys, how training went, which tests are bought and when, the paths cases take.

Every function takes data and returns a matplotlib `Figure`; `save` writes it. Nothing here switches a backend or keeps state,
and matplotlib is imported only when something is drawn. Every picture can be read without its colours.
"""

from askwise.plots.canvas import save
from askwise.plots.lines import frontier, progress
from askwise.plots.maps import bought, pixels
from askwise.plots.tree import paths

__all__ = ["bought", "frontier", "paths", "pixels", "progress", "save"]
