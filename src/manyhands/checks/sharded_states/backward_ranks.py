"""Unit 16 on the ranks, exercises 4 and 5: what is cut, gathered and freed while backward runs.

Each experiment is a function of a name and the seed that all ranks call, in groups of 4, 3, 2 ranks and of 1; it returns {criterion: [finding]}.
"""

import gc
import random
import time

import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef

from manyhands.checks.on_ranks import learners
from manyhands.checks.rank_tools import device_of_any_call
from manyhands.checks.sharded_states.findings_with_torch import F64, compare, draw, finding, flat, my_groups, piece
from manyhands.checks.sharded_states.held_with_torch import held_bytes
from manyhands.ledger import Ledger

CALLS = 2
AT_ONCE, LETTING_GO_S = 2, 1.0  # whole gradients that may be alive; how long a thread of gloo may take to let go of one, which is no hang yet


# --- 4: zero2 ---------------------------------------------------------------------------------------------------------


def zero2(name, seed):
    function, found = learners(name), {"shards": [], "freed": [], "alive": []}
    alive = Alive()
    for group in my_groups():
        for criterion, findings in _zero2(function, f"{seed} zero2 {group.ranks}", group, alive).items():
            found[criterion] += findings
    return found


class Alive:
    """Counts the whole gradients whose memory is still there when the next one is, whoever keeps it: as a tensor, a view or in p.grad.
    gloo's threads may let go of one a little late: where there are too many it waits, until it has waited in vain once."""

    def __init__(self):
        self._waits = True

    def begin(self, parameters):
        self.most, self.arrived, self._memories = 0, 0, []
        self._hooks = [p.register_post_accumulate_grad_hook(self._arrived) for p in parameters]

    def _arrived(self, parameter):
        self.arrived += 1
        if parameter.grad is not None:  # else a hook of an earlier call has been here
            self._memories.append(StorageWeakRef(parameter.grad.untyped_storage()))
        self.most = max(self.most, self._now(AT_ONCE))

    def _now(self, allowed):
        deadline = time.monotonic() + LETTING_GO_S
        while (count := sum(not memory.expired() for memory in self._memories)) > allowed and self._waits:
            time.sleep(0.005)
            self._waits = time.monotonic() < deadline
        return count

    def end(self):
        """How many are there now."""
        for hook in self._hooks:
            hook.remove()
        gc.collect()
        return self._now(0)


def _network(key):
    sizes = random.Random(key)
    a, b, c = (sizes.randint(3, 7) for _ in range(3))
    network = nn.Sequential(nn.Linear(a, b), nn.Tanh(), nn.Linear(b, c), nn.Tanh(), nn.Linear(c, 3)).to(device_of_any_call(), F64)
    with torch.no_grad():
        for i, parameter in enumerate(network.parameters()):
            parameter.copy_(draw(f"{key} weight {i}", *parameter.shape))
    return network


