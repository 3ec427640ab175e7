"""create_multi_node_n_step_rnn against one process.

There are ragged sequences, all kinds of RNN, chains of 1 to 4 ranks, dropout, and mistakes.
"""

import copy

import pytest
import torch
from torch import nn

from manyhands import functions, links

FEATURES, UNITS = 3, 4
KINDS = {
    "LSTM": lambda: nn.LSTM(FEATURES, UNITS),
    "LSTM, 2 layers, both directions": lambda: nn.LSTM(FEATURES, UNITS, 2, bidirectional=True),
    "LSTM, projected, batch first": lambda: nn.LSTM(
        FEATURES, UNITS, 2, proj_size=2, batch_first=True
    ),
    "GRU, 3 layers": lambda: nn.GRU(FEATURES, UNITS, 3),
    "GRU, both directions": lambda: nn.GRU(FEATURES, UNITS, bidirectional=True),
    "RNN": lambda: nn.RNN(FEATURES, UNITS),
    "RNN, relu, 2 layers": lambda: nn.RNN(FEATURES, UNITS, 2, nonlinearity="relu"),
}
# of each rank: the same number of sequences, of other lengths
LENGTHS = [[3, 1, 4], [2, 5, 2], [1, 1, 6], [4, 2, 3]]
WITH_EMPTY = [[3, 0, 4], [0, 2, 5], [0, 0, 0], [2, 0, 0]]


def weights(rows):
    """Weights of the objective, so that each output has a gradient of its own."""
    return [(torch.arange(row.numel(), dtype=row.dtype).view_as(row) % 7 - 3) for row in rows]


def objective(*tensors):
    return sum((t * w).sum() for t, w in zip(tensors, weights(tensors), strict=True))


def run_alone(rnn, states, xs):
    """One process, each sequence unpadded, one at a time: (cells, ys)."""
    outputs, last = [], []
    for i, x in enumerate(xs):
        state = tuple(s[:, i] for s in states)
        if len(x):
            y, state = rnn(x, state if len(state) == 2 else state[0])
            state = state if isinstance(state, tuple) else (state,)
            outputs.append(y)
        else:
            outputs.append(
                x.new_zeros(0, (rnn.proj_size or rnn.hidden_size) * (1 + rnn.bidirectional))
            )
        last.append(state)
    return tuple(torch.stack(cells, 1) for cells in zip(*last, strict=True)), outputs


def one_process(rnns, sequences):
    """All ranks' RNNs one after the other.

    Returns what each rank must see, and leaves the gradients in `rnns` and `sequences`.
    """
    first = rnns[0]
    rows, n = first.num_layers * (1 + first.bidirectional), len(sequences[0])
    shapes = [(rows, n, first.proj_size or first.hidden_size), (rows, n, first.hidden_size)][
        : 2 if isinstance(first, nn.LSTM) else 1
    ]
    states, seen, total = tuple(torch.zeros(shape, dtype=torch.float64) for shape in shapes), [], 0
    for rank, (rnn, xs) in enumerate(zip(rnns, sequences, strict=True)):
        states, ys = run_alone(rnn, states, xs)
        seen.append(([s.detach() for s in states], [y.detach() for y in ys]))
        total = total + objective(*ys) + (objective(*states) if rank == len(rnns) - 1 else 0)
    total.backward()
    return seen


def on_ranks(c, rnn, xs):
    rnn, xs = rnn[c.rank], [x.requires_grad_() for x in xs[c.rank]]
    model = links.create_multi_node_n_step_rnn(
        rnn,
        c,
        rank_in=c.rank - 1 if c.rank else None,
        rank_out=c.rank + 1 if c.rank < c.size - 1 else None,
    )
    *cells, ys, delegate = model(xs)
    loss = objective(*ys)
    if c.rank == c.size - 1:
        assert delegate is None
        loss = loss + objective(*cells)
    else:
        (loss,) = functions.pseudo_connect(delegate, loss)
    loss.backward()
    return (
        [s.detach() for s in cells],
        [y.detach() for y in ys],
        [x.grad for x in xs],
        [p.grad for p in model.parameters()],
    )


