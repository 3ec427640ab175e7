"""Checks of unit 20, the hackathon. Entries run on the judge's ranks and clock, in a process beside the kernel; the rest runs in the kernel.

The entry is run on links that the seed draws, and on data that nobody can know before: the judge draws them, as in the hackathon. So what is compared with
the solution are the rungs that these links make, and not a score.
"""

from functools import partial

import numpy as np

from manyhands.checks import Report, seed
from manyhands.checks.hackathon import cases, one_against_four, verdicts
from manyhands.checks.hackathon.cell_entry import LIMITS, TARGET, judge, stopped, target, text_of, try_out
from manyhands.checks.hackathon.words import CRITERIA, HINTS, MISTAKES
from manyhands.checks.in_kernel import array, ask, number
from manyhands.checks.report import Stopped

__all__ = ["HINTS", "entry", "mended", "pack", "price", "try_out"]

check = partial(Report, criteria=CRITERIA)
RUNS = 3
RUNGS = {"faster": 1 - 1e-6, "half": 1 / 2, "fifth": 1 / 5, "tenth": 1 / 10}  # of the baseline's time
SETTING_UP = 60  # messages of a rank that may come once, as DDP's


def mended(function):
    """Check `function(model, batches, comm)`: weights after all batches, against those of one process."""
    with check("mended") as report:
        if _blocked(report):
            return
        import torch

        from manyhands.hackathon.challenge import SLOW_LINKS

        draw = cases.generator(seed(), "mended")
        changed = {"most_batches": int(draw.integers(7, 11)), "batch_size": int(draw.integers(12, 33)), "target": 0.0}
        own, text, steps = draw.bytes(16), text_of(function), changed["most_batches"]
        run, weights = judge().weights(SLOW_LINKS, text, own, **changed, **LIMITS)
        if run.problem:
            raise stopped(run.problem, function)
        from dataclasses import replace

        challenge = replace(SLOW_LINKS, **changed)
        got, looks = torch.frombuffer(bytearray(weights), dtype=torch.float32), one_against_four.alike(challenge, own)
        problem = verdicts.batches_problem(run.gradients, steps)
        report.judge("together", [problem], [run.gradients])
        with report.part("equal"):
            if problem:
                raise Stopped(problem["mistake"])
            problem = verdicts.weights_problem(got, looks[()], looks, one_against_four.start(challenge, own))
            report.judge("equal", [problem], got[::331], atol=1e-4)
        allowed = 6 * steps + SETTING_UP
        waste = max(run.messages) > allowed and verdicts.say("four tensors", got=max(run.messages), steps=steps)
        idle = max(run.messages) < 3 * steps and verdicts.say("own")
        report.judge("lean", [waste or idle or None], [max(*run.messages, allowed), not idle])


def price(message_s, entry_s, gathered_s):
    """Check `message_s(n_bytes, rate_mbit, delay_ms)`, `entry_s(steps, every, tensors, ranks, gradient_s, message_s)`,
    `gathered_s(steps, n_bytes, ranks, gradient_s, message_s)`; the two get a right `message_s(n_bytes)`."""
    with check("price") as report:
        for name, function, asked in (("message", message_s, cases.messages), ("entry", entry_s, cases.entries),
                                      ("gathered", gathered_s, cases.gathers)):
            with report.part(name):
                found = asked(seed())
                answers = [number(ask(function, *case.arguments)) for case in found]
                report.judge(name, verdicts.price_problems(found, answers), answers, rtol=1e-6)


def pack(pack_of, unpack):
    """Check `pack_of(kept, count)` -> message, which changes `kept`, and `unpack(message, size)` -> dense."""
    with check("pack") as report:
        found = [_packed(pack_of, unpack, size) for size in (1000, 22_026)]
        report.judge("largest", [verdicts.dense_problem(one["dense"], one["before"], one["count"]) for one in found],
                     [one["dense"][np.abs(one["before"]) > 0][::37] for one in found], rtol=1e-2)
        report.judge("kept", [verdicts.kept_problem(one["left"], one["before"], one["dense"]) for one in found],
                     [(one["left"] + one["dense"])[::37] for one in found], rtol=1e-2)
        sizes = [(one["bytes"], one["count"]) for one in found]
        report.judge("small", [verdicts.say("large", got=got, count=count) for got, count in sizes if got > 4 * count + 8],
                     [max(got, 4 * count + 8) for got, count in sizes])
        with report.part("places"):
            size = int(cases.generator(seed(), "size").integers(45_000, 60_000))  # a negative place is another one here
            one = _packed(pack_of, unpack, size)
            high = np.flatnonzero(one["dense"][32_768:])
            report.judge("places", [verdicts.dense_problem(one["dense"], one["before"], one["count"])],
                         [high, one["dense"][32_768:][high]], rtol=1e-2)


def _packed(pack_of, unpack, size):
    """What came of numbers that were packed and unpacked."""
    import torch

    before, count = cases.kept(seed(), size)
    left = torch.from_numpy(before.copy())
    message = ask(pack_of, left, count)
    if not isinstance(message, torch.Tensor):
        raise Stopped(MISTAKES["not one"].format(got=type(message).__name__))
    n_bytes = message.numel() * message.element_size()
    sent = torch.frombuffer(bytearray(message.contiguous().view(torch.uint8).numpy().tobytes()), dtype=message.dtype)
    ask(pack_of, torch.from_numpy(before[::-1].copy()), count)  # of another rank, before anything is unpacked
    answer = ask(unpack, sent.view(message.shape), size)  # only its bytes and its form arrive elsewhere
    dense = array(answer)
    if dense.shape != (size,):
        raise Stopped(MISTAKES["not dense"].format(size=size, got=f"of shape {dense.shape}" if dense.size else f"a {type(answer).__name__}"))
    return {"before": before, "count": count, "left": left.numpy(), "dense": dense.astype(np.float32), "bytes": n_bytes}


def entry(function):
    """Check `function(model, batches, comm)`: three runs on new data, on links of the seed; its time, by rungs."""
    with check("entry") as report:
        if _blocked(report):
            return
        from manyhands.hackathon.challenge import SLOW_LINKS

        rate_mbit, delay_ms = cases.link(cases.generator(seed(), "links"), apart=0.005)  # the rungs hardly depend on it
        text, runs = text_of(function), []
        for _ in range(RUNS):
            run, _ = judge().run(SLOW_LINKS, text, rate_mbit=rate_mbit, delay_ms=delay_ms, target=target(), **LIMITS)
            if run.problem:
                raise stopped(run.problem, function)
            runs.append(run)
        report.judge("right", [], [rate_mbit, delay_ms, [min(run.accuracy, TARGET) for run in runs]], atol=1e-9)
        baseline_s, score_s = cases.baseline_s(rate_mbit, delay_ms), float(np.median([run.clock_s for run in runs]))
        for name, part in RUNGS.items():
            rung_s = baseline_s * part
            report.judge(name, [verdicts.rung_problem(score_s, rung_s, baseline_s)], [max(score_s, rung_s)], rtol=1e-9)


def _blocked(report):
    """Where no judge can be, nothing of this check is judged."""
    from manyhands.hackathon.open_judge import why_not

    for name, (points, text) in report.asked.items() if why_not() else ():
        report.blocked(name, points=points, text=text, why=why_not())
    return why_not() is not None
