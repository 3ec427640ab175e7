"""What the clinic makes of ranks that hold parts of one model.

The evidence is written down here, and no script runs.
"""

from types import SimpleNamespace

import pytest
import torch

from manyhands.clinic import one_process_run
from manyhands.clinic.dtensor_parts import groups_with_same_part
from manyhands.clinic.evidence import Step
from manyhands.clinic.flat_parts import FlatParts, assemble, find_slots
from manyhands.clinic.layouts import examined
from manyhands.clinic.part_rules import (
    copies_in_group,
    copies_of_sharded,
    different_losses,
    parts_held,
    tied_copies,
)

NORM, BIAS, PART = torch.ones(4), torch.zeros(4), torch.arange(4.0)


def seen(rank, start, given, kinds=None, losses=(1.0,), rows=("a", "b")):
    backwards = [{"losses": [{"value": value, "terms": 2}]} for value in losses]
    step = {"calls": [{"rows": list(rows)}], "backwards": backwards, "given": given, "cuts": {}}
    return {"rank": rank, "start": start, "kinds": kinds or {}, "steps": [step]}


def test_ranks_that_compute_parts_of_a_layer_have_one_loss():
    def find_mistakes(*losses, rows=("a", "b")):
        return different_losses(
            [
                seen(rank, {"w": PART}, {}, losses=[value], rows=rows[rank:] or rows)
                for rank, value in enumerate(losses)
            ]
        )

    assert find_mistakes(1.0, 1.0) == []
    # no rows were seen
    assert [
        (finding.key, finding.values["losses"]) for finding in find_mistakes(1.0, 2.0, rows=())
    ] == []
    (finding,) = different_losses(
        [seen(2, {"w": PART}, {}), seen(3, {"w": PART}, {}, losses=[2.0])]
    )
    assert finding.key == "part losses" and finding.values == {
        "losses": [1.0, 2.0],
        "step": 1,
        "ranks": [2, 3],
    }
    assert (
        different_losses(
            [seen(0, {"w": PART}, {}), seen(1, {"w": PART}, {}, losses=[2.0], rows=("c", "d"))]
        )
        == []
    )


@pytest.mark.parametrize(
    ("name", "start", "kind", "found"),
    [
        # or a cut one
        ("norm.weight", NORM, "LlamaRMSNorm", True),
        ("out.bias", BIAS, "RowParallelLinear", False),
        ("bn.weight", NORM, "BatchNorm2d", False),
        ("position", PART, "Embedding", True),
    ],
)
def test_copies_in_a_tensor_parallel_group_get_one_gradient(name, start, kind, found):
    def group(*given):
        return [
            seen(
                rank,
                {name: start, "cut": PART + rank},
                {name: gradients, "cut": PART * rank},
                {name: kind},
            )
            for rank, gradients in enumerate(given)
        ]

    assert copies_in_group(group(PART, PART)) == []
    assert [finding.values["names"] for finding in copies_in_group(group(PART, 2 * PART))] == (
        [[name]] if found else []
    )
    # a gradient of 0, by rounding
    noise = [{name: PART * 1e-9 * rank, "cut": PART + 1} for rank in (1, 2)]
    assert (
        copies_in_group(
            [
                seen(rank, {name: start}, gradients, {name: kind})
                for rank, gradients in enumerate(noise)
            ]
        )
        == []
    )


def test_a_tied_embedding_gets_one_gradient_on_both_stages():
    def stages(first, last, kind="Embedding"):
        return [
            seen(
                0,
                {"embedding.weight": PART, "layer.0": 2 * PART},
                {"embedding.weight": first},
                {"embedding.weight": kind},
            ),
            seen(1, {"head.weight": PART, "layer.1": 2 * PART}, {"head.weight": last}),
        ]

    assert tied_copies(stages(PART, PART)) == [] == tied_copies(stages(PART, 2 * PART, "Linear"))
    (finding,) = tied_copies(stages(PART, 2 * PART))
    assert finding.key == "copies" and finding.values["names"] == [
        "embedding.weight",
        "head.weight",
    ]


def sharded(given, placements, mesh=lambda rank: [[0, 1], [2, 3]], names=("w", "plain")):
    shards = [
        {"w": {"placements": placements, "mesh": mesh(rank), "shape": (8,)}} for rank in range(4)
    ]
    rows = [[f"{rank // 2}"] for rank in range(4)]
    findings = copies_of_sharded(
        SimpleNamespace(
            count=1,
            ranks=4,
            sharded=shards[0],
            tolerance=2e-3,
            first={"start": dict.fromkeys(names)},
            steps=[SimpleNamespace(rows=rows)],
            seen=[{"sharded": shard} for shard in shards],
            of=lambda number, what: [{"w": placements}] * 4 if what == "cuts" else given,
        )
    )
    return [
        (finding.key, finding.values.get("ranks") or finding.values.get("names"))
        for finding in findings
    ]


