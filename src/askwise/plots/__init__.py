"""Pictures of what money buys, how training went, which tests are bought and when, and the paths that cases take.

Every function takes data and returns a matplotlib `Figure`; `save` writes it. Nothing here switches a backend or keeps state,
and matplotlib is imported only when something is drawn. Every picture can be read without its colours.

canvas: what all pictures share
models: what each picture takes from a model or a fitted classifier
cost_score: curves and points in the plane of cost and score
training: how a training went
maps: how often each test is bought and when, by class or by pixel
tree: the paths that cases take
ends: how often cases of each class are decided rightly, and how far probabilities can be trusted
"""

from askwise.plots.canvas import inline, save
from askwise.plots.cost_score import frontier, frontiers, targets
from askwise.plots.ends import calibration, recall
from askwise.plots.maps import bought, pixels
from askwise.plots.training import areas, progress
from askwise.plots.tree import paths

__all__ = [
    "areas",
    "bought",
    "calibration",
    "frontier",
    "frontiers",
    "inline",
    "paths",
    "pixels",
    "progress",
    "recall",
    "save",
    "targets",
]
