"""What the modules of the stand-in share.

The GPUs that there seem to be, what was substituted, and how a function is replaced.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import threading
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

INDEX = {"gpus": 0, "current": 0}  # how many GPUs there are, and the one that the script has chosen
USED: dict[str, None] = {}  # what was substituted -> None, in the order of its first use
REPORT: dict[str, str] = {}  # "path": the file that each name is written to


def list_substitutions() -> list[str]:
    """What was substituted so far, as phrases."""
    return list(USED)


def note(what: str) -> None:
    """Remember that `what`, a phrase, was substituted."""
    if what not in USED:
        USED[what] = None
        if path := REPORT.get("path"):
            # also where workers of a loader note something
            part = f"{path}.{os.getpid()}.{threading.get_ident()}.part"
            with open(part, "w") as file:
                json.dump(list_substitutions(), file)
            os.replace(part, path)


def asked_by_torch(depth: int = 2) -> bool:
    """Whether the function that called the caller of this one belongs to torch, or to manyhands."""
    name = sys._getframe(depth).f_globals.get("__name__") or ""
    return name == "torch" or name.startswith(("torch.", "manyhands."))


def replace_for_scripts(owner: Any, name: str, answer: Callable[..., Any]) -> None:
    """Replace `owner.name` by `answer` for scripts and libraries.

    torch itself gets its own answer.
    """
    original = getattr(owner, name, answer)

    def either(*args: Any, **kwargs: Any) -> Any:
        return (original if asked_by_torch() else answer)(*args, **kwargs)

    replace(owner, name, either, original)


def replace(owner: Any, name: str, new: Any, original: Any = None) -> None:
    """Replace `owner.name` by the function `new`, under that name.

    torch.jit takes it for what it replaces.
    """
    from torch.jit import _builtins

    original = original or getattr(owner, name, None)
    if operator := _builtins._find_builtin(original):
        _builtins._register_builtin(new, operator)
    for about in ("__module__", "__name__", "__qualname__", "__doc__"):
        if hasattr(original, about):
            setattr(new, about, getattr(original, about))
    new.__wrapped__ = getattr(original, "__wrapped__", original)
    setattr(owner, name, new)


def when_imported(name: str, change: Callable[[ModuleType], object]) -> None:
    """Call `change` with the module `name` as soon as the script imports it.

    If it is imported already, that is now.
    """
    if name in sys.modules:
        change(sys.modules[name])
    else:
        sys.meta_path.insert(0, _Awaited(name, change))


class _Awaited:
    """A finder of one module, which changes the module once it is loaded.

    It leaves the search to all others.
    """

    def __init__(self, name: str, change: Callable[[ModuleType], object]) -> None:
        self.name, self.change = name, change

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            self.change(module)

        # the module is changed once it is loaded
        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
