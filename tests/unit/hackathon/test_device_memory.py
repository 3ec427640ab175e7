"""The device of a challenge about memory.

It trains as one process does, and counts to the byte.
"""

from dataclasses import replace

import pytest
import torch

from manyhands.gpt.transformer import loss_of
from manyhands.hackathon.challenges import tasks
from manyhands.hackathon.challenges.challenge import DOES_NOT_FIT
from manyhands.hackathon.judge.memory_referee import MemoryReferee, stages_of
from manyhands.hackathon.judge.network import RefusedError

ROW = tasks.PLACES * DOES_NOT_FIT.layers[0] * 4  # bytes between two stages


@pytest.fixture(scope="module")
def referee():
    torch.set_num_threads(1)  # as in a judging; several would wait for each other on a busy machine
    return MemoryReferee(replace(DOES_NOT_FIT, memory_bytes=2**30), b"of a test")


@pytest.fixture
def device(referee):
    """A device with room for all, and nothing in it."""
    accelerator = referee.accelerators[0]
    for number in list(accelerator.held):
        accelerator.free(number)
    assert accelerator._bytes == 0 and not accelerator._storages
    accelerator.limit_bytes = 2**30
    return accelerator


def through(device, weights, slopes, batch, begin, end):
    """Forward and backward through all stages: the loss."""
    x, activations = None, []
    for stage in range(len(device.sizes)):
        x, loss, number = device.forward(stage, weights[stage], x, batch, begin, end, True)
        activations.append(number)
    above = None
    for stage in reversed(range(len(device.sizes))):
        above, rows = device.backward(activations[stage], above, slopes[stage])
        assert rows == end - begin
    return loss


def everything(device):
    weights = [device.weights(stage, 0, size) for stage, size in enumerate(device.sizes)]
    return weights, [device.zeros(size) for size in device.sizes]


def serial(device, batch):
    """(loss, gradient of each stage) of the same model in one process."""
    stages = stages_of(DOES_NOT_FIT)
    for stage, weights in zip(stages, device.start, strict=True):
        torch.nn.utils.vector_to_parameters(weights.clone(), stage.parameters())
    rows = device.symbols[batch * 16 : (batch + 1) * 16]
    x = rows[:, :-1]
    for stage in stages:
        x = stage(x)
    loss = loss_of(x, rows[:, 1:])
    loss.backward()
    return loss.item(), [
        torch.cat([parameter.grad.flatten() for parameter in stage.parameters()])
        for stage in stages
    ]


def test_stages_one_after_the_other_give_the_gradients_of_the_whole_model(device):
    weights, slopes = everything(device)
    loss = through(device, weights, slopes, 3, 0, 16)
    wanted_loss, wanted = serial(device, 3)
    assert loss == pytest.approx(wanted_loss, rel=1e-5)
    for number, gradient in zip(slopes, wanted, strict=True):
        torch.testing.assert_close(device.array(number), gradient, rtol=1e-3, atol=1e-6)


def test_parts_of_a_batch_add_up_to_the_batch(device):
    weights, slopes = everything(device)
    for begin in range(0, 16, 4):
        through(device, weights, slopes, 3, begin, begin + 4)
    for number, gradient in zip(slopes, serial(device, 3)[1], strict=True):
        device.scale(number, 0.25)
        torch.testing.assert_close(device.array(number), gradient, rtol=1e-3, atol=1e-6)


def test_adam_is_that_of_torch_in_parts_too(device):
    weights, _slopes = everything(device)
    model = torch.nn.Parameter(device.array(weights[1]).clone())
    optimizer = torch.optim.Adam([model], lr=0.01, betas=(0.9, 0.95))
    half = device.sizes[1] // 2
    first, second = ([device.zeros(half) for _ in range(2)] for _ in range(2))
    halves = [device.weights(1, begin, begin + half) for begin in (0, half)]
    for step in range(1, 4):
        gradient = torch.randn(len(model), generator=torch.Generator().manual_seed(step))
        model.grad = gradient
        optimizer.step()
        for number in range(2):
            part = device.new(gradient[number * half : (number + 1) * half].clone())
            device.adam(halves[number], part, first[number], second[number], step, 0.01)
            device.free(part)
    torch.testing.assert_close(torch.cat([device.array(part) for part in halves]), model.detach())


def test_arrays_count_as_long_as_somebody_holds_them(device):
    array, other = device.zeros(1000), device.zeros(10)
    assert device._bytes == 4040
    device.free(array)
    device.free(other)
    assert device._bytes == 0 and device.most_bytes >= 4040


