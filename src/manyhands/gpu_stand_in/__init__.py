"""A stand-in for GPUs, put in place before a script starts on a machine without one: device `cuda` is the CPU.

    from manyhands import gpu_stand_in
    gpu_stand_in.install(gpus=2, index=0, report="used-0.json")

The script then takes the branch that it will take on GPUs. What it sees:

* `torch.cuda.is_available()` says yes, and `torch.cuda.device_count()` is the number of ranks on this machine.
* A device keeps the name that the script gave it: `torch.device("cuda", 0).type` is "cuda". From the first move to a
  GPU on, each tensor says the same (`x.device`, `x.is_cuda`), the few that would still be on the CPU included.
* PyTorch itself goes on seeing the CPU: whatever calls from inside of `torch` gets PyTorch's own answer. So torch works
  as it does without a GPU, and only what names a GPU is translated (`devices`, `cuda_module`, `precision`, `groups`).
* A move between CPU and GPU copies, as it does there. Numbers drawn on the GPU come from a generator of its own seed;
  dropout draws from the CPU's generator.

`used()` names what was substituted; each name is written to `report` when it is first used. Only a process that runs
one script installs the stand-in: nothing is put back.
"""

import importlib.util
import json
import os
import sys

INDEX = {"gpus": 0, "current": 0}  # how many GPUs there are, and the one that the script has chosen
_used = {}  # what was substituted -> None, in the order of its first use
_report = None


def install(gpus, index=0, report=None):
    """Put the stand-in in place, with so many GPUs, unless there is a real one; returns whether it is in place."""
    global _report
    import torch

    if INDEX["gpus"] or torch.cuda.is_available():
        return bool(INDEX["gpus"])
    from manyhands.gpu_stand_in import cuda_module, devices, groups, precision

    INDEX["gpus"], _report = gpus, report
    devices.install()
    cuda_module.install()
    precision.install()
    groups.install()
    return True


def active():
    """Whether the stand-in is in place in this process."""
    return bool(INDEX["gpus"])


def alone():
    """From now on no other rank answers: SyncBatchNorm takes the rows of this process."""
    if active():
        from manyhands.gpu_stand_in import groups

        groups.ALONE.append(True)


def used():
    """What was substituted so far, as phrases."""
    return list(_used)


def in_words(substituted):
    """A sentence for a page or a terminal on what was substituted in a run, phrases of `used`."""
    return ("There is no GPU here. A stand-in took the place of GPUs, so that the script takes the branch that it takes with them: "
            f"{'; '.join(substituted)}. --as-it-is switches it off.")


def note(what):
    """Remember that `what`, a phrase, was substituted."""
    if what not in _used:
        _used[what] = None
        if _report:
            with open(f"{_report}.part", "w") as file:
                json.dump(used(), file)
            os.replace(f"{_report}.part", _report)


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
    """Put the function `new` in the place of `owner.name`, under that name."""
    original = original or getattr(owner, name, None)
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
