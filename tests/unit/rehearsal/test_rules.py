"""Programs as traces: the bad ones with what is to be found, the good ones with nothing."""

import pytest
from stories import SMALL, story

from manyhands.rehearsal import Event, Layout, Part, judge
from manyhands.rehearsal.rules import SEVERITIES
from manyhands.rehearsal.trace import CURRENT, NO_ANSWER, ON_CPU

STRIDED = Layout(shape=(4, 4), contiguous=False, dense=True)
HOLES = Layout(shape=(4,), contiguous=False, dense=False)
CHANNELS_LAST = Layout(shape=(2, 3, 4, 4), contiguous=False, channels_last=True)
CPU = {"group": ("cpu", (0, 1)), "backend": "gloo"}


def sends_first(r):
    r.message("send", 1 - r.rank), r.message("recv", 1 - r.rank)


def opposite(r):
    works = [r.message("isend", 1 - r.rank), r.message("irecv", 1 - r.rank)]
    [r.wait(work) for work in works]


def ring_without_batch(r):
    work = r.message("isend", (r.rank + 1) % len(r.all))
    r.message("recv", (r.rank - 1) % len(r.all)), r.wait(work)


def tags_crossed(r):
    call = ("isend", "irecv")[r.rank]
    [
        r.wait(work)
        for work in [r.message(call, 1 - r.rank, tag=tag) for tag in ((7, 8), (8, 7))[r.rank]]
    ]


def two_orders(r, met=False):
    groups = [("a", r.all), ("b", r.all)]
    if met:
        [r.collective(group=group) for group in groups]
    groups = groups[:: 1 if r.rank == 0 else -1]
    [r.wait(work) for work in [r.collective(group=group, later=True) for group in groups]]


def orders_that_wait(r):
    [
        r.collective(group=group)
        for group in [("a", r.all), ("b", r.all)][:: 1 if r.rank == 0 else -1]
    ]


def one_misses(r):
    if r.rank:
        r.collective()


def only_two_batch(r):
    if r.rank < 2:
        r.wait(r.batch(("send" if r.rank == 0 else "recv", 1 - r.rank)))
    r.collective()


def early(r):
    work = r.collective(later=True)
    r.add("early", of=work, call="sum", text="reads the tensor"), r.wait(work)


def timed_too_early(r):
    r.add("clock"), r.collective(), r.add("clock")


def half_a_batch(r):
    r.collective()
    r.wait(r.batch(("send" if r.rank == 0 else "recv", 1 - r.rank)))
    r.wait(r.batch(("recv", 1 - r.rank), ("recv", 1 - r.rank)))


def messages_against_collective(r):
    if r.rank == 0:
        r.message("send", 1), r.collective()
    else:
        r.collective(), r.message("recv", 0)


def with_cpu_wait_crossed(r):
    """Rank 0 reads before it joins the second collective.

    Rank 1 has the second one first on the stream.
    """
    groups = [("a", r.all), ("b", r.all)]
    for group in groups if r.rank == 0 else reversed(groups):
        r.wait(r.collective(group=group, later=True)), r.add("read")


def columns(r, call):
    """A list of columns is gathered, or scattered, with a tensor of its own."""
    whole = Layout(shape=(4, 4))
    tensors = (
        (whole, STRIDED, STRIDED) if call in ("all_gather", "gather") else (STRIDED, STRIDED, whole)
    )
    r.add(
        "collective",
        call=call,
        ranks=r.all,
        tensors=tensors,
        op="SUM" if call == "reduce_scatter" else None,
    )


def objects(r, tensor=Layout("int64", (1,)), way=None, peer=-1, **facts):
    """Of two ranks the first sends, or both do the same."""
    way = way or ("send", "recv")[r.rank]
    part = Part(way, 1 - r.rank if peer == -1 else peer, tensor=tensor)
    r.add("message", call=f"{way}_object_list", ranks=r.all, parts=(part,), **facts)


def group_of_two(r):
    if r.rank < 2:
        r.add("group", call="new_group", text="[0, 1]")


