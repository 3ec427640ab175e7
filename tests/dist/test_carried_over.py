"""ChainerMN programs, carried over: what had to be changed, and what they compute.

They are compared with one process, under torchrun and mpirun.
"""

import importlib.util
import json
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from ranks import script
from torch import nn

from manyhands.cluster.launch.command_lines import mpiexec

PROGRAMS = Path(__file__).parents[1] / "carried_over"


def module(path):
    spec = importlib.util.spec_from_file_location(f"carried_over_{path.stem}", path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


changes, start = module(PROGRAMS / "changes.py"), module(PROGRAMS / "start.py")
numbers = start.numbers


@pytest.mark.parametrize("name", changes.PROGRAMS)
def test_only_imports_layers_and_listed_names_change(name):
    original, ours = (
        (folder / f"{name}.py").read_text() for folder in (PROGRAMS / "originals", PROGRAMS)
    )
    assert changes.carry_over(original) == ours, (
        f"python {PROGRAMS.name}/changes.py writes {name}.py anew"
    )
    assert not any(name in ours for name in ("chainermn", "chainer.", "L."))


def test_the_document_shows_the_programs():
    doc = changes.DOC.read_text()
    assert changes.documented(doc) == doc, "python tests/carried_over/changes.py writes them anew"
    assert [f"<!-- program: {name} -->" in doc for name in changes.PROGRAMS] == [True] * len(
        changes.PROGRAMS
    )


# --- what each program computes, in one process: for each rank what it reports


def filled(layer, name):
    with torch.no_grad():
        for own_name, parameter in layer.named_parameters():
            parameter.copy_(numbers(f"{name}.{own_name}", *parameter.shape))
    return layer


def linear(name, n_in, n_out):
    return filled(nn.Linear(n_in, n_out), name)


def figure3():
    f, g, h = linear("f", 3, 5), linear("g", 5, 4), linear("h", 4, 2)
    loss = F.cross_entropy(
        h(torch.tanh(g(torch.tanh(f(numbers("x", 6, 3)))))), numbers("t", 6).argsort() % 2
    )
    loss.backward()
    return [{"loss": loss, "f": f.weight.grad, "h": h.bias.grad}, {"g": g.weight.grad}]


def figure5():
    f1, f2, g1, g2, x = (
        linear("f1", 3, 5),
        linear("f2", 3, 4),
        linear("g1", 5, 2),
        linear("g2", 4, 2),
        numbers("x", 6, 3),
    )
    loss = F.cross_entropy(
        g1(torch.tanh(f1(x))) * g2(torch.tanh(f2(x))), numbers("t", 6).argsort() % 2
    )
    loss.backward()
    return [
        {"f1": f1.weight.grad, "f2": f2.weight.grad},
        {"loss": loss, "g1": g1.weight.grad, "g2": g2.bias.grad},
    ]


def figure6():
    f, g, h, t = (
        linear("f", 3, 5),
        linear("g", 5, 2),
        linear("h", 5, 2),
        numbers("t", 6).argsort() % 2,
    )
    z = torch.tanh(f(numbers("x", 6, 3)))
    losses = [F.cross_entropy(layer(z), t) for layer in (h, g)]
    sum(losses).backward()
    return [
        {"loss": losses[0], "f": f.weight.grad, "h": h.bias.grad},
        {"loss": losses[1], "g": g.weight.grad},
    ]


def train(parameters, loss_of, steps):
    optimizer, losses = torch.optim.SGD(parameters, lr=0.5), []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]
    return losses


def mlp():
    layers = linear("0.linear", 5, 8), linear("0.linear", 8, 7), linear("0", 7, 3)
    model = nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2])
    x, t = numbers("x", 12, 5), numbers("t", 12).argsort() % 3
    losses = train(model.parameters(), lambda: F.cross_entropy(model(x), t), 10)
    return [{"losses": []}, {"losses": []}, {"losses": losses}]


