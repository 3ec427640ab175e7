"""The small GPT: stages, start, reading and writing.

Its stages are the whole, and its start depends on names alone.
"""

import pytest
import torch

from manyhands import gpt


def test_the_text_is_ascii_and_long_enough():
    text = gpt.text()
    assert text.isascii() and len(text) > 20_000 and max(text.encode()) < gpt.SYMBOLS


def test_a_batch_is_the_same_each_time_and_its_targets_are_one_place_on():
    x, y = gpt.batches(3)
    again, _ = gpt.batches(3)
    other, _ = gpt.batches(4)
    assert x.shape == y.shape == (gpt.ROWS, gpt.CONTEXT)
    assert torch.equal(x, again) and not torch.equal(x, other)
    assert torch.equal(x[:, 1:], y[:, :-1])
    assert bytes(x[0].tolist()).decode() in gpt.text()


def test_a_few_hundred_thousand_weights():
    assert 200_000 < sum(p.numel() for p in gpt.GPT().parameters()) < 400_000


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
def test_stages_one_after_the_other_are_the_network(stages):
    x, y = gpt.batches(0)
    whole = gpt.GPT()
    reference = whole(x)
    gpt.loss_of(reference, y).backward()
    parts, a = [gpt.GPT(stage, stages) for stage in range(stages)], x
    for part in parts:
        a = part(a)
    gpt.loss_of(a, y).backward()
    assert torch.equal(a, reference)
    gradients = {name: p.grad for part in parts for name, p in part.named_parameters()}
    assert gradients.keys() == dict(whole.named_parameters()).keys()
    assert all(
        torch.allclose(gradients[name], p.grad, rtol=0, atol=1e-15)
        for name, p in whole.named_parameters()
    )


def test_no_place_sees_a_later_one():
    x, _ = gpt.batches(0)
    changed = x.clone()
    changed[:, 40:] = 65
    model = gpt.GPT()
    a, b = model(x), model(changed)
    assert torch.allclose(a[:, :40], b[:, :40], rtol=0, atol=1e-14) and not torch.allclose(
        a[:, 40:], b[:, 40:]
    )


def test_it_learns_and_writes_the_same_twice():
    def trained():
        model = gpt.GPT(dtype=torch.float32)
        optimizer, losses = torch.optim.Adam(model.parameters(), 1e-3), []
        for step in range(30):
            x, y = gpt.batches(step)
            loss = gpt.loss_of(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses, gpt.write(model, "Each rank", 70)

    losses, written = trained()
    assert losses[0] > 4.5 and losses[-1] < losses[0] - 1
    # longer than the context, too
    assert written.startswith("Each rank") and len(written) == len("Each rank") + 70
    assert trained()[1] == written


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"heads": 5}, "64 does not divide into 5 heads"),
        ({"stages": 5}, "5 stages cannot be made of 4 blocks"),
        ({"stages": 0}, "0 stages"),
        ({"stage": 2, "stages": 2}, "stage 2 is not one of 0 to 1"),
    ],
)
def test_a_network_that_cannot_be_cut_says_so(wrong, words):
    with pytest.raises(ValueError, match=words):
        gpt.GPT(**wrong)


@pytest.mark.parametrize("prompt", ["", "caf\u00e9"])
def test_a_prompt_that_cannot_be_read(prompt):
    with pytest.raises(ValueError, match="ASCII only"):
        gpt.write(gpt.GPT(), prompt, 1)


def test_more_symbols_than_the_context():
    with pytest.raises(ValueError, match="65 symbols do not fit"):
        gpt.GPT()(torch.zeros(1, 65, dtype=torch.long))
