"""The steps of a visit, taken anew with the gradients of one process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from manyhands.clinic.evidence import join_vector, relative_distance
from manyhands.clinic.tolerances import FACTOR_TOLERANCE

if TYPE_CHECKING:
    import torch

    from manyhands.clinic.evidence import Comparable, Evidence
    from manyhands.clinic.records import StepRecord


def expected_gradient(step: Comparable, ranks: int) -> torch.Tensor:
    """Return the gradient of one process, as clipping or the loss has scaled it.

    It is as short as clipping has made it, or has a factor of the loss that may be intended: not
    the number of ranks.
    """
    if any(step.clips):
        return step.right * (step.given[0].norm() / step.right.norm().clamp(min=1e-30))
    scale = step.scales[0] if step.scales and len(set(step.scales)) == 1 else 1.0
    return (
        step.right
        if any(abs(scale / odd - 1) < FACTOR_TOLERANCE for odd in (ranks, 1 / ranks))
        else step.right * scale
    )


def is_torch_optimizer(step: StepRecord) -> bool:
    """Whether the optimiser is one of torch's."""
    import torch

    module, kind = step["optimizer"]
    return hasattr(torch.optim, kind) and (module.startswith("torch.optim") or "horovod" in module)


def compare_replayed_weights(evidence: Evidence) -> list[float] | None:
    """Take the steps anew with the gradients of one process, and compare the weights.

    Returns by rank how far the change of its weights is from that, in parts of its length; None
    where the optimiser is not torch's, or no gradient of one process is known.
    """
    import torch

    steps = evidence.first["steps"][: evidence.count]
    own = [
        [sorted(step["weights"]) for step in record["steps"][: evidence.count]]
        for record in evidence.seen
    ]
    if not steps or evidence.sharded or any(names_of_rank != own[0] for names_of_rank in own):
        return None
    start = {
        name: torch.nn.Parameter(part.clone()) for name, part in evidence.first["start"].items()
    }
    optimizers: dict[tuple[str, ...], Any] = {}  # by the names of the parameters
    for number, step in enumerate(steps):
        whole, groups = evidence.steps[number], [group for group in step["groups"] if group[1]]
        kind = step["optimizer"][1]
        if not is_torch_optimizer(step) or whole.right is None or not float(whole.right.norm()):
            return None
        key = (kind, *(name for _, names in groups for name in names))
        if key not in optimizers:
            made = [
                {"params": [start[name] for name in names], **options} for options, names in groups
            ]
            optimizers[key] = getattr(torch.optim, kind)(made, lr=made[0]["lr"])
        # the same parameters may be in groups of different sizes
        for group, (options, _) in zip(optimizers[key].param_groups, groups, strict=False):
            group.update(options)
        for name, part in zip(
            whole.names,
            expected_gradient(cast("Comparable", whole), evidence.ranks).split(whole.sizes),
            strict=True,
        ):
            start[name].grad = part.to(start[name].dtype)
        optimizers[key].step()
        optimizers[key].zero_grad()
    names = sorted(steps[-1]["weights"])
    sizes = [start[name].numel() for name in names]
    before = join_vector(evidence.first["start"], names, sizes)
    way = join_vector({name: start[name].detach() for name in names}, names, sizes) - before
    return [
        relative_distance(join_vector(weights, names, sizes) - before, way)
        for weights in evidence.of(evidence.count - 1, "weights")
    ]