def encoder_decoder():
    model = nn.ModuleList(
        [filled(nn.Embedding(6, 12), "embed") for _ in range(2)]
        + [filled(nn.LSTM(12, 12, 2), "rnn.actual_rnn") for _ in range(2)]
        + [linear("out", 12, 6)]
    )
    read, say, encode, decode, out = model
    sentences = [numbers(f"sentence {i}", 2 + i % 3).argsort() + 1 for i in range(8)]
    end = torch.zeros(1, dtype=torch.long)

    def loss_of():
        total = 0
        for x in sentences:
            y = torch.cat([end, x.flip(0), end])
            _, states = encode(read(x))
            total = total + F.cross_entropy(out(decode(say(y[:-1]), states)[0]), y[1:])
        return total / len(sentences)

    losses = train(model.parameters(), loss_of, 12)
    return [{"losses": [0.0] * 12}, {"losses": losses}]


def parallel_convolution():
    """Grouped: rank r's filters see channels r, r + 2, ... only.

    Two equal losses: twice the gradient of one.
    """
    firsts, seconds = (
        [filled(nn.Conv2d(n_in, n_out, 3, padding=1), f"{name}.conv") for _ in range(2)]
        for name, n_in, n_out in (("conv1", 2, 3), ("conv2", 3, 1))
    )
    x = numbers("x", 2, 4, 5, 5)
    h = F.relu(torch.cat([conv(x[:, rank::2]) for rank, conv in enumerate(firsts)], 1))
    loss = torch.cat([conv(h[:, rank::2]) for rank, conv in enumerate(seconds)], 1).square().mean()
    (2 * loss).backward()
    return [
        {"loss": loss, "conv1": first.weight.grad, "conv2": second.bias.grad}
        for first, second in zip(firsts, seconds, strict=True)
    ]


def dense_convolution():
    first, second = (
        filled(nn.Conv2d(4, 6, 3, padding=1), "conv1"),
        filled(nn.Conv2d(6, 2, 3, padding=1), "conv2"),
    )
    loss = second(F.relu(first(numbers("x", 2, 4, 5, 5)))).square().mean()
    loss.backward()
    return [
        {
            "loss": loss,
            "conv1": first.weight.grad[3 * rank : 3 * rank + 3],
            "conv2": second.weight.grad[:, 3 * rank : 3 * rank + 3],
        }
        for rank in range(2)
    ]


ALONE = [figure3, figure5, figure6, mlp, encoder_decoder, parallel_convolution, dense_convolution]
LAUNCHERS = {
    "torchrun": lambda n, python: [
        python,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        str(n),
    ],
    "mpirun": lambda n, python: [mpiexec(), "-launcher", "fork", "-n", str(n), python],
}


@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize("alone", ALONE, ids=lambda alone: alone.__name__)
def test_they_compute_what_one_process_computes(alone, launcher, warm):
    expected = alone()
    status, out, err = script(
        [*LAUNCHERS[launcher](len(expected), warm), str(PROGRAMS / f"{alone.__name__}.py")],
        limit_s=180,
        env={"OMP_NUM_THREADS": "1"},
    )
    assert status == 0, err[-3000:]
    results = json.loads(out)
    assert [list(weights) for weights in results] == [list(weights) for weights in expected]
    for weights, other in zip(results, expected, strict=True):
        for name, value in other.items():
            torch.testing.assert_close(
                torch.tensor(weights[name]),
                torch.as_tensor(value).detach(),
                msg=lambda text, name=name: f"{name}: {text}",
            )
    if alone not in (mlp, encoder_decoder):
        assert any(
            torch.as_tensor(value).abs().max() > 1e-4
            for weights in expected
            for value in weights.values()
        )


def test_the_originals_are_chainermn_programs():
    """They were run with the real ChainerMN when they were written.

    Here they only have to be Python, and their names to be ChainerMN's.
    """
    for name in changes.PROGRAMS:
        text = (PROGRAMS / "originals" / f"{name}.py").read_text()
        compile(text, name, "exec")
        assert "import chainermn\n" in text and "manyhands" not in text and "torch" not in text
