"""Exercise 8 on the ranks, a cross-entropy whose head is cut over the ranks.

It is compared with a single process that has the whole head.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, cast

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

from manyhands.checks.on_ranks import learners
from manyhands.checks.rank_tools import total
from manyhands.checks.tensor_parallel.compare_ranks import (
    in_groups,
    leaf,
    make_draw,
    one_sum,
    try_out,
)
from manyhands.data import shard

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from manyhands.checks.tensor_parallel.answers import Summed, VocabularyCase

# factors of the scores, of which the second makes exp of the largest one overflow
SMALL, LARGE = 1.0, 400.0


def vocabulary(name: str, seed: int) -> list[VocabularyCase]:
    """`vocabulary_loss(h, head, targets, group)` with small scores and with large ones."""
    function = learners(name)
    cases: list[VocabularyCase] = []
    for members, group in in_groups():
        for times in (SMALL, LARGE):
            cases.append(
                {
                    "what": "loss",
                    "times": times,
                    **_try_out(function, members, group, times, f"{seed} {members} {times}"),
                }
            )
    return cases


def _try_out(
    function: Callable[..., Any],
    members: list[int],
    group: dist.ProcessGroup | None,
    times: float,
    seed: str,
) -> Summed:
    size, me, draw = len(members), members.index(dist.get_rank()), random.Random(seed)
    tensor, width, words, places = (
        make_draw(draw.randrange(2**31)),
        draw.randint(3, 6),
        size * draw.randint(2, 4),
        size * draw.randint(2, 4),
    )
    # the ranks divide the places, so two sums send as many bytes as one sum of both together
    h, head, slope = times * tensor(places, width), tensor(width, words), tensor(places)
    targets = torch.tensor([draw.randrange(words) for _ in range(places)], device=h.device)
    mine = [shard(words, rank, size) for rank in range(size)]
    whole = [leaf(h), leaf(head)]
    losses = cross_entropy(whole[0] @ whole[1], targets, reduction="none")
    losses.backward(slope)
    gh, ghead = (cast("torch.Tensor", undivided.grad) for undivided in whole)
    ghead = ghead[:, mine[me]]
    own = _own_part(h, head, targets, slope, mine[me])
    given = {"h": leaf(h), "head": leaf(head[:, mine[me]])}
    gradients = {
        "h": {"own": own, "times": size * gh, "divided": gh / size},
        "head": {"times": size * ghead, "divided": ghead / size},
    }
    case = try_out(
        lambda *of: function(*of, targets, group),
        given,
        (losses.detach(), gh, ghead),
        slope,
        group,
        _wrong(h @ head, targets, mine, me),
        gradients,
    )
    (calls, nbytes), back = one_sum(losses, group), one_sum(h, group)
    return {"sums": [[3 * calls, 3 * nbytes], back], **case}


def _own_part(
    h: torch.Tensor, head: torch.Tensor, targets: torch.Tensor, slope: torch.Tensor, mine: slice
) -> torch.Tensor:
    """The gradient of h that comes back through only this rank's words."""
    by_score = (
        (h @ head).softmax(1) - torch.nn.functional.one_hot(targets, head.shape[1])
    ) * slope[:, None]
    return by_score[:, mine] @ head[:, mine].T


def _wrong(
    scores: torch.Tensor, targets: torch.Tensor, mine: Sequence[slice], me: int
) -> dict[str, torch.Tensor]:
    """What common mistakes return."""
    parts = [scores[:, columns] for columns in mine]
    largest = torch.stack([part.amax(1) for part in parts])  # [ranks, places]
    place = torch.arange(len(targets), device=targets.device)
    width = parts[0].shape[1]
    owner, of_target = targets // width, scores[place, targets]
    exponentials = total(
        (part - top[:, None]).exp().sum(1) for part, top in zip(parts, largest, strict=True)
    )
    losses = {
        "own largest": exponentials.log() - (of_target - largest[owner, place]),
        "own sum": parts[me].logsumexp(1) - of_target,
        "forgotten": scores.logsumexp(1) - (of_target - scores.amax(1)),
        "forgotten back": scores.logsumexp(1) - scores.amax(1) - of_target,
    }
    clamped = total(
        part.gather(1, (targets - columns.start).clamp(0, width - 1)[:, None])[:, 0]
        for part, columns in zip(parts, mine, strict=True)
    )
    return {
        **losses,
        "not masked": scores.logsumexp(1) - clamped + (len(mine) - 1) * scores.amax(1),
    }
