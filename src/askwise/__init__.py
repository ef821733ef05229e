"""Classification with costly features: which test to buy next, and when to stop and decide."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from askwise.core.budget import AtLeast, AtMost, AverageBudget, Budget, ClassWeights, HardBudget, Tradeoff
    from askwise.core.cost_spec import CostSpec
    from askwise.core.problem import Problem
    from askwise.core.schema import Schema
    from askwise.errors import AskwiseError
    from askwise.estimator import CostlyClassifier
    from askwise.facade import load
    from askwise.family.config import FamilyConfig
    from askwise.paper.config import TrainConfig
    from askwise.session.providers import Provider, Unavailable
    from askwise.session.session import Session
    from askwise.stack.config import StackConfig
    from askwise.tables.external import Recorded

__version__ = "0.1.0"
__all__ = [
    "AskwiseError",
    "AtLeast",
    "AtMost",
    "AverageBudget",
    "Budget",
    "ClassWeights",
    "CostSpec",
    "CostlyClassifier",
    "FamilyConfig",
    "HardBudget",
    "Problem",
    "Provider",
    "Recorded",
    "Schema",
    "Session",
    "StackConfig",
    "Tradeoff",
    "TrainConfig",
    "Unavailable",
    "load",
]

# Each is imported when it is first used: NumPy, scikit-learn and safetensors take their time.
_NAMES_OF = {
    "askwise.core.budget": ("AtLeast", "AtMost", "AverageBudget", "Budget", "ClassWeights", "HardBudget", "Tradeoff"),
    "askwise.core.cost_spec": ("CostSpec",),
    "askwise.core.problem": ("Problem", "Schema"),
    "askwise.errors": ("AskwiseError",),
    "askwise.estimator": ("CostlyClassifier",),
    "askwise.facade": ("load",),
    "askwise.family.config": ("FamilyConfig",),
    "askwise.paper.config": ("TrainConfig",),
    "askwise.session.providers": ("Provider", "Unavailable"),
    "askwise.session.session": ("Session",),
    "askwise.stack.config": ("StackConfig",),
    "askwise.tables.external": ("Recorded",),
}


def __getattr__(name: str) -> Any:
    for module, names in _NAMES_OF.items():
        if name in names:
            globals()[name] = value = getattr(import_module(module), name)
            return value
    raise AttributeError(f"module 'askwise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
