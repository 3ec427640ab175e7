"""One training step on many ranks, simulated.

From a machine, a model and a way to train it tells what a step takes.

    machine = Machine(ranks_per_node=8, inside=(5e-6, 150e9), between=(1e-5, 12.5e9),
    links_per_node=4) block = Layer(weights_bytes=200e6, forward_s=2e-3, backward_s=4e-3,
    activation_bytes=16e6) step(machine, [block] * 24, Way(data=16, stages=4, split=8,
    micro_batches=32))

All times are seconds, all sizes bytes. What is assumed, besides the links of `collective_costs` and
the rendezvous of `clocks`:

* Ranks are numbered so that those of a split layer are neighbours, then the replicas, then the
  stages; nodes are filled in this order, as Megatron-LM does. Groups of ranks that work at the same
  time share a node's links evenly.
* A layer cut over `split` ranks computes `split` times as fast. A transformer block all-reduces its
  output twice in forward and twice in backward (Shoeybi et al. 2019, arXiv 1909.08053), and twice
  more in backward where forward is computed again there. `Layer.sums` says so for other layers.
  These wait, because nothing hides them.
* The gradients of a layer are ready when its backward of the *last* micro-batch is; they travel in
  buckets, one after the other, beside the computing (`fusion.buckets`). ZeRO's stages 1 and 2
  reduce-scatter them so, and gather the weights after the step. Stage 3 goes by layers in place of
  buckets: a layer's weights are gathered while the one before it computes, for every forward and
  backward anew, and its gradients reduce-scattered over the same link.
* Where backward is cut in two ("I", "W", in orders of your own), each is half of it; gradients are
  ready with "W".
* The update of the weights, and reading the data, cost nothing: put them into the layers' times.

100,000 ranks take well under a second: replicas are places of arrays, and only stages,
micro-batches and layers are gone through one by one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from manyhands.simulate import pipeline, placement, stragglers
from manyhands.simulate.checked_input import (
    MOST_RANKS,
    check_fields,
    check_link,
    check_real,
    check_whole,
)
from manyhands.simulate.fusion import buckets

if TYPE_CHECKING:
    from manyhands.simulate.checked_input import Array


class Machine(NamedTuple):
    """What a training step runs on.

    `inside` and `between` are (latency_s, bytes_per_s) of a link inside a node, and of one of its
    `links_per_node` links to others. `inside_shared_by` says by how many ranks of the node, at
    most, the link is shared if they send at the same time (a bus). `adds` says where switches add
    numbers up, and is one of `placement.ADDS`. `torus` is the number of axes of a torus in which
    `inside` is a link to one neighbour, 0 where there is none.
    """

    ranks_per_node: int
    inside: tuple[float, float]
    between: tuple[float, float]
    links_per_node: int = 1
    inside_shared_by: float = 1
    adds: str = ""
    torus: int = 0


class Layer(NamedTuple):
    """One layer; all numbers are of the whole layer and one micro-batch of one replica.

    `activation_bytes` is its output, which goes on to the next layer. `sums` are the sizes of what
    ranks that share the layer all-reduce in forward and in backward; None stands for its output,
    twice each.
    """

    weights_bytes: float
    forward_s: float
    backward_s: float
    activation_bytes: float = 0.0
    sums: Sequence[Sequence[float]] | None = None


class Way(NamedTuple):
    """How a network is trained on a machine.

    micro_batch_s: what each forward and each backward of a micro-batch costs on a stage besides its
    computing; data: replicas; stages: ranks of the pipeline; split: ranks that share each layer;
    zero: stage of ZeRO; schedule: "gpipe", "1f1b", "interleaved" (with `chunks` blocks of layers on
    each rank), or orders of your own; all_reduce: one of `placement.ALL_REDUCES`, of the gradients;
    servers: with "parameter servers", so many hosts apart, or 0: one on each node; overhead_s: how
    long each message occupies a server besides its bytes.
    """

    data: int = 1
    stages: int = 1
    split: int = 1
    micro_batches: int = 1
    zero: int = 0
    schedule: str | Sequence[Sequence[pipeline.Event]] = "1f1b"
    bucket_bytes: float = 25 * 2**20
    all_reduce: str = "ring"
    chunks: int = 1
    servers: int = 0
    micro_batch_s: float = 0.0
    overhead_s: float = 0.0


class Step(NamedTuple):
    """The seconds of a training step, and where they go.

    The parts (0 to 1) are those in which an average rank computes, waits in its pipeline, and is
    kept by messages that nothing hides or by slower ranks. They sum to 1.
    """

    seconds: float
    computing: float
    bubble: float
    exposed: float


SCHEDULES: dict[str, Callable[..., pipeline.Orders]] = {
    "gpipe": pipeline.gpipe,
    "1f1b": pipeline.one_f_one_b,
    "interleaved": pipeline.interleaved,
}
# the kinds of events that wait for messages of split layers, and for weights that ZeRO 3 gathers
WAITING = "FBI"


def step(
    machine: Machine,
    layers: Sequence[Layer],
    way: Way,
    slowness: float | Sequence[Any] | Array | None = None,
) -> Step:
    """The `Step` of `layers`, in forward order, trained in this way on this machine.

    `slowness`: by what factor each rank's computing takes longer, an array [stages, data, split],
    or 1 for ranks that are all alike; by default `stragglers.usual`: 1 below 64 ranks, and factors
    that are 1 % apart from there on. ValueError where the way does not fit: fewer layers than
    blocks of the pipeline, a number that cannot be, an unknown name. Its sentence names the field.
    """
    _check_machine(machine)
    _check(machine, way)
    _check_layers(layers)
    orders = _orders(way)
    rank_of = {event.stage: rank for rank, order in enumerate(orders) for event in order}
    if len(layers) < len(rank_of):
        raise ValueError(f"{len(layers)} layers in {len(rank_of)} stages: each stage needs a layer")
    slow = stragglers.usual(way) if slowness is None else _factors(slowness)
    if slow.ndim == 0:
        slow = np.full((way.stages, way.data, way.split), float(slow))
    if slow.shape != (way.stages, way.data, way.split):
        raise ValueError(
            f"slowness has the shape {slow.shape}: it is [stages, data, split] = "
            f"{(way.stages, way.data, way.split)}"
        )
    # ranks that share a layer wait for each other at its end: [stages, data]
    slowest = slow.max(-1)
    if way.zero == 3:  # and so do replicas, where they gather its weights
        slowest = np.broadcast_to(slowest.max(-1, keepdims=True), slowest.shape)
    cuts = pipeline.cut([layer.forward_s + layer.backward_s for layer in layers], len(rank_of))
    work = {
        (stage, kind): _Work(machine, layers[cut], way, kind)
        for stage, cut in enumerate(cuts)
        for kind in "FBIW"
    }
    # after which event the gradients of each stage are whole
    last = [{event.stage: event for event in order if event.kind in "BW"} for order in orders]

    # replicas that are alike in all are played as one
    played = slowest[:, :1] if (slowest == slowest[:, :1]).all() else slowest

    @functools.cache
    def event_s(stage: int, kind: str, scatters: bool) -> Any:
        done_s = work[stage, kind].run(played[rank_of[stage]], scatters)[0][-1]
        return done_s if done_s.size > 1 else float(done_s[0])

    def seconds(event: pipeline.Event) -> Any:
        scatters = way.zero == 3 and last[rank_of[event.stage]][event.stage] == event
        return event_s(event.stage, event.kind, scatters)

    spans = pipeline.play(
        orders, seconds, placement.borders_s(machine, [layers[cut] for cut in cuts], way)
    )
    ends = []
    for rank, row in enumerate(spans):
        whole = [
            (work[span.stage, span.kind], span)
            for span in row
            if last[rank][span.stage] == tuple(span)[:3]
        ]
        ends.append(_new_weights_s(machine, way, whole, slowest[rank], row[-1].stop_s))
    finish_s = max(np.max(end) for end in ends)
    if finish_s == 0:
        raise ValueError(
            "forward_s and backward_s are 0 for all layers, so the step would take no time"
        )
    played_s = np.mean(np.max([row[-1].stop_s for row in spans], 0))  # each replica by itself
    busy_s = np.mean([sum(span.stop_s - span.start_s for span in row) for row in spans])
    # an average rank's own computing: the rest of its events is waiting for messages, or for a
    # slower neighbour
    own_s = np.mean(
        [
            sum(work[event.stage, event.kind].computing_s for event in order) * row.mean()
            for order, row in zip(orders, slow, strict=True)
        ]
    )
    return Step(
        float(finish_s),
        float(own_s / finish_s),
        float((played_s - busy_s) / finish_s),
        float((finish_s - played_s + busy_s - own_s) / finish_s),
    )


class _Work:
    """One kind of event of one block of layers, on one micro-batch.

    It is computing, and the messages that it waits for.
    """

    def __init__(self, machine: Machine, block: Sequence[Layer], way: Way, kind: str) -> None:
        layers = block if kind == "F" else block[::-1]
        part = {"F": 1, "B": 1, "I": 0.5, "W": 0.5}[kind]
        waits = kind in WAITING
        self.layers_s = [
            part * (layer.forward_s if kind == "F" else layer.backward_s) / way.split
            for layer in layers
        ]
        self.layers_s[0] += part * way.micro_batch_s
        self.computing_s = sum(self.layers_s)
        sums = [layer.sums or 2 * (2 * (layer.activation_bytes,),) for layer in layers]
        self.split_s = [
            (
                sum(placement.ring(machine, way.split, 1, size) for size in layer_sums[kind != "F"])
                if waits
                else 0.0
            )
            for layer_sums in sums
        ]
        self.sizes = [layer.weights_bytes / way.split for layer in layers]
        self.moves_s = [
            placement.ring(machine, way.data, way.split, size) / 2 if way.zero == 3 else 0.0
            for size in self.sizes
        ]
        self.gathers_s = self.moves_s if waits else [0.0] * len(layers)

    def run(self, slow: Array, scattering: bool = False) -> tuple[list[Array], Array]:
        """When each layer is done, [layers][replicas]; when the link is free again.

        Both are counted from the start of the event.

        The link takes, in this order: the gather of the next layer, begun with this one, and, if
        `scattering`, the reduce-scatter of this one's gradients, when it is done.
        """
        done_s, ready_s = 0 * slow, []
        link_s = gathered_s = self.gathers_s[0] + done_s
        for i, (layer_s, split_s) in enumerate(zip(self.layers_s, self.split_s, strict=True)):
            start_s = np.maximum(done_s, gathered_s)
            if i + 1 < len(self.layers_s):
                link_s = gathered_s = np.maximum(link_s, start_s) + self.gathers_s[i + 1]
            done_s = start_s + layer_s * slow + split_s
            ready_s.append(done_s)
            if scattering:
                link_s = np.maximum(link_s, done_s) + self.moves_s[i]
        return ready_s, link_s


def _new_weights_s(
    machine: Machine,
    way: Way,
    whole: Sequence[tuple[_Work, pipeline.Span]],
    slow: Array,
    stop_s: Any,
) -> Any:
    """When each replica of a rank of the pipeline has its new weights: [data].

    `whole`: for each of its blocks, in the order of the step, its work and the `Span` of the event
    after which its gradients are whole; `stop_s`: its last.
    """
    if way.data == 1:
        return stop_s
    free_s, share = (
        np.zeros(way.data),
        placement.reduce_scatter if way.zero else placement.all_reduce,
    )
    for work, span in whole:
        ready_s, scattered_s = work.run(slow, scattering=way.zero == 3)
        if way.zero == 3:
            free_s = np.maximum(free_s, span.start_s + scattered_s)
            continue
        for bucket in buckets(work.sizes, way.bucket_bytes):
            start_s = np.maximum(free_s, span.start_s + ready_s[bucket[-1]])
            free_s = share(machine, way, start_s, sum(work.sizes[i] for i in bucket))
    stop_s = np.maximum(free_s, stop_s)
    if way.zero in (1, 2):
        weights = sum(sum(work.sizes) for work, _ in whole)
        stop_s = stop_s.max() + placement.ring(machine, way.data, way.split, weights) / 2
    return stop_s


def _orders(way: Way) -> pipeline.Orders:
    if not isinstance(way.schedule, str):
        return _own_orders(way)
    if way.schedule not in SCHEDULES:
        raise ValueError(
            f"schedule is {way.schedule!r}: there are {', '.join(SCHEDULES)}, or a list of orders"
        )
    if way.schedule == "interleaved":
        return pipeline.interleaved(way.stages, way.micro_batches, way.chunks)
    if way.chunks != 1:
        raise ValueError(
            f"{way.chunks} chunks with {way.schedule}: only interleaved has several blocks on a "
            "rank"
        )
    return SCHEDULES[way.schedule](way.stages, way.micro_batches)


def _own_orders(way: Way) -> pipeline.Orders:
    """The orders of a schedule that the caller has written.

    They are refused unless each stage computes forward and backward in them.
    """
    if not isinstance(way.schedule, (list, tuple)) or not all(
        isinstance(order, (list, tuple)) for order in way.schedule
    ):
        raise ValueError(
            f"schedule is {way.schedule!r}: there are {', '.join(SCHEDULES)}, or a list of orders"
        )
    orders = [list(order) for order in way.schedule]
    if len(orders) != way.stages:
        raise ValueError(
            f"{len(orders)} orders for {way.stages} stages: each rank of the pipeline needs one"
        )
    done: dict[int, list[tuple[str, int]]] = {}
    rank_of: dict[int, int] = {}
    for rank, order in enumerate(orders):
        for event in order:
            check_fields(f"An event of rank {rank} in schedule", event, pipeline.Event)
            if event.kind not in tuple("FBIW"):
                raise ValueError(
                    f"schedule has an event of the kind {event.kind!r}: there are F, B, I and W"
                )
            if rank_of.setdefault(event.stage, rank) != rank:
                raise ValueError(
                    f"schedule has stage {event.stage} on ranks {rank_of[event.stage]} and {rank}: "
                    "a stage has one rank"
                )
            done.setdefault(event.stage, []).append((event.kind, event.micro_batch))
        if not order:
            raise ValueError(
                f"schedule has no events for rank {rank}: each rank of the pipeline needs some"
            )
    if set(done) != set(range(len(done))):
        raise ValueError(
            f"schedule has the stages {sorted(done)}: they are numbered from 0 without a gap"
        )
    for stage, events in done.items():
        twice = sorted({event for event in events if events.count(event) > 1})
        if twice:
            raise ValueError(
                f"schedule has the event {twice[0][0]} of micro-batch {twice[0][1]} twice on stage "
                f"{stage}: each happens once"
            )
        missing = {m for kind, m in events if kind == "F"} ^ {
            m for kind, m in events if kind in "BW"
        }
        if missing:
            raise ValueError(
                f"schedule lacks forward or backward of micro-batch {min(missing)} on stage "
                f"{stage}: it needs F, and B or both I and W"
            )
    return orders


def _factors(slowness: object) -> Array:
    try:
        slow = np.asarray(slowness, float)
    except (TypeError, ValueError):
        raise ValueError(
            f"slowness is {slowness!r}: it must be a number or an array of numbers"
        ) from None
    if not (np.isfinite(slow) & (slow >= 0)).all():
        raise ValueError(
            "slowness has a factor that is not a number of 0 or more: 1 is a rank of the usual "
            "speed"
        )
    return slow


def _check_layers(layers: Sequence[Layer]) -> None:
    if not isinstance(layers, (list, tuple)):
        raise ValueError(f"layers is {layers!r}: it must be a list of Layer")
    checked = set()
    for number, layer in enumerate(layers):
        if id(layer) in checked:  # a list often has the same layer many times
            continue
        checked.add(id(layer))
        check_fields(f"Layer {number}", layer, Layer)
        for name in ("weights_bytes", "forward_s", "backward_s", "activation_bytes"):
            check_real(f"{name} of layer {number}", getattr(layer, name))
        if layer.sums is not None:
            pair = isinstance(layer.sums, (list, tuple)) and len(layer.sums) == 2
            if not pair or not all(isinstance(sizes, (list, tuple)) for sizes in layer.sums):
                raise ValueError(
                    f"sums of layer {number} is {layer.sums!r}: it must be two lists of sizes in "
                    "bytes, for forward and for backward"
                )
            for size in (size for sizes in layer.sums for size in sizes):
                check_real(f"A size in sums of layer {number}", size)


def _check_machine(machine: Machine) -> None:
    check_fields("machine", machine, Machine)
    for name in ("ranks_per_node", "links_per_node"):
        check_whole(name, getattr(machine, name))
    check_link("inside", machine.inside)
    check_link("between", machine.between)
    if check_real("inside_shared_by", machine.inside_shared_by) < 1:
        raise ValueError(
            f"inside_shared_by is {machine.inside_shared_by!r}: it must be a number of ranks, from "
            "1 up"
        )
    if machine.adds not in placement.ADDS:
        raise ValueError(
            f"adds is {machine.adds!r}: there are {', '.join(map(repr, placement.ADDS))}"
        )
    check_whole("torus", machine.torus, least=0)


def _check(machine: Machine, way: Way) -> None:
    check_fields("way", way, Way)
    for name in ("data", "stages", "split", "micro_batches", "chunks"):
        check_whole(name, getattr(way, name))
    check_whole(
        "data x stages x split, the number of ranks,",
        way.data * way.stages * way.split,
        most=MOST_RANKS,
    )
    check_real("bucket_bytes", way.bucket_bytes, finite=False)
    check_real("micro_batch_s", way.micro_batch_s, unit=" seconds")
    check_real("overhead_s", way.overhead_s, unit=" seconds")
    check_whole("servers", way.servers, least=0)
    if way.zero not in (0, 1, 2, 3):
        raise ValueError(f"zero is {way.zero!r}: ZeRO has the stages 0, 1, 2 and 3")
    if way.all_reduce not in placement.ALL_REDUCES:
        raise ValueError(
            f"all_reduce is {way.all_reduce!r}: there are {'; '.join(placement.ALL_REDUCES)}"
        )
    if not placement.supports(machine, way, way.all_reduce):
        raise ValueError(
            f"all_reduce is {way.all_reduce!r}: this machine has no switches that add (`adds`), or "
            "no torus that holds all replicas"
        )
    if way.servers < 0 or (way.servers and way.all_reduce != "parameter servers"):
        raise ValueError(
            f"{way.servers} servers with {way.all_reduce}: they go with parameter servers only, 0 "
            "or more"
        )
