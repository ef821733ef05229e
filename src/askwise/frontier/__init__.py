"""What each amount of money buys, and which policy a budget follows.

point: one policy of a frontier and what was measured of it
hull: which points of the plane of cost and score are worth having
metric: the paper's metric, the area under the curve through the chosen points
confidence: what a mean is at most, with a probability
targets: the cheapest policy that reaches a target
choice: from the points of a method to the policy for a budget
"""

from askwise.frontier.choice import best_for
from askwise.frontier.metric import curve
from askwise.frontier.point import Point

__all__ = ["Point", "best_for", "curve"]
