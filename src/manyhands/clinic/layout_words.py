"""The sentences on kinds of parallelism: what a script looks like, and what was compared in its groups."""

NAMED = 4  # so many names of parameters are shown
# as in `clinic_words.MISTAKES`
MISTAKES_OF_LAYOUTS = {
    "tensor rows": (
        "Ranks that compute parts of one layer got different rows",
        "{ranks} hold parts of the same layers, and their rows differ in every step. What they compute is put together "
        "as if it belonged to the same rows.",
        "Give all ranks of a tensor-parallel group the same rows: take the data-parallel rank and size for the sampler "
        "or the seed, not those of the world.", ("15",)),
    "part losses": (
        "Ranks that compute parts of one layer have different losses",
        "{ranks} hold parts of the same layers and got the same rows, but in step {step} their losses are {losses}.",
        "Sum the output of each layer that is cut by rows over the group (an all_reduce in forward). Outside of the "
        "cut layers, give all ranks of the group the same dropout.", ("15",)),
    "copies": (
        "Copies of a parameter get different gradients",
        "{ranks} hold the same parameters, {names}, and in step {step} their optimisers got different gradients for "
        "them. So the copies drift apart.",
        "With tensor parallelism, sum over the group: in forward the output of a layer that is cut by rows, in "
        "backward the gradient at the input of a layer that is cut by columns. Where copies are used for different "
        "things (a tied embedding on two stages, norms that see parts of a sequence), all_reduce their gradients "
        "before the step.", ("14", "15")),
    "own clip": (
        "Each rank clips its own part of the gradient",
        "Each rank holds a part of the gradient. It points where the gradient of one process does, but the ranks have "
        "made their parts shorter by different factors: {factors}.",
        "Clip by the norm of the whole gradient: add up the squares over all ranks (all_reduce) before the root is "
        "taken. torch.nn.utils.clip_grad_norm_ does so for sharded parameters (DTensor).", ("06", "15")),
    "other parameters": (
        "Gradients of different parameters are averaged",
        "{ranks} average their gradients, but they hold different parameters: they got the same rows and exchange "
        "activations in forward.",
        "Average over the ranks that hold the same part of the model: the data-parallel group, and not the "
        "tensor-parallel one.", ("15",)),
    "one rank's weights": (
        "All ranks take over the weights of one",
        "Each rank trains alone, and after step {step} all ranks go on with what rank {rank} has learned. The work of "
        "the others is lost.",
        "Average the weights (all_reduce with ReduceOp.AVG), or the gradients in every step.", ("01", "09")),
    "weights summed": (
        "What the ranks have learned is summed, not averaged",
        "Each rank trains alone. What all ranks get after step {step} is {n} times the mean of the ranks' weights or, "
        "if an outer optimiser takes a step, {n} times the mean of their changes.",
        "Divide by the number of ranks: all_reduce with op=ReduceOp.AVG.", ("01", "09")),
}
# as in `clinic_words.REMEDIES`
REMEDIES_OF_LAYOUTS = {
    "not sharded": "These parameters are not sharded, so FSDP2 does not average their gradients. Call fully_shard on "
                   "the whole model as well, after its layers.",
    "no data parallel": "Average the gradients over the ranks that hold the same part of the model: call "
                        "fully_shard(model, mesh=...) with the data-parallel dimension of the mesh, or all_reduce them "
                        "in its group.",
    "one loss": "The ranks that hold parts of the same layers compute one loss together. Do not divide it by their "
                "number, and do not sum or average its gradients over them once more.",
}
LAYOUTS = {"tensor": "tensor parallelism (ranks {parts} hold parts of the same layers)",
           "pipeline": "a pipeline (ranks send activations to each other and hold different layers)",
           "experts": "expert parallelism (rows are exchanged inside forward, and experts are trained on one rank "
                      "each)",
           "parts": "model parallelism (the ranks hold different parameters)",
           "sequence": "sequence parallelism (ranks hold parts of the same rows, and exchange them inside forward)",
           "flat": "FullyShardedDataParallel, the first version of FSDP, which flattens the parameters",
           "groups": "data parallelism in groups that are smaller than the world",
           "local": "local SGD (each rank takes several steps by itself, and then the weights are averaged)"}
LAYOUT = {"looks": "The script looks like {kinds}.",
          "groups": "Gradients are averaged in the groups {groups}. In each of {steps} steps the ranks of a group had "
                    "the same weights, and the gradient was the mean over their rows.",
          "changed": "Gradients are averaged in the groups {groups}. In each of {steps} steps the ranks of a group had "
                     "the same weights and the same gradient. It is not the mean over their rows, or that is not "
                     "known: the script changes the gradients, or the clinic does not know its loss.",
          "names": "{k} parameters are trained on each rank alone: {names}. They were not compared.",
          "local": "The ranks' weights differed, and were the same on all ranks again as step {again} began.",
          "one process": "In each of {steps} steps the gradient was that of one process with the whole layers and the "
                         "same {rows} rows.",
          "remarks": "How the gradient compares with that of one process with the same {rows} rows is said in the "
                     "remarks.",
          "flat": "No gradient was compared: what a rank holds of a flattened parameter does not show which parameter "
                  "it is. With fully_shard, the second version of FSDP, gradients are compared.",
          "nothing": "No two ranks average the gradients of the same parameters, so no gradient was compared.",
          "not put together": "Gradients are averaged in the groups {groups}, but the model could not be run in one "
                              "process: no gradient was compared.",
          "open": "Whether the parts together compute what one process would was not determined."}


def looks_like(layout, evidence):
    """What the script looks like, and what was compared inside its groups."""
    shown = {"parts": _sets(layout.parts), "groups": _sets(layout.groups), "steps": layout.steps,
             "again": layout.again}
    said = [LAYOUT["looks"].format(kinds=" and ".join(LAYOUTS[kind].format(**shown) for kind in layout.kinds))]
    if layout.kinds == ["local"]:
        return " ".join(said + ([LAYOUT["local"].format(**shown)] if layout.again else []))
    if evidence is not None and layout.checked:
        rows = sum(len(evidence.steps[0].rows[rank]) for rank in evidence.givers)
        return " ".join([*said, LAYOUT["remarks" if layout.changed else "one process"].format(rows=rows, **shown)])
    if layout.kinds == ["flat"]:
        return " ".join([*said, LAYOUT["flat"]])
    compared = "changed" if layout.changed else "groups" if layout.checked else None
    key = compared or ("not put together" if layout.groups else "nothing")
    said.append(LAYOUT[key].format(**shown))
    if layout.names:
        names = ", ".join(layout.names[:NAMED]) + (", ..." if len(layout.names) > NAMED else "")
        said.append(LAYOUT["names"].format(k=len(layout.names), names=names))
    return " ".join([*said, LAYOUT["open"]])


def _sets(groups):
    return ", ".join("{" + ", ".join(map(str, group)) + "}" for group in groups)
