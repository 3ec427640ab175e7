"""Record cases from the real ChainerMN, in an environment of its own.

    python3.11 -m venv cmn && cmn/bin/pip install "numpy==1.23.5" "chainer==7.8.1" mpi4py mpich "setuptools<80"
    for n in 2 3 4; do OMP_NUM_THREADS=1 cmn/bin/mpirun -n $n cmn/bin/python tests/oracle/record.py; done      # a name's beginning records these cases only

writes tests/oracle/recorded/*.json in the schema of README.md, one file per case. The programs are
in programs.py, the cases in cases.py.
"""

import json
import sys
import warnings
import zlib
from pathlib import Path

import cases
import chainer
import chainer.functions as F
import chainer.links as L
import chainermn
import chainermn.functions as MN
import numpy as np
import programs
from mpi4py import MPI

warnings.filterwarnings("ignore")
WORLD = MPI.COMM_WORLD
EPS, MOST = 1e-5, 30  # step of the central difference; elements per tensor that it is taken for


class Component(chainer.Chain):
    """y = act(x W^T + b), where several inputs are summed first."""

    def __init__(self, W, b, act):
        super().__init__()
        self.W, self.b, self.act = W, b, act

    def __call__(self, *xs):
        y = F.linear(sum(xs[1:], xs[0]), self.W, self.b)
        return {"relu": F.relu, "tanh": F.tanh, "sigmoid": F.sigmoid, None: lambda y: y}[self.act](
            y
        )


class Chainer:
    """The `m` of programs.py on ChainerMN."""

    tanh, sin, sigmoid, relu = (
        staticmethod(F.tanh),
        staticmethod(F.sin),
        staticmethod(F.sigmoid),
        staticmethod(F.relu),
    )
    linear, concat = staticmethod(F.linear), staticmethod(lambda xs, axis: F.concat(xs, axis))
    cross_entropy = staticmethod(F.softmax_cross_entropy)
    pseudo_connect = staticmethod(lambda phi, *xs: MN.pseudo_connect(phi, *xs))

    def __init__(self, comm, meta, variables):
        self.comm, self.rank, self.size, self.meta, self.v = (
            comm,
            comm.rank,
            comm.size,
            meta,
            variables,
        )
        self.extra, self.parameters = {}, {}

    def send(self, x, rank, tag=0):
        return MN.send(x, self.comm, rank, tag)

    def recv(self, rank, phi=None, tag=0, force_tuple=False):
        return MN.recv(self.comm, rank, phi, tag, force_tuple)

    def bcast(self, x, root):
        return MN.bcast(self.comm, x, root)

    def gather(self, x, root):
        return MN.gather(self.comm, x, root)

    def scatter(self, xs, root):
        return MN.scatter(self.comm, xs, root)

    def allgather(self, x):
        return MN.allgather(self.comm, x)

    def alltoall(self, xs):
        return MN.alltoall(self.comm, xs)

    def conv(self, x, W, b, pad):
        return F.convolution_2d(x, W, b, pad=pad)

    def chain_list(self, links, *xs):
        model = chainermn.MultiNodeChainList(self.comm)
        for link in links:
            part = Component(self.v[link["link"] + ".W"], self.v[link["link"] + ".b"], link["act"])
            model.add_link(part, link["rank_in"], link["rank_out"])
        return model(*xs)

    def n_step_rnn(self, xs, rank_in, rank_out):
        meta = self.meta
        link = getattr(L, meta["link"])(meta["n_layers"], meta["in_size"], meta["out_size"], 0.0)
        for name, variable in self.v.items():
            if not name.startswith("x"):
                _, layer, which = name.split(".")
                self.use(name, getattr(link[int(layer)], which), variable)
        return chainermn.links.create_multi_node_n_step_rnn(link, self.comm, rank_in, rank_out)(xs)

    def use(self, name, parameter, variable):
        """Give one of a link's own parameters the leaf's value, and look for its gradient there."""
        parameter.array[...] = variable.array
        parameter.cleargrad()
        self.parameters[name] = parameter

    def batch_norm(self, x, gamma, beta):
        link = chainermn.links.MultiNodeBatchNormalization(x.shape[1], self.comm, dtype=np.float64)
        self.use("gamma", link.gamma, gamma)
        self.use("beta", link.beta, beta)
        y = link(x)
        self.extra = {"avg_mean": link.avg_mean, "avg_var": link.avg_var}
        return y


