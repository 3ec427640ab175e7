"""Process groups and what is built on them: NCCL's groups become gloo's.

Wrappers of a GPU's modules become wrappers of the CPU's.
"""

from __future__ import annotations

import functools
import inspect
import os
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from manyhands.gpu_stand_in.cuda_devices import REAL, is_gpu
from manyhands.gpu_stand_in.stand_in_state import (
    INDEX,
    asked_by_torch,
    note,
    replace,
    when_imported,
)
from manyhands.gpu_stand_in.substitution_messages import IDS, MESH, NCCL, SYNC

if TYPE_CHECKING:
    import torch

# group -> the backend that the script asked for
_asked: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
ALONE: list[bool] = []  # not empty: no other rank answers any more


def install() -> None:
    """Replace what makes process groups and meshes, and what wraps modules of a GPU."""
    import torch
    import torch.distributed as dist

    if not dist.is_available():
        return
    from torch.distributed import device_mesh
    from torch.distributed import distributed_c10d as c10d

    for name in ("init_process_group", "new_group"):
        _replace_everywhere(dist, c10d, name, _wrap_group_maker(c10d, getattr(c10d, name)))
    _replace_everywhere(dist, c10d, "get_backend", _wrap_get_backend(c10d, c10d.get_backend))
    for name in ("is_nccl_available",):
        _replace_everywhere(dist, c10d, name, lambda: True)
    for name in (
        "all_gather_single",
        "reduce_scatter_single",
        "all_gather_into_tensor",
        "reduce_scatter_tensor",
    ):
        if hasattr(c10d, name):
            _replace_everywhere(dist, c10d, name, _wrap_for_any_shape(getattr(c10d, name)))
    for name in ("all_reduce", "reduce", "reduce_scatter_tensor", "reduce_scatter_single"):
        if hasattr(c10d, name):
            _replace_everywhere(
                dist, c10d, name, _wrap_to_multiply_first(c10d, getattr(c10d, name))
            )
    if hasattr(c10d, "gather_single"):
        _replace_everywhere(dist, c10d, "gather_single", _make_gather_single(c10d))
    if not hasattr(dist, "ProcessGroupNCCL"):
        for module in (dist, c10d):
            replacement: Any = module
            replacement.ProcessGroupNCCL = _Nccl
    _replace_meshes(dist, device_mesh)
    _replace_wrappers(torch)
    _replace_sync_batch_norm(torch)


class _Nccl:
    """`ProcessGroupNCCL`: only its options, which gloo does without."""

    class Options:
        def __init__(self, *_: object, **__: object) -> None:
            self.config = type("Config", (), {})()


def _replace_everywhere(dist: Any, c10d: Any, name: str, new: Callable[..., Any]) -> None:
    replace(c10d, name, new)
    setattr(dist, name, new)


def plain_backend(backend: Any) -> Any:
    """gloo for NCCL's names, "cpu:gloo,cuda:nccl" among them; any other backend as it is."""
    return "gloo" if "nccl" in str(backend or "").lower() else backend


