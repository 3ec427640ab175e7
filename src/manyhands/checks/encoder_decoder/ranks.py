"""The half of unit 12's checks that runs on the ranks.

These are experiments with the learner's functions, reported as plain numbers. Each experiment runs
on all four ranks simultaneously, in separate communicators, so that a call that waits in vain ends
by their timeout, and its message is reported like a result. What the numbers mean is judged in
`manyhands.checks.encoder_decoder`.
"""

from __future__ import annotations

import random
import time
from contextlib import contextmanager
from numbers import Real
from typing import TYPE_CHECKING, cast

import torch

from manyhands.checks.by_hand import closed
from manyhands.checks.encoder_decoder import model_ranks as model
from manyhands.checks.encoder_decoder.model_ranks import gradients
from manyhands.checks.on_ranks import learners
from manyhands.checks.rank_tools import device, numbers, total
from manyhands.links import chain_list, n_step_rnn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from manyhands.checks.encoder_decoder.answers import (
        HybridCase,
        LossAnswer,
        RaggedCase,
        Role,
        SplitCase,
        SplitMistakes,
        Stoppable,
        TrainingCase,
    )
    from manyhands.comm.communicator import Communicator

# a few milliseconds are enough if nothing is wrong, but a busy machine may need more
TIMEOUT_S = 8.0


@contextmanager
def world() -> Iterator[Communicator]:
    """Make a communicator of all ranks that exists for one experiment."""
    from manyhands import comm

    with comm.create_communicator(timeout_s=TIMEOUT_S) as c:
        yield c


@contextmanager
def record_stop(result: Stoppable) -> Iterator[None]:
    """Keep an exception of the block in `result["stopped"]`, and go on.

    It becomes (its text, when, whether a communicator raised it). The other ranks must be able to
    end by their own timeouts. The kernel then shows what happened first.
    """
    from manyhands import comm

    try:
        yield
    except comm.CommunicationError as error:
        result["stopped"] = (str(error), time.monotonic(), True)
    except Exception as error:  # noqa: BLE001 - a learner's code may raise anything
        result["stopped"] = (f"{type(error).__name__}: {error}", time.monotonic(), False)


ROLES: tuple[Role, Role] = ("encoder", "decoder")
OURS = (
    chain_list.MultiNodeChainList.forward,
    n_step_rnn.create_multi_node_n_step_rnn,
    n_step_rnn.MultiNodeNStepRNN.forward,
    n_step_rnn.MultiNodeNStepRNN._run,
)  # the package's own layers over ranks


def _draw(seed: int, *more: object) -> random.Random:
    return random.Random(f"{seed} {more}")


# ------------------------------------------------------------------ 1: ragged sequences


def ragged(function_name: str, seed: int) -> list[RaggedCase]:
    """Run several batches through `run_ragged`, without communication.

    Each sequence also runs alone, for comparison.
    """
    function, draw = learners(function_name), _draw(seed, "ragged")
    cases: list[RaggedCase] = []
    for layers, bidirectional, begun, size in (
        (1, False, False, 5),
        (2, True, False, 4),
        (2, False, True, 5),
    ):
        inputs, hidden = draw.randint(3, 6), draw.randint(4, 8)
        torch.manual_seed(seed + layers)
        rnn = (
            torch.nn.LSTM(inputs, hidden, layers, bidirectional=bidirectional).double().to(device())
        )
        sequences = [
            torch.randn(len(source), inputs).double().to(device())
            for source in model.batch(draw, size)[0]
        ]
        state = (
            tuple(torch.randn(layers, size, hidden).double().to(device()) for _ in range(2))
            if begun
            else None
        )
        with torch.no_grad():
            right, after = model.one_by_one(rnn, sequences, state)
            with closed(*OURS):
                outputs, (h, cell) = function(
                    rnn,
                    [sequence.clone() for sequence in sequences],
                    state and tuple(part.clone() for part in state),
                )
            variants = _ragged_mistakes(rnn, sequences, state)
        cases.append(
            {
                "lengths": [len(sequence) for sequence in sequences],
                "begun": begun,
                "shape": list(after[0].shape),
                "outputs": [[list(output.shape), numbers(output)] for output in outputs],
                "right outputs": [[list(output.shape), numbers(output)] for output in right],
                "without start": [
                    numbers(output) for output in model.one_by_one(rnn, sequences)[0]
                ],
                "state": [[list(part.shape), numbers(part)] for part in (h, cell)],
                "right state": [[list(part.shape), numbers(part)] for part in after],
                "variants": {
                    name: [[list(part.shape), numbers(part)] for part in parts]
                    for name, parts in variants.items()
                },
            }
        )
    return cases


