"""The half of unit 00's checks that runs on the ranks.

Each function reports what the learner's code did.
"""

from __future__ import annotations

import os
import time
from numbers import Integral
from typing import TYPE_CHECKING, Any
from unittest import mock

from manyhands.checks.rank_tools import fresh_world

if TYPE_CHECKING:
    from manyhands.checks.preflight.answers import RingAnswer

LATE_S = 0.4  # how late one rank of a ring comes: long enough for what did not wait to show


class UnwrittenError(Exception):
    """The learner has not written this yet or has not run the cell.

    The argument is a key of MISTAKES.
    """


def learners(name: str) -> Any:
    """Return the object that the learner has named `name` on this rank."""
    from IPython import get_ipython

    try:
        return get_ipython().user_ns[name]
    except KeyError:
        raise UnwrittenError("undefined") from None


def places(name: str, worlds: list[list[int]]) -> list[list[int] | str]:
    """Return what `name()` returns here and in the made-up `worlds`.

    A world is [rank, ranks per node], which the environment then pretends.
    """
    function = learners(name)
    answers = [_plain(function())]
    for rank, per_node in worlds:
        made_up = {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank % per_node),
            "LOCAL_WORLD_SIZE": str(per_node),
        }
        with mock.patch.dict(os.environ, made_up):
            os.environ.pop("GROUP_RANK", None)
            try:
                answers.append(_plain(function()))
            except KeyError as error:
                answers.append(f"KeyError: {error}")
    return answers


def _plain(answer: Any) -> list[int] | str:
    """Return a triple of whole numbers as a list, and anything else as text."""
    if (
        isinstance(answer, (tuple, list))
        and len(answer) == 3
        and all(isinstance(part, Integral) and not isinstance(part, bool) for part in answer)
    ):
        return [int(part) for part in answer]
    return repr(answer)


@fresh_world()
def ring(name: str, members: list[int], given: list[list[int]], late: int) -> RingAnswer | None:
    """Run one exchange in the ring `members`, whose ranks have the values `given`.

    Return None on a rank outside the ring.
    """
    import torch
    import torch.distributed as dist

    from manyhands.ledger import Ledger

    function, rank = learners(name), dist.get_rank()
    if rank not in members:
        return None
    mine = given[members.index(rank)]
    value = torch.tensor(mine)
    if rank == late:
        time.sleep(LATE_S)
    with Ledger() as ledger:
        got = function(value, list(members))
    sends, receives = ledger.count("send"), ledger.count("recv")
    answer: RingAnswer = {
        "got": (
            got.tolist()
            if isinstance(got, torch.Tensor)
            and got.shape == value.shape
            and got.dtype == value.dtype
            else repr(got)
        ),
        "changed": value.tolist() != mine,
        "sends": sends,
        "receives": receives,
        "bytes": ledger.bytes("send"),
        "others": len(ledger.entries) - sends - receives,
    }
    value.fill_(-1)  # as a caller may, once exchange has returned
    return answer


def forget() -> None:
    """Leave this rank as a new one is, without `shard` and without a process group."""
    import torch.distributed as dist
    from IPython import get_ipython

    get_ipython().user_ns.pop("shard", None)
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()


def has_group() -> bool:
    """Whether this rank has a process group."""
    import torch.distributed as dist

    return dist.is_initialized()


def world_sum(numbers: list[int]) -> float:
    """Return the sum of numbers[rank] over the ranks, by an all-reduce of the check itself."""
    import torch
    import torch.distributed as dist

    mine = torch.tensor([numbers[dist.get_rank()]])
    dist.all_reduce(mine)
    return mine.item()


def shard() -> list[int] | str:
    """Return the variable `shard` as a list of numbers, or text that says what is wrong with it."""
    import torch
    from IPython import get_ipython

    names = get_ipython().user_ns
    if "shard" not in names:
        return "no shard"
    tensor = names["shard"]
    if not isinstance(tensor, torch.Tensor):
        return "no tensor"
    return (
        tensor.tolist()
        if tensor.dtype == torch.int64 and tensor.dim() == 1
        else f"{tensor.dtype}, shape {list(tensor.shape)}"
    )


def shard_sum() -> list[float]:
    """Return the sum of all ranks' `shard`, by an all-reduce of the check itself."""
    import torch.distributed as dist

    total = learners("shard").double().flatten().clone()
    dist.all_reduce(total)
    return total.tolist()
