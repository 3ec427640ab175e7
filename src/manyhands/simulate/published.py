"""Published tables, as text in their sources.

Each is predicted from two of its rows by `predicted`.

docs/SIMULATE.md shows what comes of it, and where the model is wrong. None of these numbers were
measured here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from manyhands.simulate import networks
from manyhands.simulate.calibrate import calibrate
from manyhands.simulate.machines import named
from manyhands.simulate.training_step import Layer, Machine, Way, step

# rows: [(x, published number)]; fitted: the places of the rows that the constants are taken from;
# model(constants, x)
Model = Callable[[dict[str, float], Any], float]


class Table(NamedTuple):
    """A table that somebody has published, and the model that is to predict its rows."""

    name: str
    unit: str
    rows: list[tuple[Any, float]]
    fitted: tuple[int, ...]
    model: Model
    guess: dict[str, float]
    source: str


class Row(NamedTuple):
    """One row of a table: the published number and the predicted one."""

    x: Any
    published: float
    predicted: float
    fitted: bool


TF = "TensorFlow, docs_src/performance/benchmarks.md (2017)"
WHOLE = 1e15  # a bucket that holds everything: nothing is sent before backward has ended
# the networks whose gradients NCCL summed in the DGX-1, according to the source
NCCL_1 = ("VGG-16", "AlexNet")


def predicted(table: Table) -> tuple[dict[str, float], list[Row]]:
    """(constants, [Row]): the constants of a table's model, and what it says for each row.

    The constants come from the fitted rows only.
    """
    constants = calibrate(table.model, [table.rows[i] for i in table.fitted], table.guess)
    return constants, [
        Row(x, number, float(table.model(constants, x)), i in table.fitted)
        for i, (x, number) in enumerate(table.rows)
    ]


def tables() -> list[Table]:
    """All tables, in the order of docs/SIMULATE.md."""
    return [*_k80(), *_dgx_1(), *_pipelines(), _megatron()]


# -- images a second against GPUs: constants are the operations a second of one GPU, and the rate of
# one kind of links

K80 = {
    "Inception V3": (networks.inception_v3(), 64, (29.7, 229, 459, 902, 1783)),
    "ResNet-50": (networks.resnet(50), 64, (52.4, 378, 751, 1388, 2744)),
}
DGX_1 = {
    "Inception V3": (networks.inception_v3(), 64, (142, 284, 569, 1131)),
    "ResNet-50": (networks.resnet(50), 64, (219, 422, 852, 1734)),
    "ResNet-152": (networks.resnet(152), 64, (91.8, 181, 356, 716)),
    "VGG-16": (networks.vgg16(), 64, (154, 295, 584, 1081)),
    "AlexNet": (networks.alexnet(), 512, (2987, 5658, 10509, 17822)),
}


def _k80() -> Iterator[Table]:
    for name, (blocks, batch, images) in K80.items():
        yield Table(
            f"{name}, K80, parameter servers",
            "images/s",
            list(zip((1, 8, 16, 32, 64), images, strict=True)),
            (0, 4),
            _images_per_s(blocks, batch, "p2-8xlarge", "between", "parameter servers"),
            {"flops_per_s": 1e12, "between": 5e8},
            TF + ", EC2 p2.8xlarge, distributed_replicated, batch 64",
        )


def _dgx_1() -> Iterator[Table]:
    for name, (blocks, batch, images) in DGX_1.items():
        yield Table(
            f"{name}, P100 of a DGX-1",
            "images/s",
            list(zip((1, 2, 4, 8), images, strict=True)),
            (0, 3),
            _images_per_s(blocks, batch, "dgx-1-p100", "inside", "ring"),
            {"flops_per_s": 3e12, "inside": 1e10},
            TF + f", DGX-1, batch {batch}",
        )


def _images_per_s(
    blocks: Sequence[networks.Block], batch: int, machine: str, rate: str, all_reduce: str
) -> Model:
    """The rate of the links `rate` is a constant; nothing overlaps."""
    kind = named(machine).machine

    def model(constants: dict[str, float], gpus: int) -> float:
        links: dict[str, Any] = {rate: (getattr(kind, rate)[0], constants[rate])}
        layers = networks.layers(blocks, batch, constants["flops_per_s"])
        way = Way(gpus, bucket_bytes=WHOLE, all_reduce=all_reduce)
        return gpus * batch / step(kind._replace(**links), layers, way).seconds

    return model


# -- pipelines: constants are the speed, and how much dearer the dearest stage is than an average
# one


def _pipelines() -> Iterator[Table]:
    torchgpipe = {2: (1, 1.546, 1.780), 4: (1.006, 1.680, 2.711), 8: (0.932, 2.625, 4.966)}
    gpipe = {2: (1, 1.07, 1.21), 4: (1.13, 1.26, 1.84), 8: (1.38, 1.72, 3.48)}
    for name, measured, source in (
        (
            "torchgpipe",
            torchgpipe,
            "kakaobrain/torchgpipe, benchmarks/amoebanetd-speed/README.md, P40",
        ),
        ("GPipe", gpipe, "Huang et al. 2019, arXiv 1811.06965, table 2, TPU"),
    ):
        for stages, numbers in measured.items():
            yield Table(
                f"{name}, AmoebaNet-D, {stages} stages",
                "times 2 stages, 1 micro-batch",
                list(zip((1, 4, 32), numbers, strict=True)),
                (0, 2),
                _pipeline_speed(stages),
                {"speed": 1.0, "dearer": 0.1},
                source,
            )


def _pipeline_speed(stages: int) -> Model:
    free = Machine(stages, (0.0, 1e30), (0.0, 1e30))

    def model(constants: dict[str, float], micro_batches: int) -> float:
        dearest = (1 + constants["dearer"]) / stages
        parts = [dearest] + [(1 - dearest) / (stages - 1)] * (stages - 1)
        layers = [
            Layer(0.0, part / 3 / micro_batches, part * 2 / 3 / micro_batches) for part in parts
        ]
        return (
            constants["speed"]
            / step(free, layers, Way(1, stages, 1, micro_batches, schedule="gpipe")).seconds
        )

    return model


# -- three dimensions: constants are the operations a second of one GPU on very wide layers, and the
# width at which it
#    reaches half of them; the links have their published rates


def _megatron() -> Table:
    columns = ("width", "depth", "split", "stages", "gpus", "batch")
    configurations = (
        (2304, 24, 1, 1, 32, 512),
        (3072, 30, 2, 1, 64, 512),
        (4096, 36, 4, 1, 128, 512),
        (6144, 40, 8, 1, 256, 1024),
        (8192, 48, 8, 2, 512, 1536),
        (10240, 60, 8, 4, 1024, 1792),
        (12288, 80, 8, 8, 1536, 2304),
        (16384, 96, 8, 16, 1920, 2160),
        (20480, 105, 8, 35, 2520, 2520),
        (25600, 128, 8, 64, 3072, 3072),
    )
    measured = (137, 138, 142, 135, 138, 140, 148, 155, 163, 163)
    rows: list[tuple[Any, float]] = [
        (dict(zip(columns, configuration, strict=True)), number)
        for configuration, number in zip(configurations, measured, strict=True)
    ]
    machine = named("dgx-a100").machine

    def model(constants: dict[str, float], x: dict[str, int]) -> float:
        data = x["gpus"] // (x["split"] * x["stages"])
        blocks = networks.transformer(x["depth"], x["width"], 2048, 51_200)
        reached = constants["flops_per_s"] * x["width"] / (x["width"] + constants["half_width"])
        layers = networks.layers(blocks, 1, reached, itemsize=2, recompute=True)
        way = Way(data, x["stages"], x["split"], x["batch"] // data, all_reduce="hierarchical")
        seconds = step(machine, layers, way).seconds
        return megatron_flops(x) / seconds / x["gpus"] / 1e12

    return Table(
        "GPT of 1.7 to 1008 billion, A100",
        "TFLOP/s a GPU",
        rows,
        (0, 6),
        model,
        {"flops_per_s": 2e14, "half_width": 1e3},
        "Narayanan et al. 2021, arXiv 2104.04473, table 1; micro-batches of 1 and plain 1F1B "
        "assumed",
    )


def megatron_flops(x: dict[str, int]) -> float:
    """Operations of a step, as the paper counts them (equation 3).

    Activations are computed twice.
    """
    width, depth, words, length = x["width"], x["depth"], 51_200, 2048
    return (
        96
        * x["batch"]
        * length
        * depth
        * width**2
        * (1 + length / (6 * width) + words / (16 * depth * width))
    )


# -- not fitted: what the published numbers of the machine alone give


def unfitted(reached: float = 0.7) -> list[tuple[str, int, float, float]]:
    """[(table, GPUs, published, predicted)]: only the speed of one GPU is taken from a table.

    The links have `reached` of their published rates, nothing overlaps, and the library chooses the
    all-reduce (`auto`), except where the source names NCCL in May 2017 (`nccl_1`).
    """
    rows = []
    for what, kind, counts, numbers in (
        ("K80", "p2-8xlarge", (1, 8, 16, 32, 64), K80),
        ("P100 of a DGX-1", "dgx-1-p100", (1, 2, 4, 8), DGX_1),
    ):
        for name, (blocks, batch, images) in numbers.items():
            machine, all_reduce = named(kind, reached).machine, "auto"
            if kind == "dgx-1-p100" and name in NCCL_1:
                machine, all_reduce = nccl_1(reached), "ring"
            layers = networks.layers(blocks, batch, networks.flops(blocks) * images[0])
            for gpus, number in list(zip(counts, images, strict=True))[1:]:
                way = Way(gpus, bucket_bytes=WHOLE, all_reduce=all_reduce)
                rows.append(
                    (
                        f"{name}, {what}",
                        gpus,
                        number,
                        gpus * batch / step(machine, layers, way).seconds,
                    )
                )
    return [
        *rows,
        ("ResNet-101, Pascal, Horovod: efficiency", 512, 0.9, horovod(512) / 512 / horovod(1)),
        ("ResNet-50, P100, Goyal: steps of 8 GPUs", 352, 1.12, goyal(44, None) / goyal(1, None)),
    ]


def nccl_1(reached: float) -> Machine:
    """The P100 of a DGX-1 as NCCL 1 used them: the `Machine` that its only ring sees.

    Until version 2, NCCL built a single ring, in the order of the devices' numbers, and passed data
    through the host's memory where two neighbours could not reach each other. In a DGX-1, one
    NVLink (20 GB/s) joins any two GPUs of 0 to 3 and of 4 to 7, but none joins 3 to 4 or 7 to 0:
    these two hops of a ring of eight take PCIe 3.0 x16, some 12 GB/s. NVIDIA/nccl v1.3.4,
    src/core.cu (`orderRanks`, `commBuildMaps`), and issues 666 and 301; Tesla P100 white paper.
    """
    return Machine(4, (5e-6, 20e9 * reached), (5e-6, 12e9 * reached))


def goyal(
    servers: int,
    spread: float | None = 0.0,
    all_reduce: str = "hierarchical, halving and doubling",
    bucket_bytes: float = 4 * 2**20,
) -> float:
    """Seconds of an iteration of ResNet-50 on `servers` of 8 P100, 32 images a GPU.

    Goyal et al. 2017.

    A P100 needs 0.19 s for an iteration on 8 GPUs (an epoch takes "over 16 minutes"). The sum
    inside a server and the 50 Gbit/s between servers are the published rates, the latter 0.7
    reached. `spread`: of the ranks' times, exponential: the mean of 20 draws; None:
    `stragglers.usual`.
    """
    from manyhands.simulate.stragglers import slowness

    blocks = networks.resnet(50)
    way = Way(8 * servers, all_reduce=all_reduce, bucket_bytes=bucket_bytes)
    machine = named("big-basin-p100").machine
    machine = machine._replace(between=(machine.between[0], 0.7 * machine.between[1]))
    layers = networks.layers(blocks, 32, networks.flops(blocks) * 32 / 0.19)
    if spread is None:
        return step(machine, layers, way).seconds
    drawn = [slowness(way, spread, "exponential", seed) for seed in range(20 if spread else 1)]
    return sum(step(machine, layers, way, slow).seconds for slow in drawn) / len(drawn)


def horovod(gpus: int) -> float:
    """Images a second of ResNet-101 on Pascal GPUs, four a server, 25 Gbit/s, a batch of 64.

    It is predicted from the row of 16 GPUs, 1656.82 images/s, and the published rate.
    docs/benchmarks.rst of horovod/horovod.
    """
    machine, blocks = named("pascal-roce").machine, networks.resnet(101)

    def model(constants: dict[str, float], gpus: int) -> float:
        layers = networks.layers(blocks, 64, constants["flops_per_s"])
        return gpus * 64 / step(machine, layers, Way(gpus, bucket_bytes=64 * 2**20)).seconds

    return model(calibrate(model, [(16, 1656.82)], {"flops_per_s": 5e12}), gpus)
