"""The sentences on kinds of parallelism: what a script looks like, what was compared in groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from manyhands.clinic.clinic_limits import SHOWN_NAMES

if TYPE_CHECKING:
    from manyhands.clinic.evidence import Evidence
    from manyhands.clinic.layouts import Layout

# as in `clinic_messages.MISTAKES`
MISTAKES_OF_LAYOUTS = {
    "tensor rows": (
        "Ranks that compute parts of one layer got different rows",
        (
            "{ranks} hold parts of the same layers, but their rows differ in every step. Their "
            "results are combined as if they belonged to the same rows."
        ),
        (
            "Give all ranks of a tensor-parallel group the same rows. For the sampler or the seed, "
            "use the data-parallel rank and size instead of the rank and size in the world."
        ),
        ("15",),
    ),
    "part losses": (
        "Ranks that compute parts of one layer have different losses",
        (
            "{ranks} hold parts of the same layers and got the same rows, but in step {step} their "
            "losses are {losses}."
        ),
        (
            "Sum the output of each row-parallel layer over the group (an all_reduce in forward). "
            "Outside of the parallel layers, give all ranks of the group the same dropout."
        ),
        ("15",),
    ),
    "copies": (
        "Copies of a parameter get different gradients",
        (
            "{ranks} hold the same parameters, {names}, and in step {step} their optimisers got "
            "different gradients for them. Therefore the copies drift apart."
        ),
        (
            "With tensor parallelism, sum two things over the group, namely the output of a "
            "row-parallel layer in forward and the gradient at the input of a column-parallel "
            "layer in backward. If copies are used for different purposes (a tied embedding on two "
            "stages, norms that see parts of a sequence), all_reduce their gradients before the "
            "step."
        ),
        ("14", "15"),
    ),
    "own clip": (
        "Each rank clips its own part of the gradient",
        (
            "Each rank holds a part of the gradient. The parts have the same direction as the "
            "gradient that a single process computes, but the ranks have scaled their parts down "
            "by different factors: {factors}."
        ),
        (
            "Clip by the norm of the whole gradient, that is, add up the squares over all ranks "
            "(all_reduce) before the root is taken. torch.nn.utils.clip_grad_norm_ does so for "
            "sharded parameters (DTensor)."
        ),
        ("06", "15"),
    ),
    "other parameters": (
        "Gradients of different parameters are averaged",
        (
            "{ranks} average their gradients although they hold different parameters, since they "
            "got the same rows and exchange activations in forward."
        ),
        (
            "Average over the ranks that hold the same part of the model, which is the "
            "data-parallel group and not the tensor-parallel group."
        ),
        ("15",),
    ),
    "one rank's weights": (
        "All ranks take over the weights of a single rank",
        (
            "Each rank trains alone, and after step {step} all ranks continue with the weights of "
            "rank {rank}, so the work of the others is lost."
        ),
        "Average the weights (all_reduce with ReduceOp.AVG), or the gradients in every step.",
        ("01", "09"),
    ),
    "weights summed": (
        "The ranks' weights are summed, not averaged",
        (
            "Each rank trains alone. After step {step}, all ranks get {n} times the mean of their "
            "weights or, if an outer optimiser takes a step, {n} times the mean of their changes."
        ),
        "Divide by the number of ranks: all_reduce with op=ReduceOp.AVG.",
        ("01", "09"),
    ),
}
# as in `clinic_messages.REMEDIES`
REMEDIES_OF_LAYOUTS = {
    "not sharded": (
        "These parameters are not sharded, so FSDP2 does not average their gradients. Call "
        "fully_shard on the whole model as well, after its layers."
    ),
    "no data parallel": (
        "Average the gradients over the ranks that hold the same part of the model. Either call "
        "fully_shard(model, mesh=...) with the data-parallel dimension of the mesh, or all_reduce "
        "them in its group."
    ),
    "one loss": (
        "The ranks that hold parts of the same layers compute one loss together. Do not divide it "
        "by their number, and do not sum or average its gradients over them once more."
    ),
}
LAYOUTS = {
    "tensor": "tensor parallelism (ranks {parts} hold parts of the same layers)",
    "pipeline": "a pipeline (ranks send activations to each other and hold different layers)",
    "experts": (
        "expert parallelism (rows are exchanged inside forward, and experts are trained on one rank"
        " each)"
    ),
    "parts": "model parallelism (the ranks hold different parameters)",
    "sequence": (
        "sequence parallelism (ranks hold parts of the same rows, and exchange them inside forward)"
    ),
    "flat": "FullyShardedDataParallel, the first version of FSDP, which flattens the parameters",
    "groups": "data parallelism in groups that are smaller than the world",
    "local": (
        "local SGD (each rank takes several steps by itself, and then the weights are averaged)"
    ),
}
LAYOUT = {
    "looks": "The script looks like {kinds}.",
    "groups": (
        "Gradients are averaged in the groups {groups}. In each of {steps} steps the ranks of a "
        "group had the same weights, and the gradient was the mean over their rows."
    ),
    "changed": (
        "Gradients are averaged in the groups {groups}. In each of {steps} steps the ranks of a "
        "group had the same weights and the same gradient. It is not the mean over their rows, or "
        "this is not known, because the script changes the gradients or the clinic does not know "
        "its loss."
    ),
    "names": "{k} parameters are trained on each rank alone: {names}. They were not compared.",
    "local": (
        "The ranks' weights differed, but were the same on all ranks again when step {again} began."
    ),
    "one process": (
        "In each of {steps} steps the gradient was what a single process computes with the whole "
        "layers and the same {rows} rows."
    ),
    "remarks": (
        "The remarks say how the gradient compares with what a single process computes from the "
        "same {rows} rows."
    ),
    "flat": (
        "No gradient was compared, because a rank's part of a flattened parameter does not show "
        "which parameter it belongs to. With fully_shard, the second version of FSDP, gradients "
        "are compared."
    ),
    "nothing": (
        "No two ranks average the gradients of the same parameters, so no gradient was compared."
    ),
    "not put together": (
        "Gradients are averaged in the groups {groups}, but no gradient was compared, because "
        "the model could not be run in a single process."
    ),
    "open": (
        "It was not determined whether the parts together compute what a single process would "
        "compute."
    ),
}


def describe_layout(layout: Layout, evidence: Evidence | None) -> str:
    """What the script looks like, and what was compared inside its groups."""
    shown = {
        "parts": _sets(layout.parts),
        "groups": _sets(layout.groups),
        "steps": layout.steps,
        "again": layout.again,
    }
    sentences = [
        LAYOUT["looks"].format(
            kinds=" and ".join(LAYOUTS[kind].format(**shown) for kind in layout.kinds)
        )
    ]
    if layout.kinds == ["local"]:
        return " ".join(sentences + ([LAYOUT["local"].format(**shown)] if layout.again else []))
    if evidence is not None and layout.checked:
        rows = sum(len(evidence.steps[0].rows[rank]) for rank in evidence.batch_ranks)
        return " ".join(
            [
                *sentences,
                LAYOUT["remarks" if layout.changed else "one process"].format(rows=rows, **shown),
            ]
        )
    if layout.kinds == ["flat"]:
        return " ".join([*sentences, LAYOUT["flat"]])
    compared = "changed" if layout.changed else "groups" if layout.checked else None
    key = compared or ("not put together" if layout.groups else "nothing")
    sentences.append(LAYOUT[key].format(**shown))
    if layout.names:
        names = ", ".join(layout.names[:SHOWN_NAMES]) + (
            ", ..." if len(layout.names) > SHOWN_NAMES else ""
        )
        sentences.append(LAYOUT["names"].format(k=len(layout.names), names=names))
    return " ".join([*sentences, LAYOUT["open"]])


def _sets(groups: Sequence[Sequence[int]]) -> str:
    return ", ".join("{" + ", ".join(map(str, group)) + "}" for group in groups)