def make(kind, n, lengths):
    torch.manual_seed(3)
    rnns = [KINDS[kind]().double() for _ in range(n)]
    return rnns, [
        [torch.randn(length, FEATURES, dtype=torch.float64) for length in lengths[rank]]
        for rank in range(n)
    ]


def compare(pool, kind, n, lengths):
    rnns, sequences = make(kind, n, lengths)
    bare = copy.deepcopy(rnns), copy.deepcopy(sequences)
    for xs in sequences:
        for x in xs:
            x.requires_grad_()
    seen = one_process(rnns, sequences)
    for rank, (cells, ys, of_xs, of_weights) in enumerate(pool.values(on_ranks, n, *bare)):
        torch.testing.assert_close(cells, seen[rank][0])
        torch.testing.assert_close(ys, seen[rank][1])
        expected = [x.grad for x in sequences[rank]], [p.grad for p in rnns[rank].parameters()]
        for got, want in zip((of_xs, of_weights), expected, strict=True):
            for g, w in zip(got, want, strict=True):
                # a sequence of length 0, or an RNN that read none: no gradient, or zeros
                zero = torch.zeros(()) if w is None else torch.zeros_like(w)
                torch.testing.assert_close(
                    zero if g is None else g.reshape(zero.shape) if w is None else g,
                    zero if w is None else w,
                    check_dtype=False,
                )


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_values_and_gradients_are_those_of_one_process(pool, kind, n):
    compare(pool, kind, n, LENGTHS)


@pytest.mark.parametrize("n", [2, 4])
@pytest.mark.parametrize(
    "kind", ["LSTM, 2 layers, both directions", "LSTM, projected, batch first", "GRU, 3 layers"]
)
def test_sequences_of_length_0_keep_their_states(pool, kind, n):
    compare(pool, kind, n, WITH_EMPTY)


def by_hand(c, xs):
    """Rank 0 sends its states by hand; rank 1 receives them by a link. And the other way."""
    torch.manual_seed(5)
    first, second = nn.LSTM(FEATURES, UNITS), nn.LSTM(FEATURES, UNITS)
    grads = []
    for hand in (0, 1):
        first.zero_grad()
        second.zero_grad()
        if c.rank == 0 and hand == 0:
            _, (h, cell) = first(nn.utils.rnn.pack_sequence(xs, enforce_sorted=False))
            phi = functions.send(h, c, 1)
            (cell,) = functions.pseudo_connect(phi, cell)
            functions.send(cell, c, 1).backward()
        elif c.rank == 0:
            *_, phi = links.create_multi_node_n_step_rnn(first, c, rank_out=1)(xs)
            phi.backward()
        elif hand == 0:
            _, _, ys, _ = links.create_multi_node_n_step_rnn(second, c, rank_in=0)(xs)
            objective(*ys).backward()
        else:
            states = functions.recv(c, 0), functions.recv(c, 0)
            packed, _ = second(nn.utils.rnn.pack_sequence(xs, enforce_sorted=False), states)
            objective(*nn.utils.rnn.unpack_sequence(packed)).backward()
        grads.append([p.grad.clone() for p in (first, second)[c.rank].parameters()])
    return grads


def test_the_other_side_may_be_written_by_hand(pool):
    for gradients, other in pool.values(
        by_hand, 2, [torch.randn(length, FEATURES) for length in (2, 4)]
    ):
        torch.testing.assert_close(gradients, other)
        assert all(g.abs().sum() > 0 for g in gradients)


def with_dropout(c, xs):
    """The masks of one process, where both ranks draw from the same seed as that process did."""
    torch.manual_seed(5)
    rnns = [nn.LSTM(FEATURES, UNITS, 2, dropout=0.5) for _ in range(2)]
    rnn = links.create_multi_node_n_step_rnn(
        rnns[c.rank], c, rank_in=0 if c.rank else None, rank_out=None if c.rank else 1
    )
    torch.manual_seed(c.rank)
    *_, ys, _phi = rnn(xs)
    return [y.detach() for y in ys]


