"""What unit 12's checks compare with, against PyTorch's own layers.

Each usual mistake has a different name.
"""

import random

import pytest

from manyhands.checks.encoder_decoder import diagnosis
from manyhands.checks.encoder_decoder.messages import CRITERIA, HINTS, MISTAKES

torch = pytest.importorskip("torch")
from manyhands.checks.encoder_decoder import model_ranks as model  # noqa: E402  (it imports torch)


def step(change=lambda h, cell: (h, cell)):
    parts = model.build(3, 5, 2)
    return model.serial_step(*parts, *model.batch(random.Random(1), 4), change)


def test_one_by_one_is_a_packed_run():
    from torch.nn.utils.rnn import pack_sequence, unpack_sequence

    torch.manual_seed(0)
    rnn, sequences = (
        torch.nn.LSTM(3, 4, 2, bidirectional=True).double(),
        [torch.randn(n, 3).double() for n in (2, 5, 3)],
    )
    state = tuple(torch.randn(4, 3, 4).double() for _ in range(2))
    outputs, after = model.one_by_one(rnn, sequences, state)
    packed, theirs = rnn(pack_sequence(sequences, enforce_sorted=False), state)
    for tensor, other in zip([*outputs, *after], [*unpack_sequence(packed), *theirs], strict=True):
        torch.testing.assert_close(tensor, other)


def test_the_decoders_loss_counts_every_place_once():
    encoder, decoder = model.build(0, 5, 1)
    sources, targets = model.batch(random.Random(0), 3)
    together = decoder(encoder(sources)[1], targets)
    alone = [
        decoder(encoder([source])[1], [target]) * len(target)
        for source, target in zip(sources, targets, strict=True)
    ]
    torch.testing.assert_close(together, sum(alone) / sum(map(len, targets)))
    torch.testing.assert_close(decoder(encoder(sources)[1], targets, 7), sum(alone) / 7)


def test_a_batch_is_ragged_and_reversed():
    sources, targets = model.batch(random.Random(5), 4)
    assert len({len(source) for source in sources}) > 1
    assert all(
        target.tolist() == [*source.tolist()[::-1], model.END]
        for source, target in zip(sources, targets, strict=True)
    )


@pytest.mark.parametrize("mistake", sorted(model.CHANGES))
def test_what_happens_to_the_state_is_seen_in_the_loss(mistake):
    right, wrong = (
        step()["loss"],
        {name: step(change)["loss"] for name, change in model.CHANGES.items()},
    )
    case = {
        "case": 0,
        "role": "decoder",
        "loss": wrong[mistake],
        "number": True,
        "right": {"loss": right},
        "other loss": wrong,
    }
    assert diagnosis.loss_problem(1, case)["mistake"] == MISTAKES[mistake]
    assert diagnosis.loss_problem(1, {**case, "loss": right}) is None
    assert (
        "loss.item()"
        in diagnosis.loss_problem(1, {**case, "loss": right, "number": False})["mistake"]
    )


@pytest.mark.parametrize("mistake", sorted(model.BACKWARDS))
def test_a_missing_part_of_the_gradient_is_named(mistake):
    other = {name: step(change)["encoder"] for name, change in model.BACKWARDS.items()}
    case = {
        "case": 0,
        "role": "encoder",
        "got": other[mistake],
        "right": {"gradients": step()["encoder"]},
        "other gradient": other,
    }
    assert diagnosis.gradient_problem(0, case, "encoder")["mistake"] == MISTAKES[mistake]
    assert diagnosis.gradient_problem(0, case, "decoder") is None


@pytest.mark.parametrize(
    "messages, sent, says",
    [
        (2, 640, None),
        (1, 640, None),
        (8, 640, "many messages"),
        (2, 320, "too few bytes"),
        (2, 900, "too many bytes"),
        (0, 0, "nothing sent"),
    ],
)
def test_what_crosses_is_judged_by_bytes_and_messages(messages, sent, says):
    problem = diagnosis.traffic_problem(0, {"sent": [messages, sent], "state_bytes": 640})
    assert (problem and problem["mistake"]) == (says and MISTAKES[says])


@pytest.mark.parametrize("loop, name", model.LOOPS.items())
def test_a_wrong_loop_is_named(loop, name):
    parts, draw = model.build(0, 4, 1), random.Random(2)
    batches = [model.batch(draw, 3) for _ in range(3)]
    right, wrong = (
        model.serial_training(*parts, batches, 0.02),
        model.serial_training(*parts, batches, 0.02, loop),
    )
    answer = {
        "role": "encoder",
        "got": wrong["encoder"],
        "right": {"weights": right["encoder"]},
        "before": model.weights(parts[0]),
        "variants": [[name, wrong["encoder"]]],
    }
    assert diagnosis.weights_problem(0, answer, "encoder")["mistake"] == MISTAKES[name].format(
        role="encoder", name=""
    )


def test_of_several_stopped_ranks_the_best_known_is_told():
    answers = [
        {
            "role": "encoder",
            "stopped": (
                "Rank 0 waited 8 s in send.backward from rank 1. The gradient comes when ...",
                1.0,
                True,
            ),
        },
        {
            "role": "decoder",
            "stopped": (
                "Rank 1 waited 8 s in recv. It has sent send, tag 0, which no rank has asked for.",
                2.0,
                True,
            ),
        },
    ]
    problem = diagnosis.stopped(answers)
    assert problem["rank"] == 1 and "same tags" in problem["mistake"]
    assert diagnosis.stopped([{"role": "encoder"}, {"role": "decoder"}]) is None


def test_every_check_has_a_hint_and_every_text_a_check():
    assert {name.split("-", 1)[1] for name in HINTS} == set(CRITERIA)
    assert all(MISTAKES.values()) and all(HINTS.values())
