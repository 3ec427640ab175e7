"""The programs of the recorded cases, each written once and run by both.

Both are the real ChainerMN (record.py) and ours (tests/dist/test_oracle.py).

A program is `program(m) -> (outputs, delegate)` on every rank, where `m` has
  m.rank, m.size, m.meta                     who and what
  m.v                                        the rank's leaves and constants by name
  m.send(x, rank, tag), m.recv(rank, phi, tag, force_tuple), m.bcast(x, root), m.gather(x, root), m.scatter(xs, root),
  m.allgather(x), m.alltoall(xs), m.pseudo_connect(phi, *xs)
  m.tanh, m.sin, m.sigmoid, m.relu, m.linear(x, W, b), m.conv(x, W, b, pad), m.concat(xs, axis)
"""

import re

PROGRAMS = {}  # the beginning of a case's name -> program


def program(*beginnings):
    def keep(function):
        PROGRAMS.update(dict.fromkeys(beginnings, function))
        return function

    return keep


def program_of(case):
    """The program of a case, by the longest beginning that fits; None if there is none."""
    fits = [beginning for beginning in PROGRAMS if case.startswith(beginning)]
    return PROGRAMS[max(fits, key=len)] if fits else None


def natural(name):
    """x2 before x10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def listed(m):
    """The rank's leaves in order."""
    return [m.v[name] for name in sorted(m.v, key=natural)]


def numbered(ys):
    return {f"y{i}": y for i, y in enumerate(ys)}


# --- one collective function


@program("bcast_")
def bcast(m):
    root = m.meta["root"]
    return {"y": m.bcast(m.v["x"] if m.rank == root else None, root)}, None


@program("gather_", "gatherv_")
def gather(m):
    root = m.meta["root"]
    got = m.gather(m.v["x"], root)
    return (numbered(got), None) if m.rank == root else ({}, got)


@program("scatter_", "scatterv_")
def scatter(m):
    root = m.meta["root"]
    return {"y": m.scatter(listed(m) if m.rank == root else None, root)}, None


@program("allgather_", "allgatherv_")
def allgather(m):
    return numbered(m.allgather(m.v["x"])), None


@program("alltoall_", "alltoallv_")
def alltoall(m):
    return numbered(m.alltoall(listed(m))), None


# --- send and recv


@program("p2p_ring")
def ring(m):
    """Rank 0 sends, then receives what has come round."""
    if m.rank == 0:
        phi = m.send(m.tanh(m.v["x"] * m.v["w"]), 1)
        return {"y": m.sin(m.recv(m.size - 1, phi)) * m.v["w"]}, None
    return {}, m.send(m.sin(m.recv(m.rank - 1) * m.v["w"]), (m.rank + 1) % m.size)


@program("p2p_straight_chain")
def straight_chain(m):
    h = m.v["x"] if m.rank == 0 else m.recv(m.rank - 1)
    h = m.sigmoid(m.linear(h, m.v["W"], m.v["b"]))
    return ({"y": h}, None) if m.rank == m.size - 1 else ({}, m.send(h, m.rank + 1))


@program("p2p_tuple")
def tuple_and_tag(m):
    if m.rank == 0:
        return {}, m.send([m.tanh(m.v["a"]), m.v["b"] * m.v["b"]], 1, tag=7)
    a, b = m.recv(0, tag=7)
    return {"y": a * m.v["w"], "z": m.sin(b)}, None


@program("p2p_list1")
def list_of_one(m):
    if m.rank == 0:
        return {}, m.send([m.v["x"] * m.v["w"]], 1)
    (h,) = m.recv(0, force_tuple=True)
    return {"y": m.tanh(h)}, None


@program("p2p_single_force_tuple")
def single_forced(m):
    if m.rank == 0:
        return {}, m.send(m.v["x"] * m.v["w"], 1)
    (h,) = m.recv(0, force_tuple=True)
    return {"y": m.tanh(h)}, None


