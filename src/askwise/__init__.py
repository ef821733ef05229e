"""Classification with costly features: which test to buy next, and when to stop and decide."""

from typing import TYPE_CHECKING, Any

from askwise.core.budget import AverageBudget, Budget, HardBudget, Tradeoff
from askwise.core.config import TrainConfig
from askwise.core.family_config import FamilyConfig
from askwise.core.problem import Problem, Schema
from askwise.errors import AskwiseError

if TYPE_CHECKING:
    from askwise.data.external import Recorded
    from askwise.estimator import CostlyClassifier
    from askwise.providers import Provider, Unavailable
    from askwise.session import Session
    from askwise.store import load

__version__ = "0.1.0"
__all__ = [
    "AskwiseError",
    "AverageBudget",
    "Budget",
    "CostlyClassifier",
    "FamilyConfig",
    "HardBudget",
    "Problem",
    "Provider",
    "Recorded",
    "Schema",
    "Session",
    "Tradeoff",
    "TrainConfig",
    "Unavailable",
    "load",
]

# some need scikit-learn or safetensors, which take their time to import
_LATER = {
    "CostlyClassifier": "askwise.estimator",
    "Provider": "askwise.providers",
    "Recorded": "askwise.data.external",
    "Session": "askwise.session",
    "Unavailable": "askwise.providers",
    "load": "askwise.store",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        from importlib import import_module

        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'askwise' has no attribute {name!r}")