def test_a_forward_keeps_its_weights_and_input_though_the_entry_frees_them(device):
    weights, x = device.weights(1, 0, device.sizes[1]), device.zeros(4 * ROW // 4)
    into = device.zeros(device.sizes[1])
    before = device._bytes
    out, _, activations = device.forward(1, weights, x, 0, 0, 4, True)
    with_activations = device._bytes
    assert with_activations > before + 10 * 4 * ROW
    for number in (weights, x, out):
        device.free(number)
    assert with_activations - device._bytes <= 4 * ROW  # what came out, if nothing needs it
    above = device.zeros(4 * ROW // 4)
    below, _ = device.backward(activations, above, into)
    assert device._bytes == 4 * device.sizes[1] + 2 * 4 * ROW
    device.free(below)


def test_without_keep_only_what_comes_out_is_held(device):
    weights, x = device.weights(1, 0, device.sizes[1]), device.zeros(4 * ROW // 4)
    before = device._bytes
    assert device.forward(1, weights, x, 0, 0, 4, False)[2] is None
    assert device._bytes == before + 4 * ROW


def test_more_than_there_is_ends_the_run_with_the_numbers(device):
    device.zeros(100)
    device.limit_bytes = 1000
    with pytest.raises(
        RefusedError,
        match=(
            "Rank 0 is out of memory: it holds 400 bytes .400 in arrays, the rest for backward., "
            "wants 800 more, and has 1000"
        ),
    ):
        device.zeros(200)
    device.zeros(150)


def test_weights_that_changed_before_the_backward_are_told(device):
    weights, slopes = everything(device)
    x = device.zeros(ROW // 4)
    activations = device.forward(1, weights[1], x, 0, 0, 1, True)[2]
    device.add(weights[1], slopes[1], 1.0)
    with pytest.raises(RefusedError, match="changed between forward and backward"):
        device.backward(activations, device.zeros(ROW // 4), slopes[1])


@pytest.mark.parametrize(
    "call, values",
    [
        ("weights", (4, 0, 1)),
        ("weights", (0, -1, 5)),
        ("weights", (0, 0, 10**9)),
        ("zeros", (-1,)),
        ("zeros", (2**60,)),
        ("zeros", ("1",)),
        ("free", (10**9,)),
        ("adam", (1, 2, 3, 4, 1, 0.1)),
        ("scale", (None, 1)),
        ("forward", (9, 1, None, 0, 0, 1, True)),
        ("forward", (0, 1, None, 10**6, 0, 1, True)),
        ("backward", (1, None, 1)),
    ],
)
def test_what_the_rank_side_never_asks_for_is_refused(device, call, values):
    with pytest.raises(
        (LookupError, TypeError, ValueError, ArithmeticError, RuntimeError, RefusedError)
    ):
        getattr(device, call)(*values)


def test_given_parts_must_be_all_and_agree(referee, device):
    referee.given = [torch.full_like(stage_weights, torch.nan) for stage_weights in device.start]
    weights, _ = everything(device)
    for stage in range(3):
        referee._give(0, stage, 0, device.array(weights[stage]))
    half = device.sizes[3] // 2
    referee._give(1, 3, half, device.array(weights[3])[half:])
    assert (
        f"Of stage 3, {half} of {device.sizes[3]} weights were not given"
        in referee.result().problem
    )
    with pytest.raises(RefusedError, match="gives different weights of stage 3"):
        referee._give(2, 3, 0, device.array(weights[3]) + 1)
    with pytest.raises(RefusedError, match="more weights than stage 3 has"):
        referee._give(2, 3, half, device.array(weights[3]))
    referee._give(2, 3, 0, device.array(weights[3]))
    assert referee.result().problem == "" and referee.result().accuracy < 0.3


def test_the_sequences_are_as_sure_as_they_say():
    chains = tasks.chains(b"1", 2000)
    before, after = (
        chains.train[:, : -tasks.BACK].flatten(),
        chains.train[:, tasks.BACK :].flatten(),
    )
    counts = torch.zeros(tasks.SYMBOLS, tasks.SYMBOLS).index_put_(
        (before, after), torch.ones(len(before)), accumulate=True
    )
    assert (counts.max(1).values.sum() / counts.sum()).item() == pytest.approx(
        0.85 + 0.15 / 16, abs=0.01
    )
    # a table of its own for each seed
    assert counts.max(1).indices.unique().numel() == tasks.SYMBOLS
    assert not torch.equal(
        counts.max(1).indices, tasks.chains(b"2", 10).train.new_tensor(range(16))
    )
