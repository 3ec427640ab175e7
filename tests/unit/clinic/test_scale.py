"""`manyhands predict`: from what the observers recorded to a forecast, and what it refuses.

No script runs.
"""

from types import SimpleNamespace

import pytest

from manyhands.cli import main
from manyhands.clinic import global_batch, predict_command, predict_messages, scale
from manyhands.clinic.costs import Costs
from manyhands.simulate import ring_s
from manyhands.simulate.training_step import Machine

MACHINE = Machine(1, (0.0, 1e30), (1e-3, 1e6))


def facts(steps_s, backward_part, calls):
    """Return what one rank records of steps of these seconds.

    `calls` are [(bytes, from, to)] in parts of each step.
    """
    bounds, spans, sent = [10.0], [], []
    for step_s in steps_s:
        start = bounds[-1]
        bounds.append(start + step_s)
        spans.append(("backward", start + (1 - backward_part) * step_s, start + step_s))
        sent += [
            {
                "call": "allreduce",
                "bytes": n,
                "start": start + a * step_s,
                "stop": start + b * step_s,
            }
            for n, a, b in calls
        ]
    from manyhands.ledger import Ledger

    return {
        "bounds": bounds,
        "spans": spans,
        "calls": sent,
        "kernel": [None] * len(bounds),
        "threads": [{}] * len(bounds),
        "peak_bytes": 1,
        "gpu_peak_bytes": None,
        "account": Ledger().account(),
        "steps": len(steps_s),
        "orders": [],
    }


def visit(ranks, rows=8, **options):
    step = {"calls": [{"model": 0, "rows": ["a row"] * rows}, {"model": 1, "rows": ["a row"] * 3}]}
    return SimpleNamespace(
        ranks=ranks,
        script="train.py",
        cost={rank: facts(**options) for rank in range(ranks)},
        seen={rank: {"steps": [step] * 4} for rank in range(ranks)},
    )


ALONE = visit(1, steps_s=[0.5, 0.1, 0.12, 0.08, 0.1], backward_part=0.5, calls=[])
BESIDE = visit(2, steps_s=[0.1] * 5, backward_part=0.5, calls=[(4000, 0.6, 0.7), (2000, 0.8, 0.9)])
BEHIND = visit(2, steps_s=[0.1] * 5, backward_part=0.5, calls=[(4000, 0.1, 0.2), (2000, 0.2, 0.3)])


def test_what_is_taken_from_the_runs():
    measured_step = scale.measured(ALONE, BESIDE)
    # the first step only warms up
    assert (measured_step.forward_s, measured_step.backward_s) == pytest.approx((0.05, 0.05))
    assert (
        measured_step.sizes == [4000, 2000]
        and measured_step.overlaps
        and measured_step.factors == pytest.approx([1, 1.2, 0.8, 1])
    )
    assert not scale.measured(ALONE, BEHIND).overlaps


def test_messages_after_the_backward_add_up_and_beside_it_hide():
    behind, beside = scale.measured(ALONE, BEHIND), scale.measured(ALONE, BESIDE)
    behind.factors = beside.factors = [1.0]
    forecast = scale.forecast(behind, MACHINE, 4, all_reduce="ring")
    assert forecast.seconds == pytest.approx(
        0.1 + ring_s(4, 4000, 1e-3, 1e6) + ring_s(4, 2000, 1e-3, 1e6)
    )
    assert scale.forecast(beside, MACHINE, 4, all_reduce="ring").seconds == pytest.approx(
        0.1 + ring_s(4, 2000, 1e-3, 1e6)
    )
    assert forecast.efficiency == pytest.approx(0.1 / forecast.seconds)
    assert forecast.costs["latencies"] == pytest.approx(12e-3) and forecast.costs[
        "bytes"
    ] == pytest.approx(9e-3)
    assert forecast.costs["late ranks"] == pytest.approx(0) and forecast.costs[
        "computing"
    ] == pytest.approx(0.1)
    assert [what for what, _ in scale.largest_costs(forecast)] == [
        "computing",
        "latencies",
        "bytes",
    ]