def second_work(r):
    work = r.batch(("send", 1 - r.rank), ("recv", 1 - r.rank))
    r.add("works", call="batch_isend_irecv"), r.wait(work)


BAD = {  # name: (ranks, program, severity, what is said)
    "both send first": (2, sends_first, "hangs", "rendezvous"),
    "opposite isend and irecv": (2, opposite, "hangs", "rendezvous"),
    "a ring without a batch": (3, ring_without_batch, "hangs", "rendezvous"),
    "tags that cross": (2, tags_crossed, "differs", "a different tag"),
    "two groups in two orders at their first use": (2, two_orders, "hangs", "rendezvous"),
    "two groups in two orders": (
        2,
        lambda r: two_orders(r, met=True),
        "may hang",
        "the other order",
    ),
    "two groups in two orders, waited for": (2, orders_that_wait, "hangs", "rendezvous"),
    "a collective that one rank misses": (3, one_misses, "hangs", "for rank 0"),
    "a batch of two as the first call": (4, only_two_batch, "may hang", "first call"),
    "read before the wait": (2, early, "differs", "reads the tensor"),
    "a clock around a collective": (2, timed_too_early, "remark", "queued on the GPU"),
    "never waited for": (2, lambda r: r.collective(later=True), "differs", "never waited for"),
    "receives without sends": (2, half_a_batch, "hangs", "rendezvous|for ever"),
    "a message against a collective": (
        2,
        messages_against_collective,
        "hangs",
        "rendezvous|for ever",
    ),
    "reads between two orders": (2, with_cpu_wait_crossed, "hangs", "rendezvous"),
    "int16": (2, lambda r: r.collective(tensor=Layout("int16")), "fails", "int16"),
    "uint32 as a message": (
        2,
        lambda r: r.message(
            "sr"[r.rank] + ("end", "ecv")[r.rank], 1 - r.rank, tensor=Layout("uint32")
        ),
        "fails",
        "uint32",
    ),
    "bitwise or": (2, lambda r: r.collective(op="BOR"), "fails", "BOR"),
    "average of bool": (
        2,
        lambda r: r.collective(op="AVG", tensor=Layout("bool")),
        "fails",
        "bool",
    ),
    "transposed": (2, lambda r: r.collective(tensor=STRIDED), "fails", "not contiguous"),
    "a column": (
        2,
        lambda r: r.collective(tensor=HOLES),
        "fails",
        "not contiguous, and gloo's result is wrong as well",
    ),
    "holes in a message": (
        2,
        lambda r: r.message(("send", "recv")[r.rank], 1 - r.rank, tensor=HOLES),
        "fails",
        "gaps",
    ),
    "sparse": (2, lambda r: r.collective(tensor=Layout(sparse=True)), "fails", "sparse"),
    "monitored barrier": (2, lambda r: r.collective("monitored_barrier"), "fails", "gloo only"),
    "from anybody": (2, lambda r: r.rank or r.message("recv", None), "fails", "any rank"),
    "another size": (
        2,
        lambda r: r.collective(tensor=Layout(shape=(r.rank + 1,))),
        "may hang",
        "a different size: NCCL does not check, and a rank may wait forever",
    ),
    "as many elements of another size": (
        2,
        lambda r: r.collective(tensor=Layout(("float64", "float32")[r.rank])),
        "may hang",
        "a different size and dtype",
    ),
    "another dtype": (
        2,
        lambda r: r.collective(tensor=Layout(("int32", "float32")[r.rank])),
        "differs",
        "a different dtype",
    ),
    "another root": (
        2,
        lambda r: r.collective("broadcast", root=r.rank),
        "may hang",
        "a different root",
    ),
    "another size, gathered into one": (
        2,
        lambda r: r.collective("all_gather_single", tensor=Layout(shape=(r.rank + 1,))),
        "may hang",
        "a different size",
    ),
    "another operation": (
        2,
        lambda r: r.collective(op=("SUM", "MAX")[r.rank]),
        "differs",
        "a different operation",
    ),
    "a larger receive": (
        2,
        lambda r: r.message(
            ("send", "recv")[r.rank], 1 - r.rank, tensor=Layout(shape=(4 + r.rank,))
        ),
        "may hang",
        "a different size",
    ),
    "a message of another dtype": (
        2,
        lambda r: r.message(
            ("send", "recv")[r.rank], 1 - r.rank, tensor=Layout(("int32", "float32")[r.rank])
        ),
        "differs",
        "a different dtype",
    ),
    "a message of bytes against their view": (
        2,
        lambda r: r.message(
            ("send", "recv")[r.rank],
            1 - r.rank,
            tensor=(Layout("uint8", (8,)), Layout("bfloat16"))[r.rank],
        ),
        "may hang",
        "a different size",
    ),
    "another collective": (
        2,
        lambda r: r.collective("broadcast", root=0) if r.rank == 0 else r.collective("barrier"),
        "may hang",
        "two different collectives",
    ),
    "columns gathered": (2, lambda r: columns(r, "gather"), "differs", "as it is"),
    "columns scattered": (2, lambda r: columns(r, "scatter"), "differs", "as it is"),
    "columns to all": (2, lambda r: columns(r, "all_to_all"), "fails", "not contiguous"),
    "channels last on one rank": (
        2,
        lambda r: r.collective(
            "broadcast", tensor=(CHANNELS_LAST, Layout(shape=(2, 3, 4, 4)))[r.rank]
        ),
        "differs",
        "a different layout",
    ),
    "a group that its members alone make": (3, group_of_two, "may hang", "by all ranks"),
    "groups in two orders": (
        2,
        lambda r: [
            r.add("group", call="new_group", text=f"[{rank}]") for rank in (r.rank, 1 - r.rank)
        ],
        "may hang",
        "by all ranks",
    ),
    "the second work of a batch": (2, second_work, "fails", "one work"),
    "a caught error": (
        2,
        lambda r: r.add("error", call="recv", text="RuntimeError"),
        "differs",
        "the error is gloo's",
    ),
    "a caught time-out": (
        2,
        lambda r: r.add("error", call="recv", text=NO_ANSWER),
        "differs",
        "NCCL raises nothing here: the rank waits, or the watchdog",
    ),
    "objects by message, on the CPU": (
        2,
        lambda r: objects(r, text=ON_CPU),
        "fails",
        "given the CPU",
    ),
    "objects by message, from anybody": (
        2,
        lambda r: r.rank or objects(r, peer=None),
        "fails",
        "any rank",
    ),
    "objects by message, lists of two lengths": (
        2,
        lambda r: objects(r, Layout("int64", (1 + r.rank,))),
        "may hang",
        "a different size",
    ),
    "objects by message, both first": (
        2,
        lambda r: (objects(r, way="send"), objects(r, way="recv")),
        "hangs",
        "rendezvous",
    ),
}


