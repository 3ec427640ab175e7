"""What `manyhands predict` says of 6 and 8 ranks, and what they take.

`python -m benchmarks predicted [06] [gpt]`

Nodes of one rank each, with slow links between them: the emulated network. Computing is measured on
one rank, the messages on two, as `manyhands predict` does. The latency of a round of gloo's ring is
fitted to steps of 2 and of 4 ranks there (more than the link's delay: gloo asks first whether there
is room); 6 and 8 are predicted, and only then measured. The ranks share this machine's cores: by
the kernel's count one rank needs a core for a part of its step, and p ranks on c cores need p / c
times as long for that part. Nothing else is told of the machine.
"""

import itertools
import os
import sys
from pathlib import Path
from statistics import median

from manyhands import Cluster
from manyhands.clinic import costs, predict_messages, scale
from manyhands.clinic.visit import visit
from manyhands.simulate.calibrate import calibrate
from manyhands.simulate.training_step import Machine

from . import few

HERE = Path(__file__).resolve().parent
SCRIPTS = {
    "06": (HERE.parent / "notebooks/scripts/06_train.py", ("--epochs", "4")),
    "gpt": (HERE / "gpt_ddp.py", ("--steps", "12", "--computes-ms", "300")),
}
NODES, RATE_MBIT, DELAY_MS = few(8, 6), 10, 10
BYTES_PER_S = RATE_MBIT * 1e6 / 8
FITTED, PREDICTED, RUNS = (2, 4), few((6, 8), (6,)), few(3)


def steps_s(script, arguments, ranks, port):
    """Seconds of the steps of the script's training, on the first ranks of a cluster.

    The first three are left out.
    """
    import contextlib
    import io
    import os
    import runpy
    import sys
    import time

    from torch.optim.optimizer import register_optimizer_step_post_hook

    rank, before, argv, ends = int(os.environ["RANK"]), dict(os.environ), sys.argv, []
    if rank >= ranks:
        return None
    os.environ.update(
        WORLD_SIZE=str(ranks), MASTER_PORT=str(port), LOCAL_RANK="0", LOCAL_WORLD_SIZE="1"
    )
    hook = register_optimizer_step_post_hook(lambda *_: ends.append(time.perf_counter()))
    try:
        sys.argv = [script, *arguments]
        with contextlib.redirect_stdout(io.StringIO()):
            runpy.run_path(script, run_name="__main__")
    finally:
        hook.remove()
        sys.argv = argv
        os.environ.clear()
        os.environ.update(before)
    return [stop - start for start, stop in itertools.pairwise(ends[2:])]


def measured_s(cluster, script, arguments, ranks, port):
    """(the median of all steps of all runs, the medians of the runs), of rank 0.

    All ranks wait for each other.
    """
    runs = [
        cluster.run(steps_s, str(script), arguments, ranks, port + run)[0] for run in range(RUNS)
    ]
    return median(sum(runs, [])), [median(run) for run in runs]


def predicted_s(network, running, constants, ranks):
    """`running`: the part of a step of one rank in which it needs a core."""
    machine = Machine(1, (0.0, 1e30), (constants["latency_s"], BYTES_PER_S))
    longer = 1 + running * (max(1.0, ranks / os.cpu_count()) - 1)
    return scale.forecast(
        network, machine, ranks, times_as_fast=1 / longer, all_reduce="ring"
    ).seconds


def rows(name):
    """Predict and measure a script, and print its rows."""
    script, arguments = SCRIPTS[name]
    alone, together = (visit(script, arguments, ranks, "torchrun") for ranks in (1, 2))
    network, running = scale.measured(alone, together), costs.add_up(alone.cost).runs[0]
    print(
        f"\n{script.name}: {predict_messages.describe_step(network)} It needs a core for {running:.0%} of its step.",
        flush=True,
    )
    link = {"latency_s": DELAY_MS / 1e3}
    with Cluster(
        nodes=NODES,
        ranks_per_node=1,
        framework="torch",
        profile="emulated",
        rate_mbit=RATE_MBIT,
        delay_ms=DELAY_MS,
        name="predicted",
    ) as cluster:
        real = {}
        for place, ranks in enumerate((*FITTED, *PREDICTED)):
            if ranks == PREDICTED[0]:
                mine = calibrate(
                    lambda constants, p: predicted_s(network, running, constants, p),
                    [(p, real[p][0]) for p in FITTED],
                    link,
                )
                print(
                    f"fitted: a round's latency of {mine['latency_s'] * 1e3:.1f} ms (the links': "
                    f"{DELAY_MS} ms)"
                )
            real[ranks] = measured_s(cluster, script, arguments, ranks, 20_000 + 20 * place)
    for ranks, (seconds, runs) in real.items():
        with_script, plain = (
            predicted_s(network, running, constants, ranks) for constants in (mine, link)
        )
        print(
            f"| {script.name} | {ranks}{' *f*' if ranks in FITTED else ''} | {with_script * 1e3:.0f} | "
            f"{seconds * 1e3:.0f} ({min(runs) * 1e3:.0f} to {max(runs) * 1e3:.0f}) | "
            f"{with_script / seconds - 1:+.1%} | {plain / seconds - 1:+.1%} |",
            flush=True,
        )


def main(names=()):
    """Print the table for these scripts, or for all."""
    print(
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n\n| script | ranks | predicted, ms"
        " | measured, ms (medians of runs) | error | with the links' own latency "
        "|\n|---|---|---|---|---|---|"
    )
    for name in names or SCRIPTS:
        rows(name)


if __name__ == "__main__":
    main(sys.argv[1:])
