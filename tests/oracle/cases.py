"""The cases to record: name, ranks, what `meta` says, and the shapes of each rank's leaves."""


def cases():
    yield from functions()
    yield from point_to_point()
    yield from chains()
    yield from chain_lists()
    yield from rnns()
    yield from convolutions()
    yield from batch_norms()


def case(name, n, leaves, category="function", meta=None, **more):
    """`leaves(rank)` gives {"inputs": {name: shape}, "params": ..., "constants": ...}."""
    return {
        "case": f"{name}_n{n}",
        "category": category,
        "nprocs": n,
        "leaves": leaves,
        "meta": meta or {"op": name},
        **more,
    }


def inputs(**shapes):
    return {"inputs": shapes}


def xs(shapes):
    return inputs(**{f"x{i}": shape for i, shape in enumerate(shapes)})


def functions():
    for n in (2, 3, 4):
        for root in range(n):
            at = {"root": root}
            yield case(
                f"bcast_root{root}",
                n,
                lambda r, root=root: inputs(x=(2, 3)) if r == root else {},
                meta={"op": "bcast", **at},
            )
            yield case(
                f"gather_root{root}", n, lambda r: inputs(x=(2, 3)), meta={"op": "gather", **at}
            )
            yield case(
                f"scatter_root{root}",
                n,
                lambda r, n=n, root=root: xs([(2, 3)] * n) if r == root else {},
                meta={"op": "scatter", **at},
            )
        yield case("allgather", n, lambda r: inputs(x=(2, 3)))
        yield case("alltoall", n, lambda r, n=n: xs([(2, 3)] * n))
    for root in range(3):
        at = {"root": root, "ragged": True}
        yield case(
            f"gatherv_root{root}", 3, lambda r: inputs(x=(r + 1, 3)), meta={"op": "gatherv", **at}
        )
        yield case(
            f"scatterv_root{root}",
            3,
            lambda r, root=root: xs([(i + 1, 2) for i in range(3)]) if r == root else {},
            meta={"op": "scatterv", **at},
        )
    yield case(
        "allgatherv", 3, lambda r: inputs(x=(3 - r, 2)), meta={"op": "allgatherv", "ragged": True}
    )
    yield case(
        "alltoallv",
        3,
        lambda r: xs([(r + 1, i + 1) for i in range(3)]),
        meta={"op": "alltoallv", "ragged": True},
    )


def point_to_point():
    square, params = (2, 2), {"params": {"w": (2, 2)}}
    for n in (2, 3, 4):
        yield case(
            "p2p_ring",
            n,
            lambda r: (inputs(x=(2, 3)) if r == 0 else {}) | {"params": {"w": (2, 3)}},
        )
        yield case(
            "p2p_straight_chain",
            n,
            lambda r: (inputs(x=(2, 3)) if r == 0 else {}) | {"params": {"W": (3, 3), "b": (3,)}},
        )
    yield case(
        "p2p_tuple", 2, lambda r: {"params": {"w": (2, 3)}} if r else inputs(a=(2, 3), b=(4,))
    )
    for name in ("p2p_list1", "p2p_single_force_tuple"):
        yield case(name, 2, lambda r: {} if r else inputs(x=square) | params)
    yield case(
        "p2p_ping_pong",
        2,
        lambda r: ({} if r else inputs(x=square)) | {"params": {f"w{i}": square for i in range(3)}},
    )
    yield case("p2p_raw_array", 2, lambda r: params if r else {"constants": {"c": square}})
    for name in (
        "p2p_two_tags",
        "hazard_fixed_delegate_both_sides",
        "hazard_chained_send_no_delegate_recv",
        "hazard_second_used_deeper",
        "hazard_fixed_second_used_deeper",
    ):
        hazard = name.startswith("hazard") and "fixed" not in name
        yield case(
            name,
            2,
            lambda r: params if r else inputs(a=square, b=square),
            "hazard" if hazard else "function",
        )
    yield case(
        "pseudo_connect_two_sends",
        3,
        lambda r: params if r else inputs(x=square) | {"params": {"w1": square, "w2": square}},
    )
    for name in ("pseudo_connect_send_and_loss", "pseudo_connect_several"):
        yield case(name, 2, lambda r: params if r else inputs(x=square) | params)
    yield case("pseudo_connect_gather", 2, lambda r: inputs(x=square) | params)


