"""A recurrent network for ragged sequences whose states come from one rank and go to another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence, unpack_sequence

from manyhands import functions
from manyhands.comm import CommunicationError
from manyhands.links.shared_communicator import SharesCommunicator, check_rank

if TYPE_CHECKING:
    from manyhands.comm.communicator import Communicator


def create_multi_node_n_step_rnn(
    rnn: nn.RNNBase, c: Communicator, rank_in: int | None = None, rank_out: int | None = None
) -> MultiNodeNStepRNN:
    """Wrap an RNN whose states come from one rank and go to another.

    Its initial states come from rank `rank_in` and its last states go to rank `rank_out`.

        rnn = links.create_multi_node_n_step_rnn(nn.LSTM(n_in, n_units, n_layers), c, rank_out=1)      # rank 0
        hy, cy, ys, delegate = rnn(xs)    # delegate.backward()

    rnn: a `torch.nn.LSTM`, `GRU` or `RNN`, with any number of layers, directions and any dropout.
    rank_in, rank_out: ranks of `c`, or None. Returns a `MultiNodeNStepRNN`, which says what forward
    and backward do. Raises ValueError for another kind of module, for a number that is no rank of
    `c`, and for this rank's own number. Communicates nothing itself. Source: ChainerMN 7.8.1,
    function of the same name.
    """
    return MultiNodeNStepRNN(rnn, c, rank_in, rank_out)


class MultiNodeNStepRNN(SharesCommunicator, nn.Module):
    """What `create_multi_node_n_step_rnn` makes; `actual_rnn` is the RNN that it was given.

    Forward: `rnn(xs)`, where xs is a list of sequences, each of shape (length, features), in any
    order of lengths; a length may be 0. Returns `(hy, cy, ys, delegate)` for an LSTM and `(hy, ys,
    delegate)` for a GRU or RNN: the last states, of shape (layers * directions, sequences, units);
    the outputs, a list of shapes (length, directions * units); and what backward starts from on a
    rank that sends its states, or None. Without `rank_in` the states begin with zeros, or with
    those of the call: `rnn(hx, cx, xs)`, `rnn(hx, xs)`; each may be None. A sequence of length 0
    keeps its initial state. Each state travels as a message of its own, hx before cx, so the other
    side may also be written by hand with two calls of `send` or `recv`. Backward: gradients of the
    states go to `rank_in` when those of `ys` and of the states come back; `delegate.backward()`
    waits for them from `rank_out`. If the loss uses `ys` of a rank that also sends, connect them:
    `loss + delegate`, or `pseudo_connect(delegate, loss)`. Who calls: the rank, and its peers in
    the same iteration, with equal numbers of sequences, layers, directions and units. Raises
    ValueError for sequences that are not such; CommunicationError if states that come do not fit
    this RNN, or do not come in time.
    """

    def __init__(
        self,
        rnn: nn.RNNBase,
        c: Communicator,
        rank_in: int | None = None,
        rank_out: int | None = None,
    ) -> None:
        super().__init__()
        self.c = c
        if not isinstance(rnn, nn.LSTM | nn.GRU | nn.RNN):
            raise ValueError(
                "create_multi_node_n_step_rnn takes a torch.nn.LSTM, GRU or RNN, "
                f"and got {type(rnn).__name__}."
            )
        for rank, name in ((rank_in, "rank_in"), (rank_out, "rank_out")):
            if rank is not None:
                check_rank(rank, c, name)
                if rank == c.rank:
                    raise ValueError(
                        f"{name}={rank} is this rank itself. Give the rank at the other end, or "
                        "None. States that stay on this rank are arguments: rnn(hx, xs)."
                    )
        self.actual_rnn, self.rank_in, self.rank_out = rnn, rank_in, rank_out
        self.n_cells = 2 if isinstance(rnn, nn.LSTM) else 1

    def forward(self, *inputs: Any) -> tuple[Any, ...]:
        """(states..., ys, delegate) of the sequences `xs`, the last of `inputs`; see the class."""
        states, xs = self._arguments(inputs)
        self._check(xs)
        expected = self._expected(xs)
        if self.rank_in is not None:
            states = [functions.recv(self.c, self.rank_in) for _ in range(self.n_cells)]
            self._check_received(states, expected)
        begun = [
            xs[0].new_zeros(shape) if state is None else state
            for state, shape in zip(states, expected, strict=True)
        ]
        cells, ys = self._run(begun, xs)
        return (*cells, ys, self._send(cells))

    def _arguments(
        self, inputs: tuple[Any, ...]
    ) -> tuple[list[torch.Tensor | None], Sequence[torch.Tensor]]:
        names = ("hx", "cx", "xs") if self.n_cells == 2 else ("hx", "xs")
        if len(inputs) not in (1, len(names)):
            raise ValueError(
                f"Call this RNN as rnn(xs) or rnn({', '.join(names)}): it got {len(inputs)} "
                "arguments."
            )
        states, xs = list(inputs[:-1]) or [None] * self.n_cells, inputs[-1]
        if self.rank_in is not None and any(state is not None for state in states):
            raise ValueError(
                f"The states come from rank {self.rank_in}. Call rnn(xs) without states, "
                "or make this RNN with rank_in=None."
            )
        return states, xs

    def _check(self, xs: object) -> None:
        features = self.actual_rnn.input_size
        if not isinstance(xs, list | tuple) or not xs:
            raise ValueError(
                "xs is a list with at least one sequence, a tensor of shape (length, features). A "
                "rank that has nothing to read does not take part in this step, or gives "
                f"sequences of length 0: [torch.zeros(0, {features})]."
            )
        for i, x in enumerate(xs):
            if not isinstance(x, torch.Tensor) or x.dim() != 2 or x.shape[1] != features:
                what = tuple(x.shape) if isinstance(x, torch.Tensor) else type(x).__name__
                raise ValueError(
                    f"xs[{i}] is {what}. Each sequence is a tensor of shape (length, {features}); "
                    "a batch x of shape (sequences, length, features) is given as list(x)."
                )

    def _expected(self, xs: Sequence[torch.Tensor]) -> list[tuple[int, int, int]]:
        """The shapes of the states."""
        rnn = self.actual_rnn
        rows = rnn.num_layers * (2 if rnn.bidirectional else 1)
        return [
            (rows, len(xs), units)
            for units in (rnn.proj_size or rnn.hidden_size, rnn.hidden_size)[: self.n_cells]
        ]

    def _check_received(self, states: Sequence[Any], expected: list[tuple[int, int, int]]) -> None:
        dtype = self.actual_rnn.weight_ih_l0.dtype
        for name, state, shape in zip(("hx", "cx")[: self.n_cells], states, expected, strict=True):
            alone = isinstance(state, torch.Tensor)
            if (
                not alone
                or tuple(state.shape) != shape
                or (state.dtype != dtype and not torch.is_autocast_enabled(state.device.type))
            ):
                what = (
                    f"{str(state.dtype)[6:]} {tuple(state.shape)}"
                    if alone
                    else f"{len(state)} tensors"
                )
                raise CommunicationError(
                    f"Rank {self.c.rank} needs {name} as {str(dtype)[6:]} {shape} (layers * "
                    f"directions, sequences, units) from rank {self.rank_in}, which sent {what}. "
                    "Make the RNNs of both ranks alike, and give both equally many sequences."
                )

    def _run(
        self, states: list[torch.Tensor], xs: Sequence[torch.Tensor]
    ) -> tuple[tuple[torch.Tensor, ...], list[torch.Tensor]]:
        """(cells, ys).

        Packing takes no sequence of length 0: such ones are left out, and keep their states.
        """
        filled = [i for i, x in enumerate(xs) if len(x)]
        if len(filled) == len(xs):
            return self._pack_and_run(states, xs)
        rnn = self.actual_rnn
        width = (rnn.proj_size or rnn.hidden_size) * (2 if rnn.bidirectional else 1)
        ys = [x.new_zeros(0, width) for x in xs]
        if not filled:
            return tuple(states), ys
        index = torch.tensor(filled, device=xs[0].device)
        cells, some = self._pack_and_run(
            [state[:, index] for state in states], [xs[i] for i in filled]
        )
        for i, y in zip(filled, some, strict=True):
            ys[i] = y
        return (
            tuple(
                state.index_copy(1, index, cell) for state, cell in zip(states, cells, strict=True)
            ),
            ys,
        )

    def _pack_and_run(
        self, states: list[torch.Tensor], xs: Sequence[torch.Tensor]
    ) -> tuple[tuple[torch.Tensor, ...], list[torch.Tensor]]:
        out, last = self.actual_rnn(
            pack_sequence(list(xs), enforce_sorted=False),
            tuple(states) if self.n_cells == 2 else states[0],
        )
        return (last if self.n_cells == 2 else (last,)), list(unpack_sequence(out))

    def _send(self, cells: tuple[torch.Tensor, ...]) -> torch.Tensor | None:
        """Send each state; the delegate of the last one stands for all."""
        if self.rank_out is None:
            return None
        delegate = None
        for cell in cells:
            if delegate is not None:
                (cell,) = functions.pseudo_connect(delegate, cell)
            delegate = functions.send(cell, self.c, self.rank_out)
        return delegate

    def extra_repr(self) -> str:
        """The two ranks, in the text that `print(rnn)` shows."""
        return f"rank_in={self.rank_in}, rank_out={self.rank_out}"
