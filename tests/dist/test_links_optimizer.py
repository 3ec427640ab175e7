"""The multi-node optimizer against one process on all ranks' examples.

The evaluator is compared with a mean.
"""

import copy

import pytest
import torch
from torch import nn

from manyhands import links

MAKE = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.01),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=0.05),
}


class Model(nn.Module):
    """Two branches, of which a rank may use one; a tied weight, a frozen one, and two dtypes."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 4), nn.Linear(4, 4)
        self.tied, self.other, self.single = (
            nn.Linear(4, 4),
            nn.Linear(4, 4),
            nn.Parameter(torch.randn(4)),
        )
        self.double()
        self.single.data = self.single.data.float()
        self.tied.weight = self.second.weight
        self.second.bias.requires_grad_(False)

    def forward(self, x, branch=True):
        h = torch.tanh(self.first(x))
        h = torch.tanh(self.second(h) * self.single if branch else self.other(h))
        return self.tied(h).square().mean(1)


def batches(n, steps):
    draw = torch.Generator().manual_seed(1)
    return [
        [torch.randn(4, 3, generator=draw, dtype=torch.float64) for _ in range(n)]
        for _ in range(steps)
    ]


def train(c, make, steps, double_buffering, branches):
    """Each rank its own examples, from its own weights.

    Returns rank 0's first weights, and the weights after each step.
    """
    model = Model()
    begun = copy.deepcopy(model.state_dict())
    optimizer = links.create_multi_node_optimizer(
        MAKE[make](model.parameters()), c, double_buffering=double_buffering
    )
    after = []
    for step in range(len(steps)):
        optimizer.zero_grad()
        model(steps[step][c.rank], branches[c.rank]).mean().backward()
        optimizer.step()
        after.append(copy.deepcopy(model.state_dict()))
    if double_buffering:
        optimizer.wait()
    return begun, after


def train_alone(make, begun, steps, stale, branches):
    """Train in one process, where the first step changes nothing.

    With `stale`, the second step changes nothing either, and the last one's gradient is not used.
    """
    model = Model()
    model.load_state_dict(begun)
    optimizer, after, waiting = MAKE[make](model.parameters()), [copy.deepcopy(begun)], None
    for xs in steps[1:]:
        optimizer.zero_grad()
        sum(model(x, branch).mean() for x, branch in zip(xs, branches, strict=True)).div(
            len(xs)
        ).backward()
        gradients = [
            p.grad if p.grad is not None else torch.zeros_like(p) for p in model.parameters()
        ]
        apply, waiting = (waiting, gradients) if stale else (gradients, None)
        if apply is not None:
            for p, g in zip(model.parameters(), apply, strict=True):
                p.grad = g if p.requires_grad else None
            optimizer.step()
        after.append(copy.deepcopy(model.state_dict()))
    return after


@pytest.mark.parametrize("double_buffering", [False, True])
@pytest.mark.parametrize("make", MAKE)
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_steps_are_those_of_one_process(pool, n, make, double_buffering):
    steps, branches = batches(n, 6), [rank % 2 == 0 for rank in range(n)]
    results = pool.values(train, n, make, steps, double_buffering, branches)
    expected = train_alone(make, results[0][0], steps, double_buffering, branches)
    for _, after in results:
        assert len(after) == len(expected)
        for weights, other in zip(after, expected, strict=True):
            torch.testing.assert_close(weights, other)
        for name, weight in after[-1].items():
            # to the last bit the same on all ranks
            assert torch.equal(weight, results[0][1][-1][name]), name
    assert not torch.equal(expected[-1]["first.weight"], expected[0]["first.weight"])


def as_in_chainermn(c):
    """update(), a scheduler, a group of parameters added later, state_dict, and the closure."""
    model, extra = nn.Linear(2, 1), nn.Parameter(torch.full((2,), float(c.rank)))
    optimizer = links.create_multi_node_optimizer(torch.optim.SGD(model.parameters(), lr=0.5), c)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.1)
    x, values = torch.tensor([[1.0, float(c.rank)]]), []
    for _ in range(2):
        optimizer.update(lambda x: model(x).sum(), x)
        scheduler.step()
    values.append([p.grad.tolist() for p in model.parameters()])
    values.append((optimizer.param_groups[0]["lr"], scheduler.get_last_lr()))
    optimizer.add_param_group({"params": [extra]})
    before = model.weight.detach().clone()
    optimizer.step()
    values.append((extra.tolist(), torch.equal(before, model.weight)))
    values.append(optimizer.step(closure=lambda: model(x).sum() * 0 + 7).item())
    again = links.create_multi_node_optimizer(
        torch.optim.SGD([*model.parameters(), extra], lr=3.0), c
    )
    state = optimizer.state_dict()
    state["param_groups"] = [state["param_groups"][0] | {"params": [0, 1, 2]}]
    again.load_state_dict(state)
    values.append(again.param_groups[0]["lr"])
    assert isinstance(again, torch.optim.Optimizer) and "MultiNodeOptimizer" in repr(again)
    return values


def test_what_programs_do_with_an_optimizer(pool):
    for values in pool.values(as_in_chainermn, 3):
        assert values[0] == [[[1.0, 1.0]], [1.0]]  # the mean of (1, 0), (1, 1), (1, 2)
        assert values[1][0] == pytest.approx(0.05) and values[1][1] == pytest.approx([0.05])
        assert (
            values[2] == ([0.0, 0.0], True) and values[3] == 7 and values[4] == pytest.approx(0.05)
        )


def sparse(c):
    table = nn.Embedding(5, 2, sparse=True)
    nn.init.zeros_(table.weight)
    optimizer = links.create_multi_node_optimizer(torch.optim.SGD(table.parameters(), lr=1.0), c)
    optimizer.step()
    for _ in range(2):
        optimizer.zero_grad()
        table(torch.tensor([c.rank, 4])).sum().backward()
        optimizer.step()
    return table.weight.tolist()


def test_sparse_gradients(pool):
    assert (
        pool.values(sparse, 2)
        == [[[-1.0, -1.0], [-1.0, -1.0], [0.0, 0.0], [0.0, 0.0], [-2.0, -2.0]]] * 2
    )


def other_models(c):
    model = nn.Linear(2 + c.rank, 1)
    optimizer = links.create_multi_node_optimizer(torch.optim.SGD(model.parameters(), lr=1.0), c)
    optimizer.step()


def test_ranks_with_other_models_are_told(pool):
    assert "CommunicationError" in [
        outcome.error.type for outcome in pool.run(other_models, 2, timeout_s=1) if outcome.error
    ]


def one_step_fewer(c, double_buffering):
    model = nn.Linear(2, 1)
    optimizer = links.create_multi_node_optimizer(
        torch.optim.SGD(model.parameters(), lr=1.0), c, double_buffering=double_buffering
    )
    for _ in range(3 - c.rank):
        optimizer.update(lambda: model(torch.ones(2)).sum())
    if double_buffering:
        optimizer.wait()


@pytest.mark.parametrize("double_buffering", [False, True])
def test_a_rank_that_makes_fewer_steps_is_told(pool, double_buffering):
    error = pool.run(one_step_fewer, 2, double_buffering, timeout_s=1)[0].error
    assert error.type == "CommunicationError" and "allreduce" in error.text


def test_not_an_optimizer():
    with pytest.raises(ValueError, match="Make one first"):
        links.create_multi_node_optimizer(nn.Linear(1, 1), None)


@pytest.mark.parametrize("kind", [torch.optim.LBFGS, torch.optim.SparseAdam])
def test_an_optimizer_that_cannot_be_wrapped(kind):
    with pytest.raises(ValueError, match=f"cannot wrap {kind.__name__}"):
        links.create_multi_node_optimizer(kind(nn.Linear(1, 1).parameters()), None)


# --- the evaluator


class Evaluator:
    def __init__(self, value):
        self.value = value

    def evaluate(self, factor=1):
        return {"b": self.value * factor, "a": torch.tensor([1.0, self.value])}


def evaluates(c):
    patched = links.create_multi_node_evaluator(Evaluator(c.rank), c)
    assert isinstance(patched, Evaluator)
    function = links.create_multi_node_evaluator(lambda x, y=0: {"sum": x + y + c.rank}, c)
    return patched.evaluate(), patched.evaluate(factor=2)["b"], function(10, y=5)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_figures_are_the_mean_over_ranks(pool, n):
    mean = (n - 1) / 2
    for figures, doubled, of_function in pool.values(evaluates, n):
        assert (
            list(figures) == ["a", "b"]
            and figures["b"] == mean
            and figures["a"].tolist() == [1.0, mean]
        )
        assert doubled == 2 * mean and of_function == {"sum": 15 + mean}


def other_names(c):
    links.create_multi_node_evaluator(
        lambda: {"loss": 1.0, **({"accuracy": 1.0} if c.rank else {})}, c
    )()


def no_dictionary(c):
    links.create_multi_node_evaluator(lambda: {"loss": 1.0} if c.rank else 0.5, c)()


def test_ranks_that_measure_other_things_are_told(pool):
    for outcome in pool.run(other_names, 2):
        assert (
            outcome.error.type == "CommunicationError"
            and "return the same names" in outcome.error.text
            and "accuracy" in outcome.error.text
        )
    first, second = (outcome.error for outcome in pool.run(no_dictionary, 2))
    assert first.type == "ValueError" and "Let it return a dictionary" in first.text
    assert second.type == "CommunicationError" and "rank 0 returned no dictionary" in second.text


def test_nothing_to_evaluate():
    with pytest.raises(ValueError, match="takes a function or an object"):
        links.create_multi_node_evaluator(3, None)