def chains():
    weights = {"params": {"W": (2, 3), "b": (2,)}}
    for n in (2, 3):
        for name in ("chain_bcast_linear_gather", "chain_ensemble"):
            yield case(name, n, lambda r: (inputs(x=(4, 3)) if r == 0 else {}) | weights, "chain")
        yield case(
            "chain_bcast_conv_gather",
            n,
            lambda r: (
                (inputs(x=(2, 2, 4, 4)) if r == 0 else {})
                | {"params": {"W": (2, 2, 3, 3), "b": (2,)}}
            ),
            "chain",
        )
        yield case(
            "chain_scatter_linear_allgather",
            n,
            lambda r, n=n: (xs([(2, 3)] * n) if r == 0 else {}) | weights,
            "chain",
        )
        yield case(
            "chain_alltoall_twice",
            n,
            lambda r, n=n: xs([(2, 2)] * n) | {"params": {"w": (2, 2)}},
            "chain",
        )


def link(name, out, in_, act, rank_in=None, rank_out=None):
    return {
        "link": name,
        "out_in": [out, in_],
        "act": act,
        "rank_in": rank_in,
        "rank_out": rank_out,
    }


def chain_list(name, lists, x_on, labels_on=None, classes=3):
    """A MultiNodeChainList: one list of components per rank; the ranks of `x_on` get the same x."""

    def leaves(r):
        leaf_inputs = inputs(x=(3, 4)) if r in x_on else {}
        leaf_inputs["params"] = {
            f"{part['link']}.{key}": shape
            for part in lists[r]
            for key, shape in (("W", tuple(part["out_in"])), ("b", (part["out_in"][0],)))
        }
        return leaf_inputs | ({"constants": {"t": (3,)}} if r == labels_on else {})

    meta = {"add_link": {str(rank): parts for rank, parts in enumerate(lists)}}
    return case(
        f"mncl_{name}",
        len(lists),
        leaves,
        "multi_node_chain_list",
        meta,
        shared=["x"],
        classes=classes,
    )


def chain_lists():
    four = [4, 4, "tanh"]
    yield chain_list(
        "mlp_3ranks",
        [
            [link("r0_l1", 5, 4, "relu", None, 1)],
            [link("r1_l2", 4, 5, "tanh", 0, 2)],
            [link("r2_l3", 3, 4, None, 1)],
        ],
        [0],
        2,
    )
    yield chain_list(
        "mlp_2ranks",
        [[link("r0_l1", 5, 4, "relu", None, 1)], [link("r1_l2", 3, 5, None, 0)]],
        [0],
        1,
    )
    yield chain_list(
        "cycle",
        [
            [link("r0_l1", *four, None, 1), link("r0_l3", 3, 4, None, 1)],
            [link("r1_l2", *four, 0, 0)],
        ],
        [0],
        0,
    )
    crossing = (
        [link("r0_l1", *four, None, 1), link("r0_l2", 3, 4, "relu", 1)],
        [link("r1_l1", *four, 0), link("r1_l2", *four, None, 0)],
    )
    yield chain_list("crossing", crossing, [0, 1])
    children = [[link(f"r{r}_l1", *four, 0, 0)] for r in (1, 2)]
    yield chain_list(
        "branching1",
        [[link("r0_l1", *four, None, [1, 2]), link("r0_l2", 3, 4, None, [1, 2])], *children],
        [0],
        0,
    )
    yield chain_list(
        "branching2",
        [
            [
                link("r0_l1", *four, None, [1, 2]),
                link("r0_l2", *four, None, 0),
                link("r0_l3", 3, 4, None, [0, 1, 2]),
            ],
            *children,
        ],
        [0],
        0,
    )
    yield chain_list(
        "branching3",
        [[link("r0_l1", *four, None, [0, 1, 2]), link("r0_l2", 3, 4, None, [1, 0, 2])], *children],
        [0],
        0,
    )
    yield chain_list(
        "branching4",
        [
            [
                link("r0_l1", *four, None, [1, 0, 2]),
                link("r0_l2", *four, 0, 0),
                link("r0_l3", 3, 4, None, [2, 1, 0]),
            ],
            *children,
        ],
        [0],
        0,
    )
    twist = [
        [link("r0_l1", *four, None, 1), link("r0_l2", *four, 1)],
        [link("r1_l1", *four, 0, 0), link("r1_l2", *four, None, 2), link("r1_l3", *four, 2)],
        [link("r2_l1", *four, 1, 1), link("r2_l2", *four, None)],
    ]
    yield chain_list("twist", twist, [0, 1, 2])


