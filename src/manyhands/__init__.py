"""manyhands: learn distributed training of neural networks by doing it.

`import manyhands` is cheap: what is heavy is imported when it is first asked for.
"""

from importlib import import_module
from typing import Any

_HOME = {
    "Cluster": "manyhands.cluster",
    "hint": "manyhands.checks",
    "predict": "manyhands.learner.predictions",
    "settle": "manyhands.learner.predictions",
}
__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'manyhands' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
