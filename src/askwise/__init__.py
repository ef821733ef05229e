"""Classification with costly features: which test to buy next, and when to stop and decide."""

from askwise.core.budget import AverageBudget, Budget, HardBudget, Tradeoff
from askwise.core.config import TrainConfig
from askwise.core.problem import Problem, Schema
from askwise.errors import AskwiseError

__version__ = "0.1.0"
__all__ = ["AskwiseError", "AverageBudget", "Budget", "HardBudget", "Problem", "Schema", "Tradeoff", "TrainConfig"]
