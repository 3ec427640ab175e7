"""The bytes that a block of code leaves behind."""

import torch
from torch.utils.checkpoint import checkpoint

from manyhands.ledger.kept_bytes import KeptBytes


def kept_by(function, *args):
    """The bytes that remain while the answer is alive, without the answer itself."""
    with KeptBytes() as counter:
        answer = function(*args)
    return counter.nbytes - answer.nbytes


def test_backward_keeps_what_it_needs():
    x, weight = torch.ones(8, 4, requires_grad=True), torch.ones(4, 4, requires_grad=True)

    def two_layers(x):
        return torch.tanh(torch.tanh(x @ weight) @ weight)

    # the first tanh; parameters, inputs and views of them do not count
    assert kept_by(two_layers, x) == x.nbytes
    assert kept_by(lambda x: checkpoint(two_layers, x, use_reentrant=False), x) == 0


def test_a_list_counts_and_what_is_freed_does_not():
    held = []

    def keep_one(x):
        held.append(x + 1)
        return (x + 2) * 3

    assert kept_by(keep_one, torch.ones(16)) == 64
    held.clear()
    with KeptBytes() as counter:
        held.append(torch.zeros(16))
        assert counter.nbytes == 64
        held.clear()
        assert counter.nbytes == 0


def test_memory_counts_once_for_all_its_tensors():
    x = torch.ones(16)
    with KeptBytes() as counter:
        y = x + 1
        views = [y[:8], y.view(4, 4)]
    assert counter.nbytes == 64 and len(views) == 2