def drawn(seed, rank, names, shapes):
    """Uniform numbers in (-1, 1), the same wherever the case runs."""
    return {
        name: np.random.RandomState([seed, zlib.crc32(name.encode()), rank]).uniform(
            -1, 1, shapes[name]
        )
        for name in names
    }


def leaves_of(case, rank, seed):
    """{kind: {name: array}} of one rank."""
    arrays = {}
    for kind in ("inputs", "params", "constants"):
        shapes = case["leaves"](rank).get(kind, {})
        arrays[kind] = drawn(seed, rank, shapes, shapes)
        for name in case.get("shared", ()):
            if name in shapes:
                arrays[kind][name] = drawn(seed, 0, [name], shapes)[name]
    if "t" in arrays["constants"]:
        arrays["constants"]["t"] = (
            np.random.RandomState(seed)
            .randint(0, case["classes"], arrays["constants"]["t"].shape)
            .astype(np.int32)
        )
    return arrays


def forward(case, comm, leaves, program=None):
    """Run the case's program, or another: (m, leaf variables, outputs, delegate)."""
    variables = {
        name: chainer.Variable(array.copy())
        for kind in ("inputs", "params")
        for name, array in leaves[kind].items()
    }
    m = Chainer(comm, case["meta"], {**variables, **leaves["constants"]})
    outputs, phi = (program or programs.program_of(case["case"]))(m)
    return m, variables | m.parameters, outputs, phi


def objective(outputs, upstream):
    return sum(
        (F.sum(y * upstream[name]) for name, y in outputs.items()), chainer.Variable(np.zeros(()))
    )


def backward(variables, outputs, phi, upstream):
    """Backward from the delegate, the objective or both: the leaves' gradients."""
    J = objective(outputs, upstream)
    if phi is not None:
        (MN.pseudo_connect(phi, J)[0] if outputs else phi).backward()
    elif outputs:
        J.backward()
    return {name: variable.grad for name, variable in variables.items()}


def differences(case, comm, leaves, upstream, gradients):
    """The largest error of the gradients against central differences.

    They are differences of the sum of all objectives. It also returns the tensors above 1e-7.
    """
    worst, per_tensor = 0.0, {}
    for owner in range(comm.size):
        table = comm.mpi_comm.bcast(
            {
                kind: {name: a.shape for name, a in leaves[kind].items()}
                for kind in ("inputs", "params")
            },
            root=owner,
        )
        for kind, shapes in table.items():
            for name, shape in shapes.items():
                count = int(np.prod(shape))
                picks = np.random.RandomState(1).permutation(count)[: case.get("most", MOST)]
                error = max(
                    [
                        difference(case, comm, leaves, upstream, gradients, owner, kind, name, at)
                        for at in picks
                    ],
                    default=0.0,
                )
                worst = max(worst, error)
                if error > 1e-7:
                    per_tensor[f"r{owner}.{name}"] = error
    return worst, per_tensor


def difference(case, comm, leaves, upstream, gradients, owner, kind, name, at):
    sums = []
    for step in (EPS, -EPS):
        if comm.rank == owner:
            flat = leaves[kind][name].reshape(-1)
            kept, flat[at] = flat[at], flat[at] + step
        _, _, outputs, _ = forward(case, comm, leaves)
        if comm.rank == owner:
            flat[at] = kept
        sums.append(comm.mpi_comm.allreduce(float(objective(outputs, upstream).array)))
    error = 0.0
    if comm.rank == owner:
        got = gradients[name]
        error = abs((0.0 if got is None else got.reshape(-1)[at]) - (sums[0] - sums[1]) / (2 * EPS))
    return comm.mpi_comm.bcast(error, root=owner)