def test_one_rank_is_what_was_measured_and_a_faster_one_is_faster():
    measurement = scale.measured(ALONE, BESIDE)
    assert scale.forecast(measurement, MACHINE, 1).seconds == pytest.approx(0.1, rel=0.2)
    measurement.factors = [1.0]
    assert scale.forecast(measurement, MACHINE, 1, times_as_fast=10) == scale.forecast(
        measurement, MACHINE, 1, 10
    )
    assert scale.forecast(measurement, MACHINE, 1, times_as_fast=10).seconds == pytest.approx(0.01)


def test_the_table_has_a_line_for_each_number_of_ranks():
    measured_step = scale.measured(ALONE, BESIDE)
    lines = scale.table(
        [scale.forecast(measured_step, MACHINE, ranks) for ranks in (8, 1024)]
    ).splitlines()
    assert [line.split()[0] for line in lines] == ["ranks", "8", "1,024"] and "latencies" in lines[
        2
    ]
    assert (
        "Sums in a step: 2, 0.006 MB, during the backward pass"
        in predict_messages.describe_step(measured_step)
    )


def test_the_ledgers_own_names_are_known_and_a_sharded_sum_counts_once(tmp_path):
    import torch
    import torch.distributed as dist

    from manyhands.ledger import Ledger

    dist.init_process_group(
        "gloo", store=dist.FileStore(str(tmp_path / "store"), 1), rank=0, world_size=1
    )
    try:
        x, model = torch.ones(100), torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 5))
        with Ledger() as ledger:
            dist.all_reduce(x)
            dist.reduce_scatter_tensor(torch.empty(100), x)
            dist.all_gather_into_tensor(torch.empty(100), x)
            dist.all_gather([torch.empty(100)], x)
            dist.broadcast(x, 0)
            model(torch.ones(2, 3)).sum().backward()
    finally:
        dist.destroy_process_group()
    seen = [
        scale._all_reduce_bytes({"call": entry.call, "bytes": entry.bytes}, 1)
        for entry in ledger.entries
    ]
    # DDP's: 3 * 5 weights and 5 biases
    assert [n_bytes for n_bytes in seen if n_bytes] == [400, 200, 200, 200, 80]
    assert scale._all_reduce_bytes({"call": "_allgather_base", "bytes": 100}, 4) == 200
    assert scale._all_reduce_bytes({"call": "broadcast", "bytes": 100}, 4) == 0


def test_runs_without_messages_are_told():
    with pytest.raises(scale.NothingMeasuredError, match="sums nothing"):
        scale.measured(ALONE, visit(2, steps_s=[0.1] * 5, backward_part=0.5, calls=[]))


@pytest.mark.parametrize(
    "typed, message",
    [
        (["--to", "8,x"], "--to 8,x: give numbers"),
        (["--ranks", "1"], "--ranks must be 2"),
        (["--machine", "cray"], "no machine 'cray'"),
        (["--to", "8,2000000"], "1,000,000 at most"),
        (["--times-as-fast", "0"], "number above 0"),
        (["--times-as-fast", "inf"], "number above 0"),
        (["--reached", "2"], "reached is 2"),
    ],
)
def test_what_was_typed_wrong_is_told_before_anything_runs(tmp_path, capsys, typed, message):
    script = tmp_path / "train.py"
    script.write_text("raise SystemExit('it ran')\n")
    assert predict_command.main([str(script), "--output", str(tmp_path / "p.svg"), *typed]) == 2
    assert message in capsys.readouterr().err and not (tmp_path / "p.svg").exists()


def test_no_file_of_the_users_is_written_over(tmp_path, capsys):
    script, mine = tmp_path / "train.py", tmp_path / "mine.svg"
    script.write_text("")
    mine.write_text("<svg>mine</svg>")
    assert predict_command.main([str(script), "--output", str(mine)]) == 2
    assert mine.read_text() == "<svg>mine</svg>" and "Name another file" in capsys.readouterr().err
    assert predict_command.main([str(tmp_path / "none.py")]) == 2
    for place in (tmp_path, tmp_path / "none" / "p.svg"):
        assert predict_command.main([str(script), "--output", str(place)]) == 2
        assert "name a file in an existing folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    "rows, each, ranks, kind",
    [
        (8, 8, 2, "per-rank"),
        (8, 4, 2, "fixed"),
        (33, 17, 2, "fixed"),
        (1, 1, 2, "per-rank"),
        (9, 7, 2, None),
        (0, 0, 2, None),
    ],
)
def test_the_two_numbers_of_rows_say_which_batch_stays_the_same(rows, each, ranks, kind):
    measured_step = scale.measured(
        visit(1, rows, steps_s=[0.1] * 5, backward_part=0.5, calls=[]),
        visit(ranks, each, steps_s=[0.1] * 5, backward_part=0.5, calls=[(4000, 0.6, 0.7)]),
    )
    assert measured_step.batch() == kind
    sentence = global_batch.describe_batch(measured_step, "auto")
    assert ("not known" in sentence) == (not rows) and ("is neither" in sentence) == (rows == 9)
    assert ("global batch of" in sentence) == (kind == "fixed")