def _ragged_mistakes(
    rnn: torch.nn.LSTM, sequences: list[torch.Tensor], state: model.State | None
) -> dict[str, Sequence[torch.Tensor]]:
    """Return the state as usual mistakes leave it."""
    padded = torch.nn.utils.rnn.pad_sequence(sequences)
    _, after_padding = rnn(padded, state)
    order = sorted(range(len(sequences)), key=lambda i: -len(sequences[i]))
    _, right = model.one_by_one(rnn, sequences, state)
    return {
        "padded": after_padding,
        "sorted": [part[:, order] for part in right],
        "no start": model.one_by_one(rnn, sequences)[1],
        "swapped": right[::-1],
    }


# ------------------------------------------------------------------ 2: the loss of ragged targets


def loss(function_name: str, seed: int) -> LossAnswer:
    """Compute the loss of one ragged batch, with and without a divisor.

    Compute what usual mistakes give, too.
    """
    from torch.nn.functional import cross_entropy

    function, draw = learners(function_name), _draw(seed, "loss")
    torch.manual_seed(seed)
    _, targets = model.batch(draw, 5)
    scores = [
        torch.randn(len(target), 11, device=device()).double().requires_grad_()
        for target in targets
    ]
    losses = (
        cross_entropy(score, target, reduction="sum")
        for score, target in zip(scores, targets, strict=True)
    )
    summed = total(losses).item()
    tokens, longest, divisor = sum(map(len, targets)), max(map(len, targets)), draw.randint(50, 90)
    means = [
        cross_entropy(score, target).item() for score, target in zip(scores, targets, strict=True)
    ]
    padding = (
        sum(longest - len(target) for target in targets)
        * cross_entropy(scores[0].new_zeros(1, 11), targets[0][:1]).item()
    )
    got = function(list(scores), list(targets))
    got.backward()
    divided = function(list(scores), list(targets), divisor)
    return {
        "tokens": tokens,
        "divisor": divisor,
        "right": summed / tokens,
        "right divided": summed / divisor,
        "got": got.item(),
        "divided": divided.item(),
        "gradient": [[] if score.grad is None else numbers(score.grad)[:3] for score in scores],
        "variants": {
            "mean of means": sum(means) / len(means),
            "padding": (summed + padding) / (longest * len(targets)),
            "padding zero": summed / (longest * len(targets)),
            "sequences": summed / len(targets),
            "sum": summed,
        },
    }


# ------------------------------------------------------------------ 3: one step, split