@program("p2p_ping_pong")
def ping_pong(m):
    """Three rounds, delegates on both sides."""
    phi = None
    if m.rank == 0:
        h = m.v["x"]
        for i in range(3):
            phi = m.send(m.tanh(h * m.v[f"w{i}"]), 1)
            h = m.recv(1, phi)
        return {"y": h}, None
    for i in range(3):
        phi = m.send(m.sin(m.recv(0, phi) * m.v[f"w{i}"]), 0)
    return {}, phi


@program("p2p_raw_array")
def raw_array(m):
    """What is sent has no gradient."""
    if m.rank == 0:
        return {}, m.send(m.v["c"], 1)
    return {"y": m.recv(0) * m.v["w"]}, None


@program("p2p_two_tags")
def two_tags(m):
    """Two messages, received in the other order by their tags."""
    if m.rank == 0:
        phi = m.send(m.v["a"], 1, tag=1)
        (b,) = m.pseudo_connect(phi, m.v["b"])
        return {}, m.send(b, 1, tag=2)
    a = m.recv(0, tag=1)
    b = m.recv(0, a, tag=2)
    return {"y": a * m.v["w"] + 3 * b}, None


# --- pseudo_connect


@program("pseudo_connect_two_sends")
def two_sends(m):
    if m.rank == 0:
        phi = m.send(m.tanh(m.v["x"] * m.v["w1"]), 1)
        (h,) = m.pseudo_connect(phi, m.v["x"] * m.v["w2"])
        return {}, m.send(h, 2)
    return {"y": m.sin(m.recv(0)) * m.v["w"]}, None


@program("pseudo_connect_send_and_loss")
def send_and_loss(m):
    """The rank that sends has an objective of its own too."""
    if m.rank == 0:
        phi = m.send(m.tanh(m.v["x"]), 1)
        return {"y": m.v["x"] * m.v["w"]}, phi
    return {"y": m.sin(m.recv(0)) * m.v["w"]}, None


@program("pseudo_connect_several")
def several(m):
    """Several variables behind one delegate."""
    if m.rank == 0:
        phi = m.send(m.tanh(m.v["x"]), 1)
        a, b = m.pseudo_connect(phi, m.v["x"] * m.v["w"], m.sin(m.v["x"]))
        return {"y": a, "z": b}, None
    return {"y": m.recv(0) * m.v["w"]}, None


@program("pseudo_connect_gather")
def after_gather(m):
    """The delegate of a gather."""
    got = m.gather(m.tanh(m.v["x"]), 0)
    if m.rank == 0:
        return {"y": got[0] * m.v["w"] + m.sin(got[1])}, None
    (y,) = m.pseudo_connect(got, m.v["x"] * m.v["w"])
    return {"y": y}, None


# --- two messages with one tag


@program("hazard_fixed_delegate_both_sides")
def both_sides(m):
    return two_messages(m, connect=True)


@program("hazard_chained_send_no_delegate_recv")
def no_delegate(m):
    return two_messages(m, connect=False)


def two_messages(m, connect):
    if m.rank == 0:
        phi = m.send(m.v["a"], 1)
        (b,) = m.pseudo_connect(phi, m.v["b"])
        return {}, m.send(b, 1)
    first = m.recv(0)
    second = m.recv(0, first) if connect else m.recv(0)
    return {"y": first * m.v["w"] + 3 * second}, None


@program("hazard_second_used_deeper")
def second_deeper(m):
    """Backward comes to the first message before the second one.

    Yet rank 0 waits for the second one's gradient first.
    """
    return two_depths(m, connect=False)


@program("hazard_fixed_second_used_deeper")
def second_deeper_connected(m):
    return two_depths(m, connect=True)


def two_depths(m, connect):
    if m.rank == 0:
        phi = m.send(m.v["a"], 1)
        (b,) = m.pseudo_connect(phi, m.v["b"])
        return {}, m.send(b, 1)
    first = m.recv(0)
    second = m.recv(0, first) if connect else m.recv(0)
    return {"y": first * m.v["w"] + m.tanh(m.tanh(second * m.v["w"]))}, None