def parity(r):
    calls = ("send", "recv")[:: 1 if r.rank % 2 == 0 else -1]
    [r.message(call, r.rank ^ 1) for call in calls]


def ring(r):
    r.wait(r.batch(("send", (r.rank + 1) % len(r.all)), ("recv", (r.rank - 1) % len(r.all))))


def pipeline(r):
    """Four micro-batches forward, then backward: each stage receives, then sends."""
    last = r.all[-1]
    for steps in [[r.rank - 1, r.rank + 1], [r.rank + 1, r.rank - 1]]:
        for _ in range(4):
            [
                r.message(call, peer)
                for call, peer in zip(("recv", "send"), steps, strict=True)
                if 0 <= peer <= last
            ]


def halves(r):
    mine = (0, 1) if r.rank < 2 else (2, 3)
    r.collective(group=(str(mine), mine)), r.collective()


def pairs_and_whole(r):
    parity(r), r.collective(), parity(r)


def buckets(r):
    """As DDP does: all-reduces that overlap, then the waits."""
    [r.wait(work) for work in [r.collective(later=True) for _ in range(3)]]


def timed_well(r):
    r.add("clock"), r.collective(), r.add("read"), r.add("clock")


def cpu_group(r):
    r.collective("monitored_barrier", **CPU), r.collective(op="BOR", tensor=Layout("int16"), **CPU)
    sends = r.message("isend", 1 - r.rank, tag=r.rank, **CPU)
    r.message("recv", 1 - r.rank, tag=1 - r.rank, **CPU), r.wait(sends)
    r.collective()


