"""What the modules of the stand-in share: the GPUs that there seem to be, what was substituted, and how a function is
replaced."""

import importlib.util
import json
import os
import sys
import threading

INDEX = {"gpus": 0, "current": 0}  # how many GPUs there are, and the one that the script has chosen
USED = {}  # what was substituted -> None, in the order of its first use
REPORT = {}  # "path": the file that each name is written to


def used():
    """What was substituted so far, as phrases."""
    return list(USED)


def note(what):
    """Remember that `what`, a phrase, was substituted."""
    if what not in USED:
        USED[what] = None
        if path := REPORT.get("path"):
            part = f"{path}.{os.getpid()}.{threading.get_ident()}.part"  # also where workers of a loader note something
            with open(part, "w") as file:
                json.dump(used(), file)
            os.replace(part, path)


def asked_by_torch(depth=2):
    """Whether the function that called the caller of this one belongs to torch, or to manyhands."""
    name = sys._getframe(depth).f_globals.get("__name__") or ""
    return name == "torch" or name.startswith(("torch.", "manyhands."))


def for_scripts(owner, name, answer):
    """Put `answer` in the place of `owner.name` for scripts and libraries; torch itself gets its own answer."""
    original = getattr(owner, name, answer)

    def either(*args, **kwargs):
        return (original if asked_by_torch() else answer)(*args, **kwargs)

    replace(owner, name, either, original)


def replace(owner, name, new, original=None):
    """Put the function `new` in the place of `owner.name`, under that name; torch.jit takes it for what it replaces."""
    from torch.jit import _builtins

    original = original or getattr(owner, name, None)
    if operator := _builtins._find_builtin(original):
        _builtins._register_builtin(new, operator)
    for about in ("__module__", "__name__", "__qualname__", "__doc__"):
        if hasattr(original, about):
            setattr(new, about, getattr(original, about))
    new.__wrapped__ = getattr(original, "__wrapped__", original)
    setattr(owner, name, new)


def when_imported(name, change):
    """Call `change` with the module `name` as soon as the script imports it; at once if it is imported already."""
    if name in sys.modules:
        change(sys.modules[name])
    else:
        sys.meta_path.insert(0, _Awaited(name, change))


class _Awaited:
    """A finder of one module, which leaves the search to all others and changes the module once it is loaded."""

    def __init__(self, name, change):
        self.name, self.change = name, change

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            self.change(module)

        spec.loader.exec_module = exec_module
        return spec
