"""The experiments of the paper and around it: who takes part, on what, and running all of it once."""

from .executor import Outcome, Progress, execute
from .figures import FIGURES, Figure, figure
from .lineup import CONTESTANTS, Contestant, contestant
from .plan import Job, Plan, make_plan
from .scored import scores_of

__all__ = [
    "CONTESTANTS",
    "FIGURES",
    "Contestant",
    "Figure",
    "Job",
    "Outcome",
    "Plan",
    "Progress",
    "contestant",
    "execute",
    "figure",
    "make_plan",
    "scores_of",
]
