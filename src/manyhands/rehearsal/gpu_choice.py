"""Whether the program has chosen its GPU.

Objects and barriers for which no device is named go through the current one.

What counts are calls that are made, by whatever module: `torch.cuda.set_device`, `with
torch.cuda.device(...)`, a `DeviceMesh` and `device_id=` of `init_process_group`, and a new value of
CUDA_VISIBLE_DEVICES. Accelerate and Lightning choose the GPU themselves, with such calls; without a
GPU an `Accelerator` that was made counts, and Lightning's calls. Where `torch.cuda.is_available()`
is false, the program does not take its branch for GPUs, so a call that is written in one of its
files counts too.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import os
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

from manyhands import gpu_stand_in
from manyhands.cluster.on_rank.stack import is_user_file

if TYPE_CHECKING:
    import torch
    from torch import nn

VISIBLE = "CUDA_VISIBLE_DEVICES"
CHOOSERS = {"set_device", "set_device_index", "set_device_idx", "init_device_mesh", "DeviceMesh"}
LIGHTNING = ("lightning", "pytorch_lightning", "lightning_fabric")
CHOOSE_ON_A_GPU = {
    "lightning": ("Trainer", "Fabric"),
    "pytorch_lightning": ("Trainer",),
    "lightning_fabric": ("Fabric",),
    "accelerate": ("Accelerator", "PartialState"),
    "transformers": ("Trainer",),
}


Undo = Callable[[], object]


class GpuChoice:
    """What this rank has done to choose its GPU, from `watch` on; `made`: from the start."""

    def __init__(self, made: bool = False) -> None:
        self._made, self._inside = made, 0
        self._visible: str | None = None
        self.bound = False  # device_id was given to init_process_group
        self._first = 0  # the number of the first rank on this machine
        # the GPU of the module that a DistributedDataParallel was made for last
        self._of_model: int | None = None

    def watch(self) -> list[Undo]:
        """See to the calls from now on; returns how to undo it."""
        import torch
        from torch.distributed.device_mesh import DeviceMesh
        from torch.nn.parallel import DistributedDataParallel

        self._visible, accelerator = os.environ.get(VISIBLE), getattr(torch, "accelerator", None)
        self._first = int(os.environ.get("RANK", 0)) - int(os.environ.get("LOCAL_RANK", 0))
        heard: list[tuple[Any, str, Callable[..., object]]] = [
            (torch.cuda, "set_device", self._chosen),
            (accelerator, "set_device_index", self._chosen),
            (accelerator, "set_device_idx", self._chosen),
            (DeviceMesh, "__init__", self._chosen),
            (torch.cuda.device, "__enter__", self._entered),
            (torch.cuda.device, "__exit__", self._left),
            (DistributedDataParallel, "__init__", self._wrapped),
        ]
        return [
            _call_before(owner, name, hear) for owner, name, hear in heard if hasattr(owner, name)
        ]

    def _chosen(self, *_: object, **__: object) -> None:
        self._made = True

    def _entered(self, *_: object) -> None:
        self._inside += 1

    def _left(self, *_: object) -> None:
        self._inside -= 1

    def _wrapped(self, ddp: object, module: nn.Module, *_: object, **__: object) -> None:
        self._of_model = next(map(_gpu_of, module.parameters()), None)

    def number_of(self, tensors: Sequence[torch.Tensor], native: bool) -> int | None:
        """Return the number of the GPU that a call's tensors are on, among those of all machines.

        None where it is not known. What C++ sends is DDP's, a copy of gradients, weights or
        buffers.
        """
        known = [self._of_model] if native else [_gpu_of(tensor) for tensor in tensors]
        if None in known or not known or os.environ.get(VISIBLE) != self._visible:
            return None
        return None if known[0] is None else self._first + known[0]

    def is_made(self) -> bool:
        """Whether the current GPU is one that the program has chosen."""
        import torch

        return bool(
            self._made
            or self._inside
            or self.bound
            or os.environ.get(VISIBLE) != self._visible
            or _is_chosen_by_package()
            or (
                not (gpu_stand_in.INDEX["gpus"] or torch.cuda.is_available())
                and _is_chosen_in_source()
            )
        )


def _is_chosen_by_package() -> bool:
    """Whether an object of Accelerate has been made, or a function of Lightning is running."""
    state = getattr(sys.modules.get("accelerate.state"), "PartialState", None)
    if getattr(state, "_shared_state", None):
        return True
    frame: FrameType | None = sys._getframe()
    while (
        frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] not in LIGHTNING
    ):
        frame = frame.f_back
    return frame is not None


def _gpu_of(tensor: torch.Tensor) -> int | None:
    """The number of a tensor's GPU on its machine; None where it is not known."""
    from manyhands.gpu_stand_in.cuda_devices import gpu_of

    return (
        gpu_of(tensor)
        if gpu_stand_in.is_active()
        else tensor.get_device()
        if tensor.is_cuda
        else None
    )


def _call_before(owner: Any, name: str, hear: Callable[..., object]) -> Undo:
    """Have `hear` called before each call of this function, as it is called.

    Returns how to undo it.
    """
    original = getattr(owner, name)

    @functools.wraps(original)
    def heard(*args: Any, **kwargs: Any) -> Any:
        hear(*args, **kwargs)
        return original(*args, **kwargs)

    setattr(owner, name, heard)
    return functools.partial(setattr, owner, name, original)


def _is_chosen_in_source() -> bool:
    """Whether a loaded file of the program has a call in it that chooses the GPU."""
    files = {getattr(module, "__file__", None) or "" for module in list(sys.modules.values())}
    return any(_chooses(file) for file in files if file.endswith(".py") and is_user_file(file))


@functools.cache
def _chooses(file: str) -> bool:
    with (
        contextlib.suppress(OSError, SyntaxError, ValueError),
        open(file, encoding="utf-8", errors="replace") as text,
    ):
        return any(map(_is_choice, ast.walk(ast.parse(text.read()))))
    return False


def _is_choice(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        named = {keyword.arg for keyword in node.keywords}
        objects = {
            name
            for package, classes in CHOOSE_ON_A_GPU.items()
            if package in sys.modules
            for name in classes
        }
        return name in CHOOSERS | objects or (name == "init_process_group" and "device_id" in named)
    if isinstance(node, ast.With):
        managers = [ast.unparse(item.context_expr) for item in node.items]
        return any(text.startswith(("torch.cuda.device(", "cuda.device(")) for text in managers)
    return isinstance(node, ast.Assign) and any(
        f"environ['{VISIBLE}']" in ast.unparse(target) for target in node.targets
    )