def as_json(array):
    array = np.asarray(array)
    return {
        "shape": list(array.shape),
        "dtype": str(array.dtype),
        "data": array.reshape(-1).tolist(),
    }


def record(case, comm):
    """The case's record, on rank 0."""
    seed = zlib.crc32(case["case"].encode()) & 0x7FFFFFFF
    leaves = leaves_of(case, comm.rank, seed)
    m, variables, outputs, phi = forward(case, comm, leaves)
    generator = np.random.RandomState([seed, 99, 0 if case.get("same_upstream") else comm.rank])
    upstream = {
        name: np.ones(()) if name == "loss" else generator.uniform(-1, 1, y.shape)
        for name, y in outputs.items()
    }
    gradients = backward(variables, outputs, phi, upstream)
    worst, per_tensor = differences(case, comm, leaves, upstream, gradients)
    entry = {
        "rank": comm.rank,
        **{kind: {name: as_json(array) for name, array in leaves[kind].items()} for kind in leaves},
        "outputs": {name: as_json(y.array) for name, y in outputs.items()},
        "grad_outputs": {name: as_json(array) for name, array in upstream.items()},
        "grad_inputs": {
            name: None if gradients[name] is None else as_json(gradients[name])
            for name in leaves["inputs"]
        },
        "grad_params": {
            name: None if gradients[name] is None else as_json(gradients[name])
            for name in leaves["params"]
        },
        "local_objective": float(objective(outputs, upstream).array),
        "has_delegate": phi is not None,
    }
    truth = programs.TRUTH.get(case["case"].rsplit("_n", 1)[0])
    if truth:
        _, variables, *ends = forward(case, comm, leaves, truth)
        m.extra["grad_mathematical"] = backward(variables, *ends, upstream)
    if m.extra:
        entry["extra"] = {
            name: (
                {key: as_json(a) for key, a in one.items()}
                if isinstance(one, dict)
                else as_json(one)
            )
            for name, one in m.extra.items()
        }
    ranks = comm.mpi_comm.gather(entry)
    return ranks and {
        "schema": "chainermn-oracle/1",
        "case": case["case"],
        "category": case["category"],
        "nprocs": comm.size,
        "dtype": "float64",
        "seed": seed,
        "versions": {"chainer": chainer.__version__, "numpy": np.__version__},
        "program": "programs.py: " + programs.program_of(case["case"]).__name__,
        "meta": case["meta"],
        "tolerance": case.get("tolerance", {"rtol": 1e-10, "atol": 1e-12}),
        "check": {
            "method": (
                f"central differences of the global objective, eps={EPS}, at most "
                f"{case.get('most', MOST)} elements of each tensor"
            ),
            "max_abs_err": worst,
            "expected_mismatch": case["category"] in ("hazard", "mnbn"),
            "per_tensor": per_tensor,
        },
        "ranks": ranks,
    }


def main(beginning=""):
    folder = Path(__file__).with_name("recorded")
    folder.mkdir(exist_ok=True)
    chainer.config.dtype = np.float64
    comm = chainermn.create_communicator("naive", mpi_comm=WORLD)
    for case in cases.cases():
        if case["nprocs"] == comm.size and case["case"].startswith(beginning):
            recorded = record(case, comm)
            if comm.rank == 0:
                (folder / f"{case['case']}.json").write_text(json.dumps(recorded) + "\n")
                print(
                    f"{case['case']:45s} {recorded['check']['max_abs_err']:.1e} "
                    f"{recorded['check']['per_tensor'] or ''}",
                    flush=True,
                )


if __name__ == "__main__":
    main(*sys.argv[1:])
