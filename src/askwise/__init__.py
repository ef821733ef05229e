"""Classification with costly features: which test to buy next, and when to stop and decide."""

from typing import TYPE_CHECKING, Any

from askwise.core.budget import AverageBudget, Budget, HardBudget, Tradeoff
from askwise.core.cost_spec import CostSpec
from askwise.core.problem import Problem, Schema
from askwise.errors import AskwiseError
from askwise.family.config import FamilyConfig
from askwise.paper.config import TrainConfig

if TYPE_CHECKING:
    from askwise.estimator import CostlyClassifier
    from askwise.facade import load
    from askwise.session.providers import Provider, Unavailable
    from askwise.session.session import Session
    from askwise.tables.external import Recorded

__version__ = "0.1.0"
__all__ = [
    "AskwiseError",
    "AverageBudget",
    "Budget",
    "CostSpec",
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
    "Provider": "askwise.session.providers",
    "Recorded": "askwise.tables.external",
    "Session": "askwise.session.session",
    "Unavailable": "askwise.session.providers",
    "load": "askwise.facade",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        from importlib import import_module

        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'askwise' has no attribute {name!r}")