def batch_after_collective(r):
    r.collective()
    if r.rank < 2:
        r.wait(r.batch(("send" if r.rank == 0 else "recv", 1 - r.rank)))


def crossed_batch(r):
    """Two messages each way, in one order on both sides; the calls mixed."""
    there, back = ("send", 1 - r.rank), ("recv", 1 - r.rank)
    parts = [there, there, back, back] if r.rank == 0 else [back, there, back, there]
    r.wait(r.batch(*parts))


def same_tags(r):
    [r.message(("send", "recv")[r.rank], 1 - r.rank, tag=tag) for tag in (7, 8)]


def two_groups_one_order(r):
    [
        r.wait(work)
        for work in [
            r.collective(group=group, later=True) for group in [("a", r.all), ("b", r.all)]
        ]
    ]


def master_and_workers(r):
    for worker in r.all[1:]:
        if r.rank == 0:
            r.message("send", worker), r.message("recv", worker)
        elif r.rank == worker:
            r.message("recv", 0), r.message("send", 0)


GOOD = {
    "all-reduce": (4, lambda r: r.collective()),
    "even ranks send first": (4, parity),
    "a ring in a batch": (4, ring),
    "a ring of two": (2, ring),
    "a pipeline": (4, pipeline),
    "two halves, then all": (4, halves),
    "pairs and the whole group in turn": (4, pairs_and_whole),
    "overlapping all-reduces": (4, buckets),
    "a clock after the GPU": (2, timed_well),
    "a CPU group": (2, cpu_group),
    "a batch of two after a collective": (4, batch_after_collective),
    "a batch in another order": (2, crossed_batch),
    "tags in one order": (2, same_tags),
    "two groups in one order": (2, two_groups_one_order),
    "master and workers": (4, master_and_workers),
    "bfloat16 and bool": (
        2,
        lambda r: [
            r.collective(tensor=Layout(dtype)) for dtype in ("bfloat16", "bool", "float8_e4m3fn")
        ],
    ),
    "a transposed message, both sides": (
        2,
        lambda r: r.message(("send", "recv")[r.rank], 1 - r.rank, tensor=STRIDED),
    ),
    "an uneven all-gather": (
        2,
        lambda r: r.collective("all_gather", tensor=Layout(shape=(r.rank + 1,))),
    ),
    "channels last": (2, lambda r: r.collective(tensor=CHANNELS_LAST)),
    "columns into which is gathered": (2, lambda r: columns(r, "all_gather")),
    "columns that are reduced": (2, lambda r: columns(r, "reduce_scatter")),
    "a library's own work": (
        2,
        lambda r: r.add(
            "collective",
            call="all_reduce",
            ranks=r.all,
            tensors=(SMALL,),
            op="SUM",
            is_async=True,
            library=True,
        ),
    ),
    "groups in one order": (
        3,
        lambda r: [r.add("group", call="new_group", text=text) for text in ("[0, 1]", "[2]")],
    ),
    "works of a batch on the CPU": (
        2,
        lambda r: r.add("works", call="batch_isend_irecv", backend="gloo"),
    ),
    "average of floats": (2, lambda r: r.collective(op="AVG")),
    "objects by message": (
        2,
        lambda r: (
            objects(r),
            objects(r, Layout("uint8", (20,))),
            r.add("read", call="recv_object_list"),
        ),
    ),
    "objects by message, both first, of gloo": (
        2,
        lambda r: (objects(r, way="send", backend="gloo"), objects(r, way="recv", backend="gloo")),
    ),
    "a message of as many bytes": (
        2,
        lambda r: r.message(("send", "recv")[r.rank], 1 - r.rank, tensor=Layout("bool")),
    ),
    "a barrier and objects": (
        2,
        lambda r: (r.collective("barrier"), r.collective("all_gather_object")),
    ),
    "one rank alone": (1, lambda r: r.collective()),
    "a clock before anything": (1, lambda r: r.add("clock")),
}


