"""Run a recorded case of the real ChainerMN (tests/oracle) on our functions and links.

This is the side of the ranks.
"""

import json

import torch
import torch.nn.functional as F

from manyhands import functions, links
from oracle import programs

RNNS = {"LSTM": torch.nn.LSTM, "GRU": torch.nn.GRU, "RNN": torch.nn.RNN}


class Component(torch.nn.Module):
    """y = act(x W^T + b), where several inputs are summed first."""

    def __init__(self, W, b, act):
        super().__init__()
        self.W, self.b, self.act = W, b, act

    def forward(self, *xs):
        y = F.linear(sum(xs[1:], xs[0]), self.W, self.b)
        return y if self.act is None else getattr(torch, self.act)(y)


class Ours:
    """The `m` of tests/oracle/programs.py on our package."""

    tanh, sin, sigmoid, relu, linear = torch.tanh, torch.sin, torch.sigmoid, torch.relu, F.linear
    concat, pseudo_connect = torch.cat, staticmethod(functions.pseudo_connect)

    def __init__(self, c, meta, variables):
        self.c, self.rank, self.size, self.meta, self.v = c, c.rank, c.size, meta, variables
        self.extra, self.copies = {}, []  # what else is compared; (leaves, parameter)

    def send(self, x, rank, tag=0):
        return functions.send(x, self.c, rank, tag)

    def recv(self, rank, phi=None, tag=0, force_tuple=False):
        return functions.recv(self.c, rank, phi, tag, force_tuple)

    def bcast(self, x, root):
        return functions.bcast(self.c, x, root)

    def gather(self, x, root):
        return functions.gather(self.c, x, root)

    def scatter(self, xs, root):
        return functions.scatter(self.c, xs, root)

    def allgather(self, x):
        return functions.allgather(self.c, x)

    def alltoall(self, xs):
        return functions.alltoall(self.c, xs)

    def conv(self, x, W, b, pad):
        return F.conv2d(x, W, b, padding=pad)

    def cross_entropy(self, y, t):
        return F.cross_entropy(y, t.long())

    def chain_list(self, components, *xs):
        model = links.MultiNodeChainList(self.c)
        for component in components:
            model.add_link(
                Component(
                    self.v[component["link"] + ".W"],
                    self.v[component["link"] + ".b"],
                    component["act"],
                ),
                component["rank_in"],
                component["rank_out"],
            )
        return model(*xs)

    def n_step_rnn(self, xs, rank_in, rank_out):
        """Chainer's weights in torch's order.

        w0 .. w(k-1) belong to the input, the other k to the state.
        """
        meta, weights = self.meta, {}
        kind = next(kind for kind in RNNS if kind in meta["link"])
        more = (
            {"nonlinearity": "relu" if "ReLU" in meta["link"] else "tanh"} if kind == "RNN" else {}
        )
        twice = "Bi" in meta["link"]
        rnn = RNNS[kind](
            meta["in_size"], meta["out_size"], meta["n_layers"], bidirectional=twice, **more
        ).double()
        for name in sorted(
            (name for name in self.v if not name.startswith("x")), key=programs.natural
        ):
            _, layer, which = name.split(".")
            weights.setdefault((int(layer), which[0]), []).append(self.v[name])
        for (layer, letter), parts in weights.items():
            suffix = (
                f"_l{layer // 2}" + ("_reverse" if layer % 2 else "") if twice else f"_l{layer}"
            )
            for place, half in (("ih", parts[: len(parts) // 2]), ("hh", parts[len(parts) // 2 :])):
                parameter = getattr(rnn, {"w": "weight_", "b": "bias_"}[letter] + place + suffix)
                with torch.no_grad():
                    parameter.copy_(torch.cat(half))
                self.copies.append((half, parameter))
        return links.create_multi_node_n_step_rnn(rnn, self.c, rank_in, rank_out)(xs)

    def after_backward(self):
        """Give the leaves their gradients.

        They are parts of the gradient of a module's parameter, into which the leaves' values were
        copied.
        """
        for parts, parameter in self.copies:
            for part, grad in zip(
                parts, parameter.grad.split([len(part) for part in parts]), strict=True
            ):
                part.grad = grad

    def batch_norm(self, x, gamma, beta):
        layer = links.MultiNodeBatchNorm(
            x.shape[1], self.c, eps=2e-5, momentum=0.1, dtype=torch.float64
        )
        layer.running_var.zero_()  # as Chainer's begins; torch's begins with ones
        del layer.weight, layer.bias
        layer.weight, layer.bias = gamma, beta
        y = layer(x)
        # ours takes the bias out with the number of values of all ranks, as one process would;
        # ChainerMN with this rank's number
        own, all_ = x.numel() // x.shape[1], self.size * x.numel() // x.shape[1]
        self.extra = {
            "avg_mean": layer.running_mean,
            "avg_var": layer.running_var * ((all_ - 1) / all_) * (own / (own - 1)),
        }
        return y


def leaf(value, grad):
    tensor = torch.tensor(value["data"], dtype=getattr(torch, value["dtype"])).reshape(
        value["shape"]
    )
    return tensor.requires_grad_() if grad else tensor


def run_case(c, path):
    """Run one case; what differs from the record, as texts."""
    with open(path) as file:
        case = json.load(file)
    mine = case["ranks"][c.rank]
    leaves = {
        name: leaf(value, True)
        for kind in ("inputs", "params")
        for name, value in mine[kind].items()
    }
    m = Ours(
        c,
        case["meta"],
        {**leaves, **{name: leaf(value, False) for name, value in mine["constants"].items()}},
    )
    outputs, phi = programs.program_of(case["case"])(m)
    J = sum((y * leaf(mine["grad_outputs"][name], False)).sum() for name, y in outputs.items())
    if phi is not None:
        (functions.pseudo_connect(phi, J)[0] if outputs else phi).backward()
    elif outputs:
        J.backward()
    m.after_backward()
    wrong = [f"{sorted(outputs)} instead of {sorted(mine['outputs'])}"] * (
        sorted(outputs) != sorted(mine["outputs"])
    )
    wrong += [f"delegate: {phi}"] * ((phi is not None) != mine["has_delegate"])
    truth = mine.get("extra", {}).get("grad_mathematical", {})
    expected = {**mine["grad_inputs"], **mine["grad_params"], **truth}
    gradients = {name: tensor.grad for name, tensor in leaves.items()}
    pairs = [(name, outputs.get(name), value) for name, value in mine["outputs"].items()]
    pairs += [(f"gradient of {name}", gradients[name], value) for name, value in expected.items()]
    pairs += [
        (name, tensor, mine.get("extra", {}).get(name))
        for name, tensor in m.extra.items()
        if name in mine.get("extra", {})
    ]
    return wrong + [
        text for text in (difference(*pair, case["tolerance"]) for pair in pairs) if text
    ]


def difference(name, got, expected, tolerance):
    """None if they agree; no gradient at all counts as zeros."""
    if expected is None:
        return None if got is None or not got.any() else f"{name}: {got.tolist()} instead of none"
    expected = leaf(expected, False)
    got = torch.zeros_like(expected) if got is None else got.detach()
    if got.shape != expected.shape:
        return f"{name}: shape {tuple(got.shape)} instead of {tuple(expected.shape)}"
    if got.dtype != expected.dtype:
        return f"{name}: {got.dtype} instead of {expected.dtype}"
    return (
        None
        if torch.allclose(got, expected, **tolerance)
        else f"{name}: off by {(got - expected).abs().max():.3g}"
    )
