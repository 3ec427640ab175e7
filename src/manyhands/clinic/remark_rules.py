"""What the evidence means, and is no mistake: remarks, each with what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from manyhands.clinic.evidence import find_unequal_buffers, is_finite, relative_distance
from manyhands.clinic.judge import find_shared_deviation, find_undivided_parts, find_unknown_loss
from manyhands.clinic.rule import Finding

if TYPE_CHECKING:
    from manyhands.clinic.evidence import Evidence


def remarks(evidence: Evidence) -> list[Finding]:
    """What is no mistake, and what one should know: [Finding]."""
    findings, run = [], evidence.one_process or {}
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
        findings.append(Finding(key, {"seed": evidence.first["seed"]}))
    if "not" in run and run["not"] != "random":
        findings.append(Finding("not tried: " + run["not"], {"error": run.get("error", "")}))
    elif run.get("unfaithful", 0) > getattr(evidence, "coarse", evidence.tolerance):
        findings.append(Finding("not tried: other output", {"apart": run["unfaithful"]}))
    elif run.get("far", 0) > getattr(evidence, "coarse", evidence.tolerance):
        findings.append(
            Finding(
                "batch norm" if run["mixers"] else "mixes rows",
                {
                    "names": run["mixers"],
                    "apart": run["far"],
                    "rows": run["rows"],
                    "each": run["rows"] / evidence.ranks,
                },
            )
        )
    elif not run and not any(call["random"] for call in calls):
        findings.append(Finding("not tried: no copy", {}))
    findings += find_undivided_parts(evidence)
    findings += find_shared_deviation(evidence)
    if measures_disagree(evidence):
        findings.append(Finding("two measures", {"apart": distance_from_single_process(evidence)}))
    if (evidence.first.get("ddp") or {}).get("sends buffers") and find_unequal_buffers(evidence)[0]:
        findings.append(Finding("buffers not sent", {"names": find_unequal_buffers(evidence)[0]}))
    if loss := find_unknown_loss(evidence):
        findings.append(Finding(loss, {"factor": float(evidence.ranks)}))
    if evidence.first["scaled"]:
        findings.append(Finding("scaled", {}))
    norm = _norm_of_scaled(evidence)
    if norm:
        findings.append(Finding("clipped scaled", {"norm": norm}))
    if any(kind == "value" for step in evidence.steps for clips in step.clips for kind, _ in clips):
        findings.append(Finding("clipped by value", {}))
    if evidence.first["stride"] > 1:
        findings.append(Finding("sampled", {"stride": evidence.first["stride"]}))
    return findings


def _norm_of_scaled(evidence: Evidence) -> float | None:
    """Return the norm that clipping saw of gradients that a GradScaler had multiplied.

    None where there is no such step.
    """
    for step in evidence.steps[: evidence.count]:
        if step.raw is None or not step.clips:
            continue
        for kind, norm in step.clips[0]:
            if kind == "scaled norm" and abs(norm / max(float(step.raw.norm()), 1e-30) - 1) < 0.1:
                return norm
    return None


def distance_from_single_process(evidence: Evidence) -> float | None:
    """Return how far the first gradient is from that of the run in one process.

    It is in parts of its length; None where that run is the only measure there is, or where there
    is none.
    """
    gradient = evidence.one_process_gradient()
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
    return relative_distance(whole, ranks) if is_finite(whole) and is_finite(ranks) else None


def measures_disagree(evidence: Evidence) -> bool:
    """Whether the run in one process gives a different gradient than the ranks.

    The ranks' own gradients are weighted by their terms.
    """
    far = distance_from_single_process(evidence)
    return far is not None and far > evidence.coarse
