"""What the evidence means, and is no mistake: remarks, each with what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from manyhands.clinic.evidence import apart, buffers_apart, finite
from manyhands.clinic.judge import elsewhere, undivided_parts, untold
from manyhands.clinic.rule import Finding

if TYPE_CHECKING:
    from manyhands.clinic.evidence import Evidence


def remarks(evidence: Evidence) -> list[Finding]:
    """What is no mistake, and what one should know: [Finding]."""
    found, one = [], evidence.one or {}
    calls = [call for rank in evidence.seen for step in rank["steps"] for call in step["calls"]]
    if any(call["random"] for call in calls):
        same = (
            len(
                {
                    rank["steps"][0]["calls"][0]["noise"]
                    for rank in evidence.seen
                    if rank["steps"][0]["calls"]
                }
            )
            == 1
        )
        key = "same noise" if same and evidence.ranks > 1 else "noise"
        found.append(Finding(key, {"seed": evidence.first["seed"]}))
    if "not" in one and one["not"] != "random":
        found.append(Finding("not tried: " + one["not"], {"error": one.get("error", "")}))
    elif one.get("unfaithful", 0) > getattr(evidence, "coarse", evidence.tolerance):
        found.append(Finding("not tried: other output", {"apart": one["unfaithful"]}))
    elif one.get("far", 0) > getattr(evidence, "coarse", evidence.tolerance):
        found.append(
            Finding(
                "batch norm" if one["mixers"] else "mixes rows",
                {
                    "names": one["mixers"],
                    "apart": one["far"],
                    "rows": one["rows"],
                    "each": one["rows"] / evidence.ranks,
                },
            )
        )
    elif not one and not any(call["random"] for call in calls):
        found.append(Finding("not tried: no copy", {}))
    found += undivided_parts(evidence)
    found += elsewhere(evidence)
    if disagree(evidence):
        found.append(Finding("two measures", {"apart": tried(evidence)}))
    if (evidence.first.get("ddp") or {}).get("sends buffers") and buffers_apart(evidence)[0]:
        found.append(Finding("buffers not sent", {"names": buffers_apart(evidence)[0]}))
    if loss := untold(evidence):
        found.append(Finding(loss, {"factor": float(evidence.ranks)}))
    if evidence.first["scaled"]:
        found.append(Finding("scaled", {}))
    norm = _norm_of_scaled(evidence)
    if norm:
        found.append(Finding("clipped scaled", {"norm": norm}))
    if any(kind == "value" for step in evidence.steps for clips in step.clips for kind, _ in clips):
        found.append(Finding("clipped by value", {}))
    if evidence.first["stride"] > 1:
        found.append(Finding("sampled", {"stride": evidence.first["stride"]}))
    return found


def _norm_of_scaled(evidence: Evidence) -> float | None:
    """The norm that clipping saw of gradients that a GradScaler had multiplied; None where there is
    no such step.
    """
    for step in evidence.steps[: evidence.count]:
        if step.raw is None or not step.clips:
            continue
        for kind, norm in step.clips[0]:
            if kind == "scaled norm" and abs(norm / max(float(step.raw.norm()), 1e-30) - 1) < 0.1:
                return norm
    return None


def tried(evidence: Evidence) -> float | None:
    """How far the first gradient is from that of the run in one process, in parts of its length;
    None where that run is the only measure there is, or where there is none.
    """
    gradient = evidence.tried_gradient()
    if gradient is None or not evidence.count or evidence.sharded:
        return None
    import torch

    step = evidence.steps[0]
    if any(name not in gradient for name in step.names):
        return None
    whole = torch.cat([gradient[name].double() for name in step.names])
    # that run gives each rank's loss the weight of its rows, also where the loss is a mean over
    # tokens
    rows = [len(of_rank) for of_rank in step.rows]
    ranks = cast(
        "torch.Tensor", sum(count * local for count, local in zip(rows, step.local, strict=True))
    ) / max(1, sum(rows))
    return apart(whole, ranks) if finite(whole) and finite(ranks) else None


def disagree(evidence: Evidence) -> bool:
    """Whether the run in one process gives another gradient than the ranks' own, weighted by their
    terms.
    """
    far = tried(evidence)
    return far is not None and far > evidence.coarse