RNNS = {
    "NStepLSTM": (8, 1),
    "NStepBiLSTM": (8, 2),
    "NStepGRU": (6, 1),
    "NStepBiGRU": (6, 2),
    "NStepRNNTanh": (2, 1),
    "NStepBiRNNTanh": (2, 2),
    "NStepRNNReLU": (2, 1),
}


def rnn(name, kind, n, layers, lengths, in_size=2, out_size=2):
    """Sequences of the given lengths, by rank; all ranks have the same number of them."""
    count, directions = RNNS[kind]

    def leaves(r):
        role = "enc" if r == 0 else "dec" if r == n - 1 else "mid"
        params = {}
        for layer in range(layers * directions):
            below = in_size if layer < directions else out_size * directions
            for j in range(count):
                params[f"{role}.{layer}.w{j}"] = (out_size, below if j < count // 2 else out_size)
                params[f"{role}.{layer}.b{j}"] = (out_size,)
        return xs([(length, in_size) for length in lengths[r]]) | {"params": params}

    meta = {
        "op": "create_multi_node_n_step_rnn",
        "link": kind,
        "n_layers": layers,
        "in_size": in_size,
        "out_size": out_size,
        "lengths": lengths,
    }
    return case(
        name, n, leaves, "n_step_rnn", meta, most=3, tolerance={"rtol": 1e-9, "atol": 1e-11}
    )


def rnns():
    ragged = [[3, 2], [4, 1]]
    yield rnn("nsteplstm_1layer_encdec", "NStepLSTM", 2, 1, [[3, 3], [4, 4]])
    yield rnn("nsteplstm_2layers_ragged", "NStepLSTM", 2, 2, ragged)
    yield rnn("nsteplstm_middle", "NStepLSTM", 3, 1, [[3, 2], [2, 2], [3, 1]])
    yield rnn("nstepbilstm_1layer", "NStepBiLSTM", 2, 1, ragged)
    yield rnn("nstepgru_2layers", "NStepGRU", 2, 2, ragged)
    yield rnn("nstepgru_middle", "NStepGRU", 3, 1, [[3, 2], [2, 2], [3, 1]])
    yield rnn("nstepbigru_1layer", "NStepBiGRU", 2, 1, ragged)
    yield rnn("nsteprnntanh_1layer", "NStepRNNTanh", 2, 1, ragged)
    yield rnn("nstepbirnntanh_2layers", "NStepBiRNNTanh", 2, 2, ragged)
    yield rnn("nsteprnnrelu_1layer", "NStepRNNReLU", 2, 1, ragged)


def convolutions():
    for n in (2, 4):
        part = {"params": {"W": (2, 4 // n, 3, 3), "b": (2,)}}
        yield case(
            "parconv_example",
            n,
            lambda r, part=part: (inputs(x=(1, 4, 4, 4)) if r == 0 else {}) | part,
            "parallel_conv",
            same_upstream=True,
        )
    for n in (2, 3):
        whole = {"params": {"W": (2, 3, 3, 3), "b": (2,)}}
        yield case(
            "parconv_dense_outsplit",
            n,
            lambda r, whole=whole: (inputs(x=(1, 3, 4, 4)) if r == 0 else {}) | whole,
            "parallel_conv",
            same_upstream=True,
        )


def batch_norms():
    params = {"params": {"gamma": (3,), "beta": (3,)}}
    for n in (2, 3):
        more = {
            "category": "mnbn",
            "shared": ["gamma", "beta"],
            "tolerance": {"rtol": 1e-8, "atol": 1e-10},
        }
        yield case("mnbn_2d", n, lambda r: inputs(x=(4, 3)) | params, **more)
        yield case("mnbn_4d", n, lambda r: inputs(x=(2, 3, 2, 2)) | params, **more)