def split(encoder_step_name: str, decoder_step_name: str, case: int, seed: int) -> SplitCase:
    """Run one step in pairs of ranks.

    The encoder is first in case 0. In case 1 it is second and bidirectional, and the divisor is
    given.
    """
    from manyhands.ledger import Ledger

    encoder_step, decoder_step = learners(encoder_step_name), learners(decoder_step_name)
    with world() as everyone:
        pair = (
            everyone.split(everyone.rank // 2, everyone.rank)
            if case == 0
            else everyone.split(everyone.rank % 2, -everyone.rank)
        )
        encoder_rank, layers, draw = (
            case,
            2,
            _draw(seed, "split", case, everyone.rank // 2 if case == 0 else everyone.rank % 2),
        )
        sources, targets = model.batch(draw, draw.randint(3, 5))
        encoder, decoder = parts = model.build(
            seed + case, draw.randint(4, 8), layers, bidirectional=case == 1
        )
        role: Role = "encoder" if pair.rank == encoder_rank else "decoder"
        divisor = sum(map(len, targets)) + draw.randint(3, 9) if case else None
        right = model.serial_step(*parts, sources, targets, divisor=divisor)
        result: SplitCase = {
            "case": case,
            "role": role,
            "right": {"loss": right["loss"], "gradients": right[role]},
            **_split_mistakes(parts, sources, targets, divisor),
        }
        # in case 1 there are gradients already
        module, before = encoder if role == "encoder" else decoder, 0.5 * case
        for parameter in module.parameters() if before else ():
            parameter.grad = torch.full_like(parameter, before)
        with record_stop(result), closed(*OURS), Ledger() as ledger:
            if role == "encoder":
                encoder_step(encoder, list(sources), pair, 1 - encoder_rank)
            else:
                loss = decoder_step(
                    decoder, list(targets), pair, encoder_rank, *([divisor] if case else [])
                )
                result["number"] = isinstance(loss, Real)
                result["loss"] = float(loss.detach() if hasattr(loss, "detach") else loss)
                del loss  # this deletes a graph that backward has not gone through
                _until_gone(everyone)
        added = {
            name: values and [value - before for value in values]
            for name, values in gradients(module).items()
        }
        result.update(
            {
                "got": added,
                "before": before,
                "sent": [ledger.messages_sent, ledger.bytes_sent],
                "state_bytes": 2 * 8 * layers * len(sources) * decoder.rnn.hidden_size,
            }
        )
    return result


def _until_gone(c: Communicator, limit_s: float = 2.0) -> None:
    """Wait until nothing that was received is part of a graph here.

    The cluster's watch may hold the step's frame for a moment longer. When the graph is deleted,
    the other rank learns that no gradient will arrive. If this rank left the world before, it would
    only be missed.
    """
    until = time.monotonic() + limit_s
    while c._exchange.control.receipts and time.monotonic() < until:
        time.sleep(1e-3)


def _split_mistakes(
    parts: tuple[model.Encoder, model.Decoder],
    sources: Sequence[torch.Tensor],
    targets: Sequence[torch.Tensor],
    divisor: int | None,
) -> SplitMistakes:
    """Return the loss and the encoder's gradients that usual mistakes give."""
    losses = {
        name: model.serial_step(*parts, sources, targets, change, divisor)["loss"]
        for name, change in model.CHANGES.items()
    }
    if divisor:
        losses["divisor forgotten"] = model.serial_step(*parts, sources, targets)["loss"]
    return {
        "other loss": losses,
        "other gradient": {
            name: model.serial_step(*parts, sources, targets, change, divisor)["encoder"]
            for name, change in model.BACKWARDS.items()
        },
    }


# ------------------------------------------------------------------ 4: training


def training(train_name: str, seed: int) -> TrainingCase:
    """Train for four steps with Adam in pairs of ranks, and in a single process for comparison."""
    train = learners(train_name)
    with world() as everyone:
        pair = everyone.split(everyone.rank % 2, everyone.rank)
        draw = _draw(seed, "training", everyone.rank % 2)
        batches, lr = (
            [model.batch(draw, draw.randint(2, 5)) for _ in range(4)],
            draw.choice([0.01, 0.02, 0.03]),
        )
        parts = model.build(seed, draw.randint(4, 7), 1)
        role = ROLES[pair.rank]
        right = model.serial_training(*parts, batches, lr)
        result: TrainingCase = {
            "role": role,
            "before": model.weights(parts[pair.rank]),
            "right": {"losses": right["losses"], "weights": right[role]},
            "variants": [
                [name, model.serial_training(*parts, batches, lr, loop)[role]]
                for loop, name in model.LOOPS.items()
            ],
        }
        with record_stop(result), closed(*OURS):
            result["losses"] = [
                float(loss) for loss in train(parts[pair.rank], pair, batches, lr) or ()
            ]
        result["got"] = model.weights(parts[pair.rank])
    return result


# ------------------------------------------------------------------ 5: hybrid

SHARES = (5, 3)  # sequences of the two pairs


def hybrid(step_name: str, case: int, seed: int) -> HybridCase:
    """Run one step of two pairs with different numbers of tokens, in two layouts.

    In case 2, each pair runs alone.
    """
    step = learners(step_name)
    with world() as everyone:
        number, other = (
            (everyone.rank % 2, everyone.rank // 2)
            if case == 1
            else (everyone.rank // 2, everyone.rank % 2)
        )
        pair = everyone.split(number, everyone.rank)
        copies = everyone.split(everyone.rank if case == 2 else other, everyone.rank)
        draw = _draw(seed, "hybrid", case)
        shares = [model.batch(draw, size) for size in SHARES]
        parts, mine = model.build(seed + case, draw.randint(4, 7), 1), shares[number]
        shares = [mine] if case == 2 else shares
        role = ROLES[pair.rank]
        alone = [model.serial_step(*parts, *share)[role] for share in shares]
        together = [sum((share[i] for share in shares), []) for i in (0, 1)]
        result: HybridCase = {
            "case": case,
            "role": role,
            "pairs": copies.size,
            "right": {"gradients": model.serial_step(*parts, together[0], together[1])[role]},
            "alone": alone[number if case < 2 else 0],
            "mean of pairs": {
                name: [
                    sum(x) / len(alone)
                    for x in zip(
                        *(cast("list[float]", of_share[name]) for of_share in alone), strict=True
                    )
                ]
                for name in alone[0]
            },
        }
        with record_stop(result), closed(*OURS):
            step(parts[pair.rank], pair, copies, list(mine[0]), list(mine[1]))
        result["got"] = gradients(parts[pair.rank])
    return result