def _zero2(function, key, group, alive):
    network, told, left, most, after = _network(key), [], 0, 0, 0
    in_network = list(network.parameters())
    parameters = in_network[1::2] + in_network[::2]  # not in the order of backward, nor in its reverse
    numel, own = sum(p.numel() for p in parameters), sum(len(piece(p.detach(), group.rank, group.ranks)) for p in parameters)
    held = own
    arrived = len(parameters)

    def loss_of(call, rank):
        return network(draw(f"{key} {call} {rank} rows", 4, network[0].in_features)).square().mean()

    for call in range(CALLS):
        of_ranks = [torch.autograd.grad(loss_of(call, rank), parameters) for rank in group]
        loss = loss_of(call, group.rank)
        alive.begin(parameters if group.ranks > 1 else [])  # alone the shard may well be the gradient
        got = function(loss, list(parameters), group.handle)
        left = max(left, sum(p.grad is not None for p in parameters))
        network.zero_grad()
        after, most = max(after, alive.end()), max(most, alive.most)
        held = max(held, held_bytes(got) // 8) if group.ranks > 1 else held
        arrived = min(arrived, alive.arrived) if group.ranks > 1 else arrived
        one = _compare_shards(group.text, got, of_ranks, group)
        told.append({**one, "looks": "second call"} if one["looks"] and call and told[0]["looks"] is None else one)
    hooks = sum(len(p._post_accumulate_grad_hooks or ()) + len(p._backward_hooks or ()) for p in parameters)
    looks, *numbers = (("piled up", AT_ONCE, most) if most > AT_ONCE else ("views", 0, after) if after else ("views of copies", own, held) if held > own else
                       ("no backward", len(parameters), arrived) if arrived < len(parameters) else (None,))
    return {"shards": told,
            "freed": [finding(group.text, "left" if left else "hooks left" if hooks else None, [(1 + left) * numel, (1 + hooks) * numel], 0, left or hooks)],
            "alive": [finding(group.text, looks, [max(most, AT_ONCE) * numel, (1 + after) * numel, arrived * numel, held], *numbers)]}


def _compare_shards(at, got, of_ranks, group):
    right = [piece(sum(each) / group.ranks, group.rank, group.ranks) for each in zip(*of_ranks)]
    if not isinstance(got, (list, tuple)) or len(got) != len(right):
        return finding(at, "no list", [], len(right), str(type(got).__name__))
    there = [isinstance(one, torch.Tensor) for one in got]
    if not all(there):
        return finding(at, "last parameter" if there == [False] * (len(right) - 1) + [True] else "no list", [], len(right), f"{sum(there)} tensors")
    if sorted(len(one.flatten()) for one in got) == sorted(map(len, right)) and [len(one.flatten()) for one in got] != [len(one) for one in right]:
        return finding(at, "order of parameters", [])
    for one, wanted in zip(got, right):
        if one.shape != wanted.shape:
            return compare(at, one, wanted)
    summed, own = ([piece(one, group.rank, group.ranks) for one in version] for version in (list(map(sum, zip(*of_ranks))), of_ranks[group.rank]))
    wrong = [("summed", flat(summed)), ("own", flat(own)), ("divided twice", flat(right) / group.ranks)]
    in_network = [one for pair in zip(right[len(right) // 2:], right[:len(right) // 2]) for one in pair]
    wrong += [("order of parameters", flat(order)) for order in (in_network, in_network[::-1])]
    return compare(at, flat(got), flat(right), wrong)


# --- 5: gather --------------------------------------------------------------------------------------------------------


def gather(name, seed):
    layer, found = learners(name), {"values": [], "gradients": [], "traffic": [], "freed": []}
    for group in my_groups():
        for criterion, findings in _gather(layer, f"{seed} gather {group.ranks}", group).items():
            found[criterion] += findings
    return found


def _gather(layer, key, group):
    sizes = random.Random(key)
    a, b, c = (sizes.randint(7, 10) for _ in range(3))
    weights = [draw(f"{key} {i}", *shape) for i, shape in enumerate(((b, a), (c, b)))]
    rows = [draw(f"{key} {rank} rows", sizes.randint(1, 2), a) for rank in group]
    serial = [_through(lambda h, weight: h @ weight.T, x, weights) for x in rows]
    owns = [nn.Parameter(piece(weight, group.rank, group.ranks)) for weight in weights]
    enough, kept = 8 * (group.ranks - 1) * sum(map(len, owns)), []

    def multiply(h, i):
        y = layer.apply(h, owns[i], weights[i].shape, group.handle)
        if getattr(y, "grad_fn", None) is not None:
            kept.append(held_bytes([vars(y.grad_fn), y.grad_fn.saved_tensors], besides=(h, owns[i], y)) // 8)
        return y

    with Ledger() as forward:
        y, leaves = _forward(multiply, rows[group.rank], owns)
    told = compare(group.text, y, serial[group.rank][0])
    sent = finding(group.text, None if forward.bytes_sent == enough else "forward sent", [forward.bytes_sent, enough], enough, forward.bytes_sent)
    whole_ones = [(held, weight.numel()) for held, weight in zip(kept, weights) if held >= weight.numel() and group.ranks > 1]
    held, numel = next(iter(whole_ones), (0, weights[0].numel()))
    freed = finding(group.text, "kept" if whole_ones else None, [weights[0].numel() + sum(held for held, _ in whole_ones)], f"fewer than {numel}", held)
    if told["looks"]:
        return {"values": [told], "gradients": [finding(group.text, "no gradient", [])], "traffic": [sent], "freed": [freed]}
    with Ledger() as backward:
        y.square().mean().backward()
    looks = None if backward.bytes_sent == 2 * enough else "backward less" if backward.bytes_sent < 2 * enough else "backward more"
    back = finding(group.text, looks, [backward.bytes_sent, 2 * enough], 2 * enough, backward.bytes_sent)
    return {"values": [told], "gradients": list(_gradients(group, leaves, [one[1] for one in serial])), "traffic": [sent, back], "freed": [freed]}


def _forward(multiply, x, leaves):
    """(what comes out of two layers, [x, the shards]): x has a gradient too."""
    x = x.clone().requires_grad_()
    return multiply(torch.tanh(multiply(x, 0)), 1), [x, *leaves]


def _through(multiply, x, weights):
    """(what comes out, the gradients of x and of the weights), with whole weights."""
    whole = [nn.Parameter(weight.clone()) for weight in weights]
    y, leaves = _forward(lambda h, i: multiply(h, whole[i]), x, whole)
    return y.detach(), torch.autograd.grad(y.square().mean(), leaves)


def _gradients(group, leaves, serial):
    """The gradients of x and of both shards, beside the right ones."""
    of_x, *of_weights = [list(each) for each in zip(*serial)]
    right = [of_x[group.rank], *(piece(sum(each) / group.ranks, group.rank, group.ranks) for each in of_weights)]
    alike = all(one.shape == of_x[0].shape for one in of_x)
    wrong = [[("x averaged", of_x[group.rank] / group.ranks**layers) for layers in (1, 2)] + ([("x averaged", sum(of_x) / group.ranks), ("x summed", sum(of_x))] if alike else [])]
    for each in of_weights:
        wrong.append([(name, piece(one, group.rank, group.ranks)) for name, one in
                      (("summed", sum(each)), ("own", each[group.rank]), ("divided twice", sum(each) / group.ranks**2))])
    for leaf, wanted, mistakes in zip(leaves, right, wrong):
        yield finding(group.text, "no gradient", []) if leaf.grad is None else compare(group.text, leaf.grad, wanted, mistakes)
