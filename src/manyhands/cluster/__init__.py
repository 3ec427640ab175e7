"""A cluster in a notebook: many ranks, watched, healed, and ended with the kernel."""

from .core import Cluster
from .faults import (ControllerDied, Fault, Hang, Interrupted, LimitExceeded, Mismatch, RankDied, RankError, Where)

__all__ = ["Cluster", "ControllerDied", "Fault", "Hang", "Interrupted", "LimitExceeded", "Mismatch", "RankDied", "RankError", "Where"]
