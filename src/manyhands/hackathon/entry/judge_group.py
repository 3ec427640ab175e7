"""A process group of torch.distributed whose messages go through the judge.

Whatever is built on `torch.distributed` finds it as it finds gloo or NCCL: `all_reduce`, `send`,
DDP with its hooks. The calls that it has are those of `network.PATTERNS`, send, receive and
barrier; another one says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import timedelta
    from typing import Any, NoReturn

    from manyhands.hackathon.entry.rank_side import Connection


ANYBODY = -1  # as `network.ANYBODY`
HOW = {
    dist.ReduceOp.SUM: "sum",
    dist.ReduceOp.AVG: "avg",
    dist.ReduceOp.PRODUCT: "product",
    dist.ReduceOp.MIN: "min",
    dist.ReduceOp.MAX: "max",
}
_MISSING = (
    "gather",
    "scatter",
    "allreduce_coalesced",
    "monitored_barrier",
    "all_gather_single_coalesced",
    "reduce_scatter_single_coalesced",
)


class Ongoing(dist.Work):
    """A call that the judge knows of; what it brings is fetched when somebody waits for it."""

    outputs: list[torch.Tensor]
    _source: int

    def __init__(
        self, connection: Connection, number: int, put: Callable[[torch.Tensor | None], None]
    ) -> None:
        super().__init__()
        self._connection, self._number, self._put, self._ended = connection, number, put, False

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait for the end of the call, which the judge knows; nothing times out here."""
        if not self._ended:
            head, data = self._connection.ask({"do": "wait", "id": self._number})
            self._ended, self._source = True, head["source"]
            self._put(torch.frombuffer(data, dtype=getattr(torch, head["dtype"])) if data else None)
        return True

    def is_completed(self) -> bool:
        """Return whether `wait` has returned."""
        return self._ended

    def _source_rank(self) -> int:
        return self._source  # torch asks for it when it has received from anybody

    def get_future(self) -> torch.futures.Future[list[torch.Tensor]]:
        """DDP asks for it: the call is then waited for at once."""
        self.wait()
        future: torch.futures.Future[list[torch.Tensor]] = torch.futures.Future()
        future.set_result(self.outputs)
        return future