def test_a_part_that_several_ranks_hold_gets_one_gradient():
    whole, cut = ("whole",), ("shard", 0, False)
    right = [{"w": PART + rank // 2, "plain": PART} for rank in range(4)]
    assert sharded(right, [cut, whole]) == []
    # ranks 2 and 3 have different rows
    assert sharded(right, [whole, whole]) == [("part own", ["w"])]
    assert sharded(right, [("partial", "sum"), ("partial", "sum")]) == []  # parts of a sum
    assert sharded(
        [{**gradients, "w": PART + rank} for rank, gradients in enumerate(right)], [cut, whole]
    ) == [("copies", [0, 1])]
    assert sharded(
        [{**gradients, "plain": PART * gradients["w"][0]} for gradients in right], [cut, whole]
    ) == [("part own", ["plain"])]
    # two meshes of two ranks, and no averaging over them
    assert sharded(right, [cut], lambda rank: [rank // 2 * 2, rank // 2 * 2 + 1], ["w"]) == [
        ("own", None)
    ]
    assert (
        groups_with_same_part([None, None]) == [[0, 1]]
        and groups_with_same_part([{"mesh": [0, 1], "placements": [cut]}] * 2) == []
    )


def test_a_copy_has_the_heads_of_the_whole_layer(monkeypatch):
    # to be put back
    monkeypatch.setattr(torch.nn.Module, "__setattr__", torch.nn.Module.__setattr__)
    one_process_run.watch_attributes()
    model = torch.nn.Linear(2, 2)
    model.heads, model.width = 8, 8
    model.heads, model.width = 4, 2  # divided by two ranks; set to something else
    monkeypatch.setattr(torch.nn.Parameter, "to_local", lambda parameter: parameter, raising=False)
    monkeypatch.setattr(
        torch.nn.Parameter, "device_mesh", SimpleNamespace(mesh=torch.arange(2)), raising=False
    )
    copy = one_process_run.copy_model(model)
    assert (copy.heads, copy.width) == (8, 2)


def test_parts_of_the_weights_behind_one_another_are_recognised():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.LayerNorm(2), torch.nn.Linear(2, 3))
    parameters = dict(model.named_parameters())
    # padded to 22 numbers
    flat = torch.cat([*(p.detach().reshape(-1) for p in parameters.values()), torch.zeros(1)])
    parts = [torch.nn.Parameter(part.clone()) for part in flat.chunk(2)]
    # the layer norm's ones and zeros may be anybody's
    assert find_slots(parts[0], parameters) == [("0.weight", 0, 6, 0), ("0.bias", 0, 2, 6)]
    assert find_slots(parts[1], parameters) == [("2.weight", 0, 6, 1), ("2.bias", 0, 3, 7)]
    pieces = []
    for number, part in enumerate(parts):
        part.grad, optimizer, noted = (
            torch.arange(11.0) + 11 * number,
            torch.optim.Adam([part]),
            FlatParts(),
        )
        assert not noted.holds(optimizer)
        noted.note(optimizer, parameters)
        assert noted.holds(optimizer)
        pieces.append(noted.take())
    whole, holders = assemble(pieces, {name: p.numel() for name, p in parameters.items()})
    assert list(whole) == ["0.weight", "0.bias", "2.weight", "2.bias"] and whole[
        "2.bias"
    ].tolist() == [18, 19, 20]
    assert holders["0.bias"].tolist() == [0, 0] and holders["2.bias"].tolist() == [1, 1, 1]
    stranger = torch.optim.Adam([torch.nn.Parameter(torch.randn(5))])
    FlatParts().note(stranger, parameters)


def test_each_ranks_part_of_the_gradient():
    local = [torch.tensor([1.0, 2, 3, 4]), torch.tensor([3.0, -2, 1, 0])]
    right, holders = sum(local) / 2, torch.tensor([0.0, 0, 1, 1])

    def find_key(given):
        step = Step(
            ["a"],
            [4],
            [given] * 2,
            right,
            right,
            [1.0] * 2,
            local,
            right,
            [0.5] * 2,
            holders=holders,
        )
        finding = parts_held(SimpleNamespace(tolerance=1e-3, ranks=2), 0, step)
        return finding and finding.key

    assert find_key(right) is None and find_key(2 * right) is None
    assert find_key(right * torch.tensor([1, 1, 0.5, 0.5])) == "own clip"
    assert find_key(torch.cat([local[0][:2], local[1][2:]]) / 2) == "own"


def test_a_copy_of_a_sharded_model_keeps_its_tied_weights(monkeypatch):
    model = torch.nn.Sequential(torch.nn.Embedding(5, 2), torch.nn.Linear(2, 5, bias=False))
    model[1].weight = model[0].weight
    monkeypatch.setattr(torch.nn.Parameter, "to_local", lambda parameter: parameter, raising=False)
    monkeypatch.setattr(
        torch.nn.Parameter, "device_mesh", SimpleNamespace(mesh=torch.arange(2)), raising=False
    )
    copy = one_process_run.copy_model(model)
    assert copy[1].weight is copy[0].weight and [name for name, _ in copy.named_parameters()] == [
        "0.weight"
    ]


# -- two copies of a model of two parts: ranks 0 and 1, ranks 2 and 3 ------------------------------


def message(ranks, phase, shape, call="allreduce"):
    numel = torch.Size(shape).numel()
    return {
        "phase": phase,
        "call": call,
        "ranks": ranks,
        "peer": None,
        "numel": numel,
        "shape": list(shape),
        "native": False,
        "follows": True,
        "of": "",
    }


def tensor_parallel(
    rows=lambda rank: rank // 2,
    averaged=lambda rank: (rank % 2, rank % 2 + 2),
    norm=lambda rank: 1.0,
):
    """Make the records of ranks that train w, cut in two, and copies of n.

    There is one step, in which the gradients of w are averaged.
    """
    locals_ = [torch.arange(1.0, 9) * (1 + rows(rank)) + 9 * (rank % 2) for rank in range(4)]
    records = {}
    for rank in range(4):
        group, pair = averaged(rank), (rank // 2 * 2, rank // 2 * 2 + 1)
        mean = sum(locals_[other] for other in group) / len(group)
        norms = {"n": torch.full((2,), norm(rank))}
        call = {
            "rows": [f"{rows(rank)}.{row}" for row in range(3)],
            "random": False,
            "noise": "",
            "follows": False,
            "autocast": [],
            "model": 0,
            "placed": None,
        }
        step = {
            "calls": [call],
            "local": {"w": locals_[rank], **norms},
            "given": {"w": mean, **norms},
            "cuts": {},
            "pieces": {},
            "groups": [({"lr": 0.1}, ["w", "n"])],
            "buffers": {},
            "clips": [],
            "wrapped": [],
            "begin": {},
            "backwards": [
                {"losses": [{"value": 1.0, "reduction": "mean", "terms": 3}], "value": 1.0}
            ],
            "messages": [
                message(pair, "forward", (3, 2)),
                message(pair, "forward", (3, 2), "allgather"),
                message(pair, "backward", (3, 9)),
                message(group, "after", (10,)),
            ],
            "optimizer": ("torch.optim.sgd", "SGD"),
            "weights": {"w": PART + rank % 2, "n": torch.ones(2)},
        }
        start = {"w": torch.arange(8.0) + rank % 2, "n": torch.ones(2)}
        records[rank] = {
            "rank": rank,
            "start": start,
            "kinds": {"n": "RMSNorm"},
            "steps": [step],
            "sharded": {},
            "flat": False,
            "low": False,
            "loader": None,
            "splits": [],
            "wrapper": "",
            "scaled": False,
            "frameworks": [],
            "seed": 0,
            "stride": 1,
            "ddp": {},
        }
    cost = {
        rank: {"bounds": [0, 1], "calls": ["all_reduce"], "orders": [], "begins": {}, "ends": {}}
        for rank in range(4)
    }
    _, mistakes, layout = examined(
        SimpleNamespace(ranks=4, seen=records, cost=cost, one_process=None)
    )
    return [(finding.key, finding.values.get("ranks")) for finding in mistakes], layout


def test_tensor_parallelism_by_hand_in_groups_of_two():
    mistakes, layout = tensor_parallel()
    assert (
        mistakes == []
        and layout.kinds == ["tensor"]
        and layout.groups == [[0, 2], [1, 3]]
        and layout.checked
    )
    # though an all_gather follows the sum
    assert tensor_parallel(rows=lambda rank: rank)[0] == [("tensor rows", [0, 1])]
    for group in (lambda rank: (rank // 2 * 2, rank // 2 * 2 + 1), lambda rank: (0, 1, 2, 3)):
        assert tensor_parallel(averaged=group)[0] == [("other parameters", list(group(0)))]
    assert tensor_parallel(norm=lambda rank: 1.0 + rank % 2)[0] == [("copies", [0, 1])]


def test_ranks_of_which_only_later_ones_hold_shards_train_parts():
    shard = {"placements": [("shard", 0, False)], "mesh": [1, 2], "data": [], "shape": (4,)}
    seen = {
        rank: {
            "flat": False,
            "sharded": {"b": shard} if rank else {},
            "start": {"b" if rank else "a": torch.ones(4 - 2 * (rank > 0))},
            "steps": [{"calls": [], "messages": []}],
        }
        for rank in range(3)
    }
    evidence, mistakes, layout = examined(
        SimpleNamespace(ranks=3, seen=seen, cost={}, one_process=None)
    )
    assert evidence is None and mistakes == [] and layout.kinds == ["parts"] and not layout.settled