# what ChainerMN gets wrong -> the same mathematics with its delegates, which it gets right
TRUTH = {
    "hazard_chained_send_no_delegate_recv": both_sides,
    "hazard_second_used_deeper": second_deeper_connected,
}


# --- several functions


@program("chain_bcast_linear_gather")
def bcast_linear_gather(m):
    h = m.bcast(m.v["x"] if m.rank == 0 else None, 0)
    got = m.gather(m.tanh(m.linear(h, m.v["W"], m.v["b"])), 0)
    return ({"y": m.concat(got, 1)}, None) if m.rank == 0 else ({}, got)


@program("chain_bcast_conv_gather")
def bcast_conv_gather(m):
    h = m.bcast(m.v["x"] if m.rank == 0 else None, 0)
    got = m.gather(m.relu(m.conv(h, m.v["W"], m.v["b"], 1)), 0)
    return ({"y": m.concat(got, 1)}, None) if m.rank == 0 else ({}, got)


@program("chain_scatter_linear_allgather")
def scatter_linear_allgather(m):
    xs = [m.v[f"x{i}"] for i in range(m.size)] if m.rank == 0 else None
    h = m.tanh(m.linear(m.scatter(xs, 0), m.v["W"], m.v["b"]))
    return {"y": m.concat(m.allgather(h), 0)}, None


@program("chain_ensemble")
def ensemble(m):
    """The mean of all ranks' predictions."""
    h = m.bcast(m.v["x"] if m.rank == 0 else None, 0)
    got = m.gather(m.sigmoid(m.linear(h, m.v["W"], m.v["b"])), 0)
    return ({"y": sum(got[1:], got[0]) / m.size}, None) if m.rank == 0 else ({}, got)


@program("chain_alltoall_twice")
def alltoall_twice(m):
    ys = m.alltoall([m.v[f"x{i}"] for i in range(m.size)])
    return numbered(m.alltoall([m.tanh(y * m.v["w"]) for y in ys])), None


# --- convolution over the ranks


@program("parconv_example")
def conv_of_the_example(m):
    """ChainerMN's example: rank r reads the channels r, r + N, ...

    It is one grouped convolution.
    """
    h = m.bcast(m.v["x"] if m.rank == 0 else None, 0)
    y = m.conv(h[:, m.rank :: m.size], m.v["W"], m.v["b"], 1)
    return {"y": m.concat(m.allgather(y), 1)}, None


@program("parconv_dense_outsplit")
def conv_by_output(m):
    h = m.bcast(m.v["x"] if m.rank == 0 else None, 0)
    return {"y": m.concat(m.allgather(m.conv(h, m.v["W"], m.v["b"], 1)), 1)}, None


# --- links


@program("mncl_")
def chain_list(m):
    """meta["add_link"][rank] lists the components; a component of several inputs sums them."""
    xs = [m.v["x"]] if "x" in m.v else []
    y = m.chain_list(m.meta["add_link"][str(m.rank)], *xs)
    if all(link["rank_out"] is not None for link in m.meta["add_link"][str(m.rank)]):
        return {}, y
    return (
        ({"loss": m.cross_entropy(y, m.v["t"]), "y_aux": y * 0}, None)
        if "t" in m.v
        else ({"y": y}, None)
    )


@program("nstep")
def n_step_rnn(m):
    """Encoder on rank 0, decoder on the last, one in the middle where there are three."""
    last = m.rank == m.size - 1
    xs = [m.v[name] for name in sorted((name for name in m.v if name.startswith("x")), key=natural)]
    *_, ys, phi = m.n_step_rnn(
        xs, rank_in=m.rank - 1 if m.rank else None, rank_out=None if last else m.rank + 1
    )
    return ({f"ys{i}": y for i, y in enumerate(ys)}, None) if last else ({}, phi)


@program("mnbn_")
def batch_norm(m):
    return {"y": m.batch_norm(m.v["x"], m.v["gamma"], m.v["beta"])}, None