def test_dropout_is_the_rnns_own(pool):
    xs = [torch.randn(length, FEATURES) for length in (2, 4)]
    torch.manual_seed(5)
    rnns = [nn.LSTM(FEATURES, UNITS, 2, dropout=0.5) for _ in range(2)]
    packed, states, expected = nn.utils.rnn.pack_sequence(xs, enforce_sorted=False), None, []
    for rank, rnn in enumerate(rnns):
        torch.manual_seed(rank)
        y, states = rnn(packed, states)
        expected.append([t.detach() for t in nn.utils.rnn.unpack_sequence(y)])
    torch.testing.assert_close(pool.values(with_dropout, 2, xs), expected)


def with_states(c, xs):
    """States as arguments, in ChainerMN's places: before the sequences."""
    torch.manual_seed(5)
    rnn = nn.LSTM(FEATURES, UNITS)
    states = torch.randn(1, len(xs), UNITS), torch.randn(1, len(xs), UNITS)
    link = links.create_multi_node_n_step_rnn(rnn, c)
    *cells, ys, phi = link(*states, xs)
    expected_cells, expected = run_alone(rnn, states, xs)
    half, *_ = link(states[0], None, xs)
    half_expected, _ = run_alone(rnn, (states[0], torch.zeros_like(states[1])), xs)
    torch.testing.assert_close((*cells, *ys, half), (*expected_cells, *expected, half_expected[0]))
    assert phi is None and copy.deepcopy(link).c is c
    return True


def test_states_may_be_arguments(pool):
    assert pool.values(with_states, 1, [torch.randn(length, FEATURES) for length in (2, 4)]) == [
        True
    ]


def mistakes(c):
    messages = []

    def tell(call):
        try:
            call()
            messages.append("nothing")
        except ValueError as error:
            messages.append(str(error))

    def make(rnn, **ranks):
        return links.create_multi_node_n_step_rnn(rnn, c, **ranks)

    lstm = nn.LSTM(FEATURES, UNITS)
    tell(lambda: make(nn.Linear(2, 2)))
    tell(lambda: make(lstm, rank_in=2))
    tell(lambda: make(lstm, rank_out=c.rank))
    tell(lambda: make(lstm)([]))
    tell(lambda: make(lstm)(torch.zeros(2, 4, FEATURES)))
    tell(lambda: make(lstm)([torch.zeros(4, FEATURES + 1)]))
    tell(lambda: make(lstm)(None, [torch.zeros(4, FEATURES)]))
    tell(
        lambda: make(lstm, rank_in=1 - c.rank)(
            torch.zeros(1, 1, UNITS), None, [torch.zeros(4, FEATURES)]
        )
    )
    return messages


def test_mistakes_are_told(pool):
    remedies = [
        "torch.nn.LSTM, GRU or RNN",
        "ranks 0 to 1",
        "is this rank itself",
        "torch.zeros(0, 3)",
        "at least one sequence",
        "shape (length, 3)",
        "rnn(hx, cx, xs)",
        "rank_in=None",
    ]
    for messages in pool.values(mistakes, 2):
        for text, remedy in zip(messages, remedies, strict=True):
            assert remedy in text, (text, remedy)


def mismatch(c, mistake):
    units, n, dtype = UNITS, 2, torch.float32
    if c.rank == 1:
        units, n, dtype = {
            "units": (UNITS + 1, 2, dtype),
            "sequences": (UNITS, 3, dtype),
            "dtype": (UNITS, 2, torch.float64),
        }[mistake]
    rnn = links.create_multi_node_n_step_rnn(
        nn.LSTM(FEATURES, units).to(dtype),
        c,
        rank_in=0 if c.rank else None,
        rank_out=None if c.rank else 1,
    )
    *_, ys, phi = rnn([torch.ones(2, FEATURES, dtype=dtype)] * n)
    (sum(y.sum() for y in ys) if c.rank else phi).backward()


def then(c):
    return c.allreduce_obj(c.rank)


@pytest.mark.parametrize(
    "mistake, words",
    [("units", "float32 (1, 2, 4)"), ("sequences", "(1, 3, 4)"), ("dtype", "float64 (1, 2, 4)")],
)
def test_states_that_do_not_fit_are_told(pool, mistake, words):
    _, outcome = pool.run(mismatch, 2, mistake, timeout_s=1)
    assert (
        outcome.error.type == "CommunicationError"
        and words in outcome.error.text
        and "from rank 0" in outcome.error.text
    )
    assert pool.values(then, 2) == [1, 1]