@pytest.mark.parametrize("name", BAD)
def test_bad(name):
    size, program, severity, says = BAD[name]
    findings = judge(story(size, program))
    alike = [finding for finding in findings if finding.severity == severity]
    assert alike and any(part in str(finding) for finding in alike for part in says.split("|")), (
        findings
    )
    assert all(
        finding.text and finding.remedy and finding.ranks and finding.line for finding in findings
    )
    # one mistake in each program: no second kind of finding
    assert len({finding.severity for finding in findings}) == 1, findings


@pytest.mark.parametrize("name", GOOD)
def test_good(name):
    size, program = GOOD[name]
    assert judge(story(size, program)) == []


def test_objects_and_barriers_on_a_gpu_that_was_not_chosen():
    for call in ("all_gather_object", "barrier"):
        traces = story(
            2, lambda r, call=call: r.add("collective", call=call, ranks=r.all, text=CURRENT)
        )
        assert [finding.severity for finding in judge(traces)] == ["may hang"]
        assert (
            judge(story(2, lambda r, call=call: r.add("collective", call=call, ranks=r.all))) == []
        )
    assert [finding.call for finding in judge(story(2, lambda r: objects(r, text=CURRENT)))] == [
        "send_object_list",
        "recv_object_list",
    ]


def test_tensors_of_several_ranks_on_one_gpu():
    def program(*gpus):
        return lambda r: [
            r.add(
                "collective",
                call="all_reduce",
                ranks=r.all,
                tensors=(SMALL,),
                op="SUM",
                gpu=of[r.rank],
            )
            for of in gpus
        ]

    (findings,) = judge(story(3, program((0, 1, 2), (0, 1, 0))))
    assert (findings.severity, findings.ranks, findings.line) == (
        "fails",
        (0, 2),
        2,
    ) and "on the same GPU" in findings.text
    assert judge(story(3, program((0, 1, 2), (None, None, 0)))) == []


def test_the_worst_first_and_ranks_together():
    findings = judge(
        story(3, lambda r: (r.collective(op="BOR"), r.rank and r.collective(tensor=SMALL)))
    )
    assert [(finding.severity, finding.ranks) for finding in findings] == [
        ("hangs", (1, 2)),
        ("fails", (0, 1, 2)),
    ]
    assert SEVERITIES[0] == "hangs"


def test_a_finding_is_one_sentence_with_its_place():
    event = Event(
        "collective",
        call="all_reduce",
        ranks=(0,),
        op="BOR",
        tensors=(SMALL,),
        file="train.py",
        line=7,
    )
    [finding] = judge({0: [event]})
    assert (
        str(finding)
        == "fails: train.py:7, rank 0: all_reduce reduces by BOR, which NCCL does not have; "
        "use one of AVG, MAX, MIN, PREMUL_SUM, PRODUCT, SUM."
    )


def test_of_ranks_that_were_cut_off_at_one_place_only_what_came_before_it_must_have_ended():
    def open_at_its_end(r):
        r.wait(r.collective(later=True))
        r.collective(later=True)

    traces = story(2, open_at_its_end)
    assert [finding.severity for finding in judge(traces)] == ["differs"] and len(
        judge(traces)[0].ranks
    ) == 2
    assert judge(traces, whole={0: 2, 1: 2}) == []
    assert [finding.severity for finding in judge(traces, whole={0: 3, 1: 3})] == ["differs"]
    traces = story(2, sends_first)
    assert next(finding.severity for finding in judge(traces, whole={0: 1, 1: 1})) in (
        "hangs",
        "may hang",
    )
    assert judge(traces, whole={0: 0, 1: 0}) == judge(traces, ended=False) == []