class JudgeGroup(dist.ProcessGroup):
    """A process group whose calls the judge carries out.

    `members` are the ranks of the group, out of `ranks`; `numbers` count the calls of this rank, in
    all groups.
    """

    def __init__(
        self,
        connection: Connection,
        numbers: Iterator[int],
        rank: int,
        members: list[int],
        ranks: int,
    ) -> None:
        super().__init__(members.index(rank), len(members))
        self._ranks = ranks
        self._connection, self._numbers, self._members = connection, numbers, members

    def getBackendName(self) -> str:  # noqa: N802 - the name that PyTorch calls
        """Return the name by which PyTorch finds this backend."""
        return "judge"

    def _start(
        self, call: str, tensor: torch.Tensor, outputs: list[torch.Tensor], **more: Any
    ) -> Ongoing:
        """Start a call with what this rank gives.

        What comes goes into the tensors `outputs`, one after the other.
        """
        number, tensor = next(self._numbers), tensor.detach().contiguous()
        head = {
            "do": "start",
            "id": number,
            "call": call,
            "dtype": str(tensor.dtype).removeprefix("torch."),
            **more,
        }
        self._connection.tell(head, tensor.flatten().view(torch.uint8).numpy().tobytes())

        def put(data: torch.Tensor | None) -> None:
            if data is None:
                return
            room = sum(output.numel() for output in outputs)
            if len(data) != room:
                raise ValueError(
                    f"{call}: {len(data)} elements came, and there is room for {room}."
                )
            for output, part in zip(
                outputs, data.split([output.numel() for output in outputs]), strict=True
            ):
                output.detach().copy_(part.view(output.shape))

        work = Ongoing(self._connection, number, put)
        work.outputs = outputs
        return work

    def _collective(
        self, call: str, tensor: torch.Tensor, outputs: list[torch.Tensor], **more: Any
    ) -> Ongoing:
        return self._start(call, tensor, outputs, members=self._members, **more)

    # where ProcessGroup has several forms of a call, torch.distributed uses the first

    def allreduce(  # type: ignore[override]
        self, tensors: list[torch.Tensor], opts: Any = None
    ) -> Ongoing:
        """Reduce a tensor over the group, for `dist.all_reduce`."""
        (tensor,) = tensors
        return self._collective("all_reduce", tensor, [tensor], how=_how(opts))

    def reduce(  # type: ignore[override]
        self, tensors: list[torch.Tensor], opts: Any
    ) -> Ongoing:
        """Reduce a tensor to one rank, for `dist.reduce`."""
        (tensor,) = tensors
        mine = opts.rootRank == self.rank()
        return self._collective(
            "reduce",
            tensor,
            [tensor] if mine else [torch.empty_like(tensor)],
            how=_how(opts),
            root=opts.rootRank,
        )

    def broadcast(  # type: ignore[override]
        self, tensors: list[torch.Tensor], opts: Any
    ) -> Ongoing:
        """Send a rank's tensor to all, for `dist.broadcast`."""
        (tensor,) = tensors
        return self._collective("broadcast", tensor, [tensor], root=opts.rootRank)

    def allgather(  # type: ignore[override]
        self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any = None
    ) -> Ongoing:
        """Collect a tensor of each rank on all, for `dist.all_gather`."""
        (parts,), (tensor,) = outputs, inputs
        if any(part.shape != tensor.shape for part in parts):
            raise ValueError(
                "all_gather: each rank's tensor must have one and the same shape, as with gloo."
            )
        return self._collective("all_gather", tensor, parts)

    def all_gather_single(
        self, output: torch.Tensor, one: torch.Tensor, opts: Any = None
    ) -> Ongoing:
        """Collect into one tensor, for `dist.all_gather_into_tensor`."""
        return self._collective("all_gather", one, [output])

    def reduce_scatter(  # type: ignore[override]
        self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]], opts: Any
    ) -> Ongoing:
        """Reduce lists of tensors, for `dist.reduce_scatter`."""
        (output,), (parts,) = outputs, inputs
        return self._collective(
            "reduce_scatter",
            torch.cat([part.flatten() for part in parts]),
            [output],
            how=_how(opts),
        )

    def reduce_scatter_single(self, output: torch.Tensor, one: torch.Tensor, opts: Any) -> Ongoing:
        """Reduce the parts of one tensor, for `dist.reduce_scatter_tensor`."""
        return self._collective("reduce_scatter", one, [output], how=_how(opts))

    def alltoall_base(
        self,
        output: torch.Tensor,
        one: torch.Tensor,
        output_splits: list[int],
        input_splits: list[int],
        opts: Any = None,
    ) -> Ongoing:
        """Exchange the parts of one tensor, for `dist.all_to_all_single`."""
        row = one.numel() // max(len(one), 1)
        splits = [row * rows for rows in input_splits or [len(one) // self.size()] * self.size()]
        return self._collective("all_to_all", one, [output], splits=splits)

    def alltoall(
        self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None
    ) -> Ongoing:
        """Exchange lists of tensors, for `dist.all_to_all`."""
        whole = torch.cat([part.flatten() for part in inputs])
        return self._collective(
            "all_to_all", whole, outputs, splits=[part.numel() for part in inputs]
        )

    def barrier(self, opts: Any = None) -> Ongoing:
        """Wait for all ranks of the group, for `dist.barrier`."""
        return self._collective(
            "all_reduce", torch.zeros(1, dtype=torch.uint8), [torch.zeros(1, dtype=torch.uint8)]
        )

    def send(self, tensors: list[torch.Tensor], peer: int, tag: int) -> Ongoing:
        """Send a tensor to a rank of the group, for `dist.send` and `dist.isend`."""
        (tensor,) = tensors
        return self._start("send", tensor, [], peer=self._members[peer], tag=tag)

    def recv(self, tensors: list[torch.Tensor], peer: int, tag: int) -> Ongoing:
        """Receive a tensor from a rank of the group, for `dist.recv` and `dist.irecv`."""
        (tensor,) = tensors
        return self._start(
            "recv", torch.empty(0, dtype=tensor.dtype), [tensor], peer=self._members[peer], tag=tag
        )

    def recv_anysource(self, tensors: list[torch.Tensor], tag: int) -> Ongoing:
        """`dist.recv(tensor)` without a source: what arrives first by the challenge's clocks."""
        (tensor,) = tensors
        if len(self._members) < self._ranks:
            raise NotImplementedError(
                "Receiving from any rank is possible only in the group of all ranks."
            )
        return self._start(
            "recv", torch.empty(0, dtype=tensor.dtype), [tensor], peer=ANYBODY, tag=tag
        )

    def clock_s(self) -> float:
        """What this rank's clock says, in seconds: of the challenge, not of this machine."""
        return self._connection.ask({"do": "clock"})[0]["clock_s"]


def _how(opts: Any) -> str:
    kind = opts.reduceOp if opts is not None else dist.ReduceOp.SUM
    for known, name in HOW.items():
        if kind == known:
            return name
    raise ValueError(
        "The challenge's network can add, average, multiply, and take the maximum or the minimum."
    )


def _refuse(name: str) -> Callable[..., NoReturn]:
    def missing(self: JudgeGroup, *_: object, **__: object) -> NoReturn:
        raise NotImplementedError(
            f"The challenge's network has no {name}: it has all_reduce, reduce, broadcast, "
            "all_gather, reduce_scatter, all_to_all, send, recv and barrier."
        )

    return missing


for _name in _MISSING:
    setattr(JudgeGroup, _name, _refuse(_name))
