"""What unit 12's checks compare with, on the ranks.

It is an encoder and a decoder in a single process, right and with usual mistakes. The classes have
the same interface as the lab's classes, and they contain nothing that the learner wrote.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from manyhands.checks.rank_tools import device, numbers

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from manyhands.checks.encoder_decoder.answers import Named, SerialStep, SerialTraining

    State = tuple[torch.Tensor, ...]  # (h, cell)
    Change = Callable[[torch.Tensor, torch.Tensor], State]
    M = TypeVar("M", bound=nn.Module)

END = 10  # the token before the first digit of an answer and after the last one


def one_by_one(
    rnn: nn.LSTM, sequences: Sequence[torch.Tensor], state: State | None = None
) -> tuple[list[torch.Tensor], State]:
    """Run each sequence alone, without any padding.

    Return the list of outputs and the state `(h, cell)` of all.
    """
    outputs, states = [], []
    for i, sequence in enumerate(sequences):
        own = None if state is None else tuple(part[:, i : i + 1].contiguous() for part in state)
        output, after = rnn(sequence[:, None], own)
        outputs.append(output[:, 0])
        states.append(after)
    return outputs, tuple(torch.cat(parts, dim=1) for parts in zip(*states, strict=True))


class Encoder(nn.Module):
    """An embedding and an LSTM that read the sources, one after the other."""

    def __init__(self, hidden: int, layers: int, bidirectional: bool) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 6)
        self.rnn = nn.LSTM(6, hidden, layers, bidirectional=bidirectional)

    def forward(self, sources: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor], State]:
        """Return the outputs and the state of each source."""
        return one_by_one(self.rnn, [self.embed(source) for source in sources])


class Decoder(nn.Module):
    """An embedding, an LSTM and a head that write the targets from the encoder's state."""

    def __init__(self, hidden: int, layers: int) -> None:
        super().__init__()
        self.embed, self.rnn, self.head = (
            nn.Embedding(11, 6),
            nn.LSTM(6, hidden, layers),
            nn.Linear(hidden, 11),
        )

    def forward(
        self, state: State, targets: Sequence[torch.Tensor], divisor: int | None = None
    ) -> torch.Tensor:
        """Return the loss of the targets, divided by `divisor` or by the number of tokens."""
        begun = [torch.cat([target.new_tensor([END]), target[:-1]]) for target in targets]
        outputs, _ = one_by_one(self.rnn, [self.embed(tokens) for tokens in begun], state)
        total = cross_entropy(
            self.head(torch.cat(outputs)), torch.cat(list(targets)), reduction="sum"
        )
        return total / (sum(map(len, targets)) if divisor is None else divisor)


def build(
    seed: int, hidden: int, layers: int, bidirectional: bool = False
) -> tuple[Encoder, Decoder]:
    """Return an encoder and a decoder whose states fit.

    A bidirectional encoder has two states for each layer.
    """
    torch.manual_seed(seed)
    encoder = Encoder(hidden, layers // 2 if bidirectional else layers, bidirectional)
    return encoder.double().to(device()), Decoder(hidden, layers).double().to(device())


def batch(draw: random.Random, size: int) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Return `size` strings of 2 to 7 digits, not all of the same length, and their reversals.

    `draw` is a `random.Random`.
    """
    lengths = [2, 7, *(draw.randint(2, 7) for _ in range(size - 2))][:size]
    draw.shuffle(lengths)
    sources = [
        torch.tensor([draw.randrange(10) for _ in range(length)], device=device())
        for length in lengths
    ]
    return sources, [torch.cat([source.flip(0), source.new_tensor([END])]) for source in sources]


def gradients(module: nn.Module) -> Named:
    """Return {parameter: its gradient's numbers, or None if it has no gradient}."""
    return {
        name: None if p.grad is None else numbers(p.grad) for name, p in module.named_parameters()
    }


def weights(module: nn.Module) -> Named:
    """Return {parameter: its numbers}."""
    return {name: numbers(p) for name, p in module.named_parameters()}


def _copy(module: M) -> M:
    """Return a copy whose recurrent weights are one piece of memory again.

    Otherwise cuDNN warns in each call on a GPU.
    """
    module = copy.deepcopy(module)
    for part in module.modules():
        if isinstance(part, torch.nn.RNNBase):
            part.flatten_parameters()
    return module


def serial_step(
    encoder: Encoder,
    decoder: Decoder,
    sources: Sequence[torch.Tensor],
    targets: Sequence[torch.Tensor],
    change: Change = lambda h, cell: (h, cell),
    divisor: int | None = None,
) -> SerialStep:
    """Return loss and gradients of a single process, with the state changed on its way.

    The modules are copied and remain as they are.
    """
    encoder, decoder = _copy(encoder), _copy(decoder)
    _, (h, cell) = encoder(sources)
    loss = decoder(change(h, cell), targets, divisor)
    loss.backward()
    return {"loss": loss.item(), "encoder": gradients(encoder), "decoder": gradients(decoder)}


# how mistakes change the state on its way from the encoder to the decoder
CHANGES: dict[str, Change] = {
    "only h": lambda h, cell: (h, torch.zeros_like(cell)),
    "only c": lambda h, cell: (torch.zeros_like(h), cell),
    "h twice": lambda h, cell: (h, h),
    "swapped": lambda h, cell: (cell, h),
    "last layer": lambda h, cell: (
        h[-1:].expand_as(h).contiguous(),
        cell[-1:].expand_as(cell).contiguous(),
    ),
    "last layer, zeros": lambda h, cell: (_only_last(h), _only_last(cell)),
}
# how mistakes change the encoder's gradient
BACKWARDS: dict[str, Change] = {
    "c missing": lambda h, cell: (h, cell.detach()),
    "h missing": lambda h, cell: (h.detach(), cell),
}


def _only_last(part: torch.Tensor) -> torch.Tensor:
    return torch.cat([torch.zeros_like(part[:-1]), part[-1:]])


# mistakes in the training loop, and their names in `words`
LOOPS = {
    "stale": "stale",
    "both accumulated": "accumulated",
    "encoder accumulated": "accumulated",
    "decoder accumulated": "accumulated",
}


def serial_training(
    encoder: Encoder,
    decoder: Decoder,
    batches: Sequence[tuple[list[torch.Tensor], list[torch.Tensor]]],
    lr: float,
    mistake: str | None = None,
) -> SerialTraining:
    """Return weights and losses after training in a single process.

    The training is right or has a mistake, which is a key of LOOPS.
    """
    encoder, decoder = _copy(encoder), _copy(decoder)
    optimiser = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr)
    losses = []
    for sources, targets in batches:
        if mistake == "stale":
            optimiser.step()
        for module, mistakes in (
            (encoder, ("both accumulated", "encoder accumulated")),
            (decoder, ("both accumulated", "decoder accumulated")),
        ):
            if mistake not in mistakes:
                module.zero_grad()
        loss = decoder(encoder(sources)[1], targets)
        loss.backward()
        if mistake != "stale":
            optimiser.step()
        losses.append(loss.item())
    return {"losses": losses, "encoder": weights(encoder), "decoder": weights(decoder)}