def _wrap_group_maker(c10d: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(inspect.unwrap(original))

    @functools.wraps(original)
    def make(*args: Any, **kwargs: Any) -> Any:
        given = dict(signature.bind(*args, **kwargs).arguments)
        asked = given.get("backend")
        if plain_backend(asked) != asked:
            note(NCCL)
            given["backend"] = "gloo"
            given.pop("pg_options", None)
        given.pop("device_id", None)
        made = original(**given)
        group = c10d._get_default_group() if made is None else made
        if asked and isinstance(group, c10d.ProcessGroup):
            _asked[group] = str(asked).lower()
        return made

    return make


def _wrap_get_backend(c10d: Any, original: Callable[..., Any]) -> Callable[..., str]:
    """Scripts hear of the backend that they have asked for; torch of the one that there is."""

    @functools.wraps(original)
    def get_backend(group: Any = None) -> str:
        if asked_by_torch():
            return original(group)
        asked = _asked.get(group or c10d._get_default_group(), "")
        return "nccl" if "nccl" in asked and "cpu:" not in asked else original(group)

    return get_backend


def _wrap_to_multiply_first(c10d: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    """Make a collective multiply first and sum then, where its sum is ReduceOp.PREMUL_SUM.

    gloo lacks this operation.
    """
    signature = inspect.signature(inspect.unwrap(original))

    @functools.wraps(original)
    def reduce(*args: Any, **kwargs: Any) -> Any:
        given = dict(signature.bind(*args, **kwargs).arguments)
        if given.get("op") != c10d.ReduceOp.PREMUL_SUM:
            return original(*args, **kwargs)
        _, factor = given["op"].__getstate__()
        if "input" in given:
            given["input"] = given["input"] * factor
        else:
            given["tensor"].mul_(factor)
        return original(**{**given, "op": c10d.ReduceOp.SUM})

    return reduce


def _wrap_for_any_shape(original: Callable[..., Any]) -> Callable[..., Any]:
    """NCCL asks only how many numbers the two tensors have, and gloo for their shapes, too."""
    signature = inspect.signature(inspect.unwrap(original))

    @functools.wraps(original)
    def collective(*args: Any, **kwargs: Any) -> Any:
        given = dict(signature.bind(*args, **kwargs).arguments)
        first, second = list(given)[:2]
        if given[first].shape[1:] == given[second].shape[1:] or not (
            given[first].is_contiguous() and given[second].is_contiguous()
        ):
            return original(*args, **kwargs)
        return original(**{**given, first: given[first].view(-1), second: given[second].view(-1)})

    return collective


def _make_gather_single(c10d: Any) -> Callable[..., Any]:
    """Make `gather_single` (PyTorch 2.15), which gloo lacks, of a gather of parts.

    The parts of the tensor are gathered, each in its slot.
    """

    @functools.wraps(c10d.gather_single)
    def gather_single(
        tensor: torch.Tensor,
        gather_tensor: torch.Tensor | None = None,
        dst: int | None = None,
        group: Any = None,
        async_op: bool = False,
        group_dst: int | None = None,
    ) -> Any:
        ranks = c10d.get_world_size(group)
        parts = None
        if gather_tensor is not None and c10d.get_rank(group) == _root_in(
            c10d, group, dst, group_dst
        ):
            if gather_tensor.numel() != ranks * tensor.numel() or not gather_tensor.is_contiguous():
                raise ValueError(
                    f"gather_tensor must be contiguous and have {ranks} times the elements of "
                    f"tensor ({tensor.numel()}); it has {gather_tensor.numel()}"
                )
            parts = list(gather_tensor.view(ranks, *tensor.shape))
        return c10d.gather(tensor, parts, dst, group, async_op, group_dst)

    return gather_single


def _root_in(c10d: Any, group: Any, dst: int | None, group_dst: int | None) -> int:
    if group_dst is not None:
        return group_dst
    return dst or 0 if group is None else c10d.get_group_rank(group, dst or 0)


def _replace_meshes(dist: Any, device_mesh: Any) -> None:
    init, begin = device_mesh.init_device_mesh, device_mesh.DeviceMesh.__init__
    from_group = device_mesh.DeviceMesh.from_group

    def of_cpus(device_type: str) -> str:
        if is_gpu(device_type):
            note(MESH)
            # as a mesh of GPUs chooses
            INDEX["current"] = INDEX["current"] or int(os.environ.get("LOCAL_RANK", 0))
        return "cpu" if is_gpu(device_type) else device_type

    @functools.wraps(init)
    def init_device_mesh(device_type: str, *args: Any, **kwargs: Any) -> Any:
        return init(of_cpus(device_type), *args, **kwargs)

    @functools.wraps(begin)
    def __init__(self: Any, /, device_type: str, *args: Any, **kwargs: Any) -> None:
        begin(self, of_cpus(device_type), *args, **kwargs)

    def of_group(group: Any, device_type: str, *args: Any, **kwargs: Any) -> Any:
        return from_group(group, of_cpus(device_type), *args, **kwargs)

    for owner in (device_mesh, dist):
        owner.init_device_mesh = init_device_mesh
    device_mesh.DeviceMesh.__init__, device_mesh.DeviceMesh.from_group = (
        __init__,
        staticmethod(of_group),
    )


def _replace_wrappers(torch: Any) -> None:
    """Let DDP and FSDP take modules that are on the CPU.

    DataParallel has no GPUs to distribute to.
    """
    DDP, begin = (
        torch.nn.parallel.DistributedDataParallel,
        torch.nn.parallel.DistributedDataParallel.__init__,
    )
    signature = inspect.signature(begin)

    @functools.wraps(begin)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        given = signature.bind(self, *args, **kwargs).arguments
        if given.pop("device_ids", None) is not None:
            note(IDS)
        given.pop("output_device", None)
        begin(**given)

    DDP.__init__ = __init__
    # it only refuses such layers on a CPU
    DDP._passing_sync_batchnorm_handle = lambda self, module: None
    when_imported("torch.distributed.fsdp.fully_sharded_data_parallel", _replace_fully_sharded)


def _replace_fully_sharded(module: Any) -> None:
    """FSDP's first version takes the CPU where it is named as its device."""
    begin, signature = (
        module.FullyShardedDataParallel.__init__,
        inspect.signature(module.FullyShardedDataParallel.__init__),
    )

    @functools.wraps(begin)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind(self, *args, **kwargs)
        bound.arguments["device_id"] = REAL["device"]("cpu")
        begin(*bound.args, **bound.kwargs)

    from torch.distributed.fsdp import _init_utils

    module.FullyShardedDataParallel.__init__ = __init__
    # it refuses parameters of a CPU
    _init_utils._check_module_states_for_sync_module_states = lambda module_states: None


def _replace_sync_batch_norm(torch: Any) -> None:
    """Run torch's own autograd function of SyncBatchNorm on kernels that are written for the CPU.

    It holds the collectives.
    """
    from torch.nn.modules import _functions
    from torch.nn.modules.batchnorm import SyncBatchNorm, _BatchNorm

    for name, kernel in (
        ("batch_norm_stats", _stats),
        ("batch_norm_gather_stats_with_counts", _gathered),
        ("batch_norm_elemt", _normed),
        ("batch_norm_backward_reduce", _reduced),
        ("batch_norm_backward_elemt", _slope),
    ):
        setattr(torch, name, kernel)

    def forward(layer: Any, input: Any) -> Any:
        import torch.distributed as dist

        if ALONE or not (layer.training and dist.is_initialized()):
            return _BatchNorm.forward(layer, input)
        group = layer.process_group or dist.group.WORLD
        if dist.get_world_size(group) == 1:
            return _BatchNorm.forward(layer, input)
        note(SYNC)
        layer._check_input_dim(input)
        factor = 0.0 if layer.momentum is None else layer.momentum
        if layer.track_running_stats:
            layer.num_batches_tracked.add_(1)
            if layer.momentum is None:
                factor = 1.0 / layer.num_batches_tracked.item()
        mean, var = (
            (layer.running_mean, layer.running_var) if layer.track_running_stats else (None, None)
        )
        return _functions.SyncBatchNorm.apply(
            input,
            layer.weight,
            layer.bias,
            mean,
            var,
            layer.eps,
            factor,
            group,
            dist.get_world_size(group),
        )

    # torch's own is replaced
    SyncBatchNorm.forward = forward  # type: ignore[method-assign,assignment]


def _columns(tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A number for each channel, in a shape that fits to the input."""
    return tensor.reshape(1, -1, *[1] * (like.dim() - 2))


def _over(input: torch.Tensor) -> list[int]:
    return [dim for dim in range(input.dim()) if dim != 1]


def _stats(input: torch.Tensor, eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    whole = input.float() if input.dtype.itemsize < 4 else input
    mean = whole.mean(_over(input))
    return mean, (whole.var(_over(input), unbiased=False) + eps).rsqrt()


def _gathered(
    input: torch.Tensor,
    means: torch.Tensor,
    invstds: torch.Tensor,
    running_mean: torch.Tensor | None,
    running_var: torch.Tensor,
    momentum: float,
    eps: float,
    counts: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    counts = counts.to(means.dtype).reshape(-1, 1)
    total = counts.sum()
    mean = (counts * means).sum(0) / total
    var = (counts * (invstds.pow(-2) - eps + (means - mean).square())).sum(0) / total
    if running_mean is not None:
        running_mean.mul_(1 - momentum).add_(mean.to(running_mean.dtype), alpha=momentum)
        unbiased = var * total / (total - 1).clamp(min=1)
        running_var.mul_(1 - momentum).add_(unbiased.to(running_var.dtype), alpha=momentum)
    return mean, (var + eps).rsqrt()


def _normed(
    input: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor,
    mean: torch.Tensor,
    invstd: torch.Tensor,
    eps: float,
) -> torch.Tensor:
    out = (input - _columns(mean, input)) * _columns(invstd, input)
    if weight is not None:
        out = out * _columns(weight, input) + _columns(bias, input)
    return out.to(input.dtype)


def _reduced(
    slope: torch.Tensor,
    input: torch.Tensor,
    mean: torch.Tensor,
    invstd: torch.Tensor,
    weight: torch.Tensor | None,
    of_input: bool,
    of_weight: bool,
    of_bias: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    slope = slope.to(mean.dtype)
    total = slope.sum(_over(input))
    with_x = (slope * (input - _columns(mean, input))).sum(_over(input))
    kind = mean.dtype if weight is None else weight.dtype
    return total, with_x, (with_x * invstd).to(kind), total.to(kind)


def _slope(
    slope: torch.Tensor,
    input: torch.Tensor,
    mean: torch.Tensor,
    invstd: torch.Tensor,
    weight: torch.Tensor | None,
    total: torch.Tensor,
    with_x: torch.Tensor,
    counts: torch.Tensor,
) -> torch.Tensor:
    number = counts.sum()
    far = (input - _columns(mean, input)) * _columns(invstd.square() * with_x / number, input)
    scale = invstd if weight is None else invstd * weight
    return ((slope - _columns(total / number, input) - far) * _columns(scale, input)).to(
        input.dtype
    )
