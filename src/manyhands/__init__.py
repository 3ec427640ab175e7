"""manyhands: learn distributed training of neural networks by doing it.

`import manyhands` is cheap: what is heavy is imported when it is first asked for.
"""

from importlib import import_module

_HOME = {"Cluster": "manyhands.cluster", "hint": "manyhands.checks", "predict": "manyhands.learner.predictions",
         "settle": "manyhands.learner.predictions"}
__all__ = list(_HOME)


def __getattr__(name):
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'manyhands' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_HOME])
