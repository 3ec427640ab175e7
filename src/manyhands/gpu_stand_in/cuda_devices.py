"""Tensors and devices: what is made on a GPU, or moved there, is made on the CPU."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from manyhands.gpu_stand_in.stand_in_state import INDEX, USED, asked_by_torch, note, replace
from manyhands.gpu_stand_in.substitution_messages import DEVICES

if TYPE_CHECKING:
    import torch
    from torch import Tensor

DRAWN = (
    "rand",
    "randn",
    "randint",
    "randperm",
    "normal",
    "rand_like",
    "randn_like",
    "randint_like",
)
LIKE = (
    "empty_like",
    "zeros_like",
    "ones_like",
    "full_like",
    "rand_like",
    "randn_like",
    "randint_like",
)
NEW = ("new_tensor", "new_empty", "new_empty_strided", "new_full", "new_zeros", "new_ones")
FROM_NOTHING = (
    "tensor",
    "zeros",
    "ones",
    "empty",
    "full",
    "arange",
    "linspace",
    "eye",
    "rand",
    "randn",
    "randint",
    "randperm",
)  # of which a script makes a tensor on the CPU unless it names a GPU
OWN: dict[str, Any] = {
    "generator": None,  # the generator that the GPU draws from
    "default": False,
}  # whether a GPU has been the default device


def is_gpu(device: Any) -> bool:
    """Whether `device`, as a script writes it, is a GPU.

    It is for "cuda", "cuda:1", torch.device("cuda") or a number.
    """
    if isinstance(device, str):
        return device == "cuda" or device.startswith("cuda:")
    return type(device) is int or getattr(device, "type", None) == "cuda"


def index_of(device: Any) -> int:
    """The number of a GPU, as a script writes it; of None or "cuda", the current one."""
    if isinstance(device, str):
        device = REAL["device"](device)
    if type(device) is not int:
        device = getattr(device, "index", getattr(device, "idx", None))
    return INDEX["current"] if device is None or device < 0 else device


def gpu_of(tensor: torch.Tensor) -> int | None:
    """Return the number of the GPU that a tensor was made on or moved to.

    None for the result of a computation.
    """
    return getattr(_memory(tensor), "on_gpu", None)


def made_on_cpu(tensor: torch.Tensor) -> bool:
    """Whether a script made this tensor on the CPU.

    Of what is computed from tensors, that is not known.
    """
    return getattr(_memory(tensor), "made_on_cpu", False)


def install() -> None:
    """Replace the functions that make, move, load and describe tensors."""
    import torch
    from torch.utils import _device

    # torch keeps this set: it must hold torch's own functions
    constructors = _device._device_constructors()
    OWN["generator"] = torch.Generator().manual_seed(torch.initial_seed())
    _replace_classes(torch)
    for name in {constructor.__name__ for constructor in constructors} | {
        *DRAWN,
        *LIKE,
        "asarray",
        "from_file",
    }:
        if hasattr(torch, name):
            replace(
                torch, name, _wrap_maker(getattr(torch, name), name in DRAWN, name in FROM_NOTHING)
            )
    for name in NEW:
        replace(torch.Tensor, name, _wrap_maker(getattr(torch.Tensor, name)))
    _replace_moves(torch)
    _replace_devices(torch)
    _replace_defaults(torch, _device)
    _replace_loading(torch)
    warnings.filterwarnings("ignore", message=".*pin_memory.*no accelerator")


def _wrap_maker(
    original: Callable[..., Any], drawn: bool = False, from_nothing: bool = False
) -> Callable[..., Any]:
    """A function that makes a tensor: on the CPU, where it would make it on a GPU."""

    def make(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop("pin_memory", None)
        asked = kwargs.get("device")
        on_gpu = is_gpu(asked)
        if on_gpu:
            kwargs["device"] = "cpu"
        for place, argument in enumerate(args):
            if isinstance(argument, REAL["device"]) and argument.type == "cuda":
                args, on_gpu, asked = (*args[:place], "cpu", *args[place + 1 :]), True, argument
        if on_gpu and drawn and kwargs.get("generator") is None and not _of_meta(args):
            kwargs["generator"] = OWN["generator"]
        made = original(*args, **kwargs)
        if (
            from_nothing
            and not (on_gpu or OWN["default"] or asked_by_torch())
            and _memory(made) is not None
        ):
            _memory(made).made_on_cpu = True
        return _on_gpu(made, asked) if on_gpu else made

    return make


def _of_meta(args: Sequence[Any]) -> bool:
    return bool(args) and getattr(getattr(args[0], "device", None), "type", "cpu") == "meta"


REAL: dict[str, Any] = {}  # torch's own classes: "device", "Generator"


def _replace_classes(torch: Any) -> None:
    """`torch.device(0)` is a GPU, and `torch.Generator("cuda")` a generator of the CPU."""
    real_device, real_generator = REAL["device"], REAL["Generator"] = torch.device, torch.Generator

    def device(*args: Any, **kwargs: Any) -> Any:
        given = args[0] if args else kwargs.get("device")
        return real_device("cuda", given) if type(given) is int else real_device(*args, **kwargs)

    def generator(device: Any = "cpu") -> Any:
        return real_generator("cpu" if is_gpu(device) else device)

    for real, make in ((real_device, device), (real_generator, generator)):
        kind = type(
            f"_{real.__name__}",
            (type,),
            {
                "__call__": lambda cls, *args, _make=make, **kwargs: _make(*args, **kwargs),
                "__instancecheck__": lambda cls, instance, _real=real: isinstance(instance, _real),
            },
        )
        setattr(
            torch,
            real.__name__,
            kind(real.__name__, (), {"__module__": "torch", "__doc__": real.__doc__}),
        )


def _on_gpu(tensor: Any, device: Any) -> Any:
    """Return the same tensor, marked as one of a GPU.

    Its memory has the number of the GPU, so that a second move there does not copy it.
    """
    note(DEVICES)
    memory = _memory(tensor)
    if memory is not None and _real_device(tensor).type == "cpu":
        memory.on_gpu = index_of(device)
    if device not in (None, "cuda") and getattr(device, "index", 0) is not None:
        INDEX["named"] = index_of(device)
    return tensor


def _may_be_on_gpu(tensor: torch.Tensor) -> torch.Tensor:
    """The same tensor, which goes where another one is: that may be a GPU."""
    if made_on_cpu(tensor):
        _memory(tensor).made_on_cpu = False
    return tensor


def _memory(tensor: torch.Tensor) -> Any:
    """Return the memory of a plain tensor.

    None of a sparse one, of one of torch.func, or of a subclass.
    """
    if type(tensor).__name__ not in ("Tensor", "Parameter") or tensor.is_sparse:
        return None
    try:
        return tensor.untyped_storage()
    except RuntimeError:
        return None


def _real_device(tensor: torch.Tensor) -> torch.device:
    return _GETTERS["device"].__get__(tensor)


_GETTERS: dict[str, Any] = {}


def _replace_moves(torch: Any) -> None:
    """`to`, `cuda`, `cpu` and `pin_memory` of tensors, modules and storages."""
    Tensor, Module = torch.Tensor, torch.nn.Module
    to, cpu, typed = Tensor.to, Tensor.cpu, Tensor.type

    def to_gpu(device: Any, tensor: Any, /, *args: Any, **kwargs: Any) -> Any:
        moved = to(tensor, *args, **kwargs)
        if (
            moved is tensor
            and _memory(tensor) is not None
            and _real_device(tensor).type == "cpu"
            and (gpu_of(tensor) != index_of(device))
        ):
            moved = tensor.clone(memory_format=torch.preserve_format)
        return _on_gpu(moved, device)

    def move(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if is_gpu(kwargs.get("device")):
            return to_gpu(kwargs["device"], tensor, *args, **{**kwargs, "device": "cpu"})
        if args and is_gpu(args[0]):
            return to_gpu(args[0], tensor, "cpu", *args[1:], **kwargs)
        moved = to(tensor, *args, **kwargs)
        if args and isinstance(args[0], Tensor):
            _may_be_on_gpu(moved)
        leaves = (
            moved is tensor
            and DEVICES in USED
            and not asked_by_torch()
            and (str(args[0] if args else kwargs.get("device")) == "cpu")
        )
        return moved.clone() if leaves else moved

    def cuda(
        tensor: Any,
        device: Any = None,
        non_blocking: bool = False,
        memory_format: Any = torch.preserve_format,
    ) -> Any:
        return to_gpu(device, tensor, "cpu", memory_format=memory_format)

    def to_cpu(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        moved = cpu(tensor, *args, **kwargs)
        return (
            moved.clone() if moved is tensor and DEVICES in USED and not asked_by_torch() else moved
        )

    def as_type(tensor: Any, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
        if isinstance(dtype, str) and "cuda." in dtype:
            return _on_gpu(typed(tensor, dtype.replace("cuda.", ""), *args, **kwargs), None)
        return typed(tensor, dtype, *args, **kwargs) if dtype is not None else typed(tensor)

    type_as = Tensor.type_as
    for name, new in (
        ("to", move),
        ("cuda", cuda),
        ("cpu", to_cpu),
        ("type", as_type),
        ("type_as", lambda tensor, other: _may_be_on_gpu(type_as(tensor, other))),
        ("pin_memory", lambda tensor, *_, **__: tensor),
        ("record_stream", lambda tensor, stream: None),
    ):
        replace(Tensor, name, new)
    module_to = Module.to

    def module_move(module: Any, *args: Any, **kwargs: Any) -> Any:
        if args and type(args[0]) is int:
            args = (torch.device("cuda", args[0]), *args[1:])
        if type(kwargs.get("device")) is int:
            kwargs["device"] = torch.device("cuda", kwargs["device"])
        return module_to(module, *args, **kwargs)

    replace(Module, "to", module_move)
    for kind in (torch.UntypedStorage, torch.TypedStorage):
        replace(kind, "cuda", lambda storage, *_, **__: storage.clone())
        replace(kind, "pin_memory", lambda storage, *_, **__: storage)


def _replace_devices(torch: Any) -> None:
    """From the first move to a GPU on, tensors say to scripts that they are on it."""
    base = torch._C.TensorBase
    _GETTERS.update(device=base.device, is_cuda=base.is_cuda)

    def on_gpu(tensor: Tensor) -> bool:
        return (
            DEVICES in USED
            and not asked_by_torch(3)
            and _GETTERS["device"].__get__(tensor).type == "cpu"
        )

    def number_of(tensor: Tensor) -> int:
        """Return the number of the GPU that a tensor is on.

        The result of a computation is on the GPU that the script has named last, since it names one
        for its data.
        """
        number = gpu_of(tensor)
        return INDEX.get("named", INDEX["current"]) if number is None else number

    def device(tensor: Tensor) -> Any:
        return (
            REAL["device"]("cuda", number_of(tensor))
            if on_gpu(tensor)
            else _GETTERS["device"].__get__(tensor)
        )

    def is_cuda(tensor: Tensor) -> bool:
        return on_gpu(tensor)

    torch.Tensor.device, torch.Tensor.is_cuda = property(device), property(is_cuda)
    number = torch.Tensor.get_device
    replace(
        torch.Tensor,
        "get_device",
        lambda tensor: number_of(tensor) if on_gpu(tensor) else number(tensor),
    )


def _replace_defaults(torch: Any, _device: Any) -> None:
    """The default device, and the default type of tensors."""
    begin, set_type = _device.DeviceContext.__init__, torch.set_default_tensor_type

    def context(mode: Any, device: Any) -> None:
        if is_gpu(device):
            OWN["default"] = True
            note(DEVICES)
        begin(mode, "cpu" if is_gpu(device) else device)

    def default_type(kind: Any) -> None:
        OWN["default"] = OWN["default"] or "cuda" in str(kind)
        set_type(kind.replace("cuda.", "") if isinstance(kind, str) else kind)

    _device.DeviceContext.__init__ = context
    replace(torch, "set_default_tensor_type", default_type)


def _replace_loading(torch: Any) -> None:
    """`torch.load`: what was on a GPU when it was saved is loaded into the memory of the CPU."""
    load = torch.load
    signature = inspect.signature(load)

    def loaded(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs)
        place = given.arguments.get("map_location")
        if place is None or isinstance(place, dict) or is_gpu(place):
            given.arguments["map_location"] = "cpu"
        return load(*given.args, **given.kwargs)

    replace(torch, "load", loaded)
