"""What the evidence means, and is no mistake: remarks, each with what was measured."""

from manyhands.clinic.evidence import apart, finite
from manyhands.clinic.judge import elsewhere, own_buffers, undivided_parts, untold
from manyhands.clinic.rule import Finding


def remarks(evidence):
    """What is no mistake, and what one should know: [Finding]."""
    found, one = [], evidence.one or {}
    calls = [call for rank in evidence.seen for step in rank["steps"] for call in step["calls"]]
    if any(call["random"] for call in calls):
        same = len({rank["steps"][0]["calls"][0]["noise"] for rank in evidence.seen if rank["steps"][0]["calls"]}) == 1
        key = "same noise" if same and evidence.ranks > 1 else "noise"
        found.append(Finding(key, {"seed": evidence.first["seed"]}))
    if "not" in one and one["not"] != "random":
        found.append(Finding("not tried: " + one["not"], {"error": one.get("error", "")}))
    elif one.get("unfaithful", 0) > getattr(evidence, "coarse", evidence.tolerance):
        found.append(Finding("not tried: other output", {"apart": one["unfaithful"]}))
    elif one.get("far", 0) > getattr(evidence, "coarse", evidence.tolerance):
        found.append(Finding("batch norm" if one["mixers"] else "mixes rows",
                             {"names": one["mixers"], "apart": one["far"], "rows": one["rows"],
                              "each": one["rows"] / evidence.ranks}))
    elif not one and not any(call["random"] for call in calls):
        found.append(Finding("not tried: no copy", {}))
    found += undivided_parts(evidence)
    found += elsewhere(evidence)
    found += own_buffers(evidence)
    if disagree(evidence):
        found.append(Finding("two measures", {"apart": tried(evidence)}))
    if untold(evidence):
        found.append(Finding(untold(evidence), {"factor": float(evidence.ranks)}))
    if evidence.first["scaled"]:
        found.append(Finding("scaled", {}))
    if any(kind == "value" for step in evidence.steps for clips in step.clips for kind, _ in clips):
        found.append(Finding("clipped by value", {}))
    if evidence.first["stride"] > 1:
        found.append(Finding("sampled", {"stride": evidence.first["stride"]}))
    return found


def tried(evidence):
    """How far the first gradient is from that of the run in one process, in parts of its length; None where that run is
    the only measure there is, or where there is none."""
    gradient = evidence.tried_gradient()
    if gradient is None or not evidence.count or evidence.sharded:
        return None
    import torch

    step = evidence.steps[0]
    if any(name not in gradient for name in step.names):
        return None
    whole = torch.cat([gradient[name].double() for name in step.names])
    return apart(whole, step.raw) if finite(whole) and finite(step.raw) else None


def disagree(evidence):
    """Whether the run in one process gives another gradient than the ranks' own, weighted by their terms."""
    far = tried(evidence)
    return far is not None and far > evidence.coarse