def test_rows_that_are_divided_shorten_all_but_the_optimiser():
    measured_step = scale.Measured(
        0.06, 0.04, [4000], True, [1.0], update_s=0.02, rows=64, rows_each=32
    )
    fixed = scale.forecast(measured_step, MACHINE, 4, batch="fixed", all_reduce="ring")
    assert fixed.costs["computing"] == pytest.approx(0.02 + 0.08 / 4)
    assert fixed.efficiency == pytest.approx(0.1 / 4 / fixed.seconds)
    assert scale.forecast(measured_step, MACHINE, 4, batch=256).costs["computing"] == pytest.approx(
        0.1
    )
    assert (
        scale.forecast(measured_step, MACHINE, 4, batch=256).efficiency < 1
        and global_batch.most_ranks(measured_step, "fixed") == 64
    )


@pytest.mark.parametrize("n_bytes", [100, 10**7])
def test_auto_is_the_fastest_of_the_three(n_bytes):
    machine, measured_step = (
        Machine(8, (1e-6, 1e11), (1e-5, 1e10)),
        scale.Measured(0.01, 0.01, [n_bytes], False, [1.0]),
    )
    took = {
        name: scale.forecast(measured_step, machine, 64, all_reduce=way).seconds
        for name, way in scale.ALL_REDUCES.items()
    }
    assert took.pop("auto") == min(took.values()) and len(set(took.values())) == 3


LINK = "{ latency_s = 1e-5, bytes_per_s = 1e9 }"


@pytest.mark.parametrize(
    "text, message",
    [
        (f"gpus = 2\nbetween = {LINK}", "`inside` must be a link"),
        (f"gpus = 0\nbetween = {LINK}", "`gpus` must be a whole number from 1 up"),
        ("gpus = 1\nbetween = { latency_s = 1e-5 }", "`between` must be a link"),
        (f"gpus = 1\nbetween = {LINK}\nspeed = 3", "there is no key `speed`"),
        ("gpus = 1\nbetween = { latency_s = -1, bytes_per_s = 1e9 }", "`between.latency_s` is -1"),
        ("gpus =", "is not TOML"),
        ("", "`gpus` must be"),
        (f"gpus = 1\nbetween = {LINK}\nlinks = true", "`links` must be"),
        ("[a]\ngpus = 1\n[b]\ngpus = 1", "describes 2 machines: a, b"),
    ],
)
def test_a_machine_file_that_makes_no_sense_is_refused_before_anything_runs(
    tmp_path, capsys, text, message
):
    script, machine = tmp_path / "train.py", tmp_path / "my.toml"
    script.write_text("raise SystemExit('it ran')\n")
    machine.write_text(text)
    assert (
        main(
            ["predict", str(script), "--output", str(tmp_path / "p.svg"), "--machine", str(machine)]
        )
        == 2
    )
    printed = capsys.readouterr().err
    assert message in printed and str(machine) in printed
    assert (
        main(
            [
                "predict",
                str(script),
                "--output",
                str(tmp_path / "p.svg"),
                "--machine",
                str(tmp_path / "none.toml"),
            ]
        )
        == 2
    )
    assert "No such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    "waited, usable, said",
    [
        ([0.01], True, ""),
        ([0.1], True, "Warning: "),
        ([0.8], False, "Nothing is predicted"),
        ([], True, "is not known"),
    ],
)
def test_a_wait_for_a_core_is_a_warning_and_above_a_fifth_the_end(waited, usable, said):
    answer = predict_messages.judge_core_time(Costs([1146.0], [], waited=waited))
    assert answer[0] == usable and said in answer[1] and bool(answer[1]) == bool(said)
    assert waited != [0.8] or "916.8 ms of 1146 ms" in answer[1]
