"""Rehearse each cell on a torch cluster.

This is run in a notebook's kernel before its first cell (PYTHONSTARTUP). What the ranks asked of
torch.distributed goes to the file REHEARSED, a line of JSON for each call of `px` or `run` that
ended well: the cell, its number of events, the findings. Nothing is printed, and nothing else of
the notebook is touched. Cells that are given a shorter timeout than the checks have are left alone
because they show a hang.
"""


def _rehearse_cells():
    import functools
    import json
    import os
    from dataclasses import asdict

    # .../06_ddp-06_ddp
    if os.environ["REHEARSED"].rpartition("-")[2][:2] in os.environ["NOT_REHEARSED"].split():
        return
    from IPython import get_ipython

    from manyhands.checks.on_ranks import PATIENCE_S
    from manyhands.cluster.cluster import Cluster
    from manyhands.rehearsal import cells, judge, load

    def start():
        import sys

        dist = sys.modules.get("torch.distributed")
        if (
            dist is None
            or not dist.is_initialized()
            or getattr(dist, "_manyhands_rehearsal", None) is not None
        ):
            return False
        from manyhands.rehearsal.trace_recorder import Recorder

        dist._manyhands_rehearsal = Recorder(gpu_chosen=True)  # by the cluster
        dist._manyhands_rehearsal.start()
        return True

    def write(texts):
        traces = {
            rank: [cells._on_all_ranks(event) for event in load(text)]
            for rank, text in enumerate(texts)
        }
        line = {
            "cell": get_ipython().kernel.get_parent()["content"]["code"],
            "events": sum(map(len, traces.values())),
            "findings": [asdict(finding) for finding in judge(traces)],
        }
        with open(os.environ["REHEARSED"], "a") as file:
            file.write(json.dumps(line) + "\n")

    run, inside = Cluster.run, []

    def rehearsed(original):
        @functools.wraps(original)
        def call(cluster, *args, **options):
            # the notebook rehearses by itself
            own = args and args[0] in (cells._start, cells._stop)
            if (
                inside
                or own
                or cluster.framework != "torch"
                or (options.get("patience_s") or PATIENCE_S) < PATIENCE_S
            ):
                return original(cluster, *args, **options)
            inside.append(True)
            try:
                records = all(run(cluster, start))
                result = original(cluster, *args, **options)
                if records:
                    write(run(cluster, cells._stop))
                return result
            finally:
                inside.clear()

        return call

    Cluster.px, Cluster.run = rehearsed(Cluster.px), rehearsed(Cluster.run)


_rehearse_cells()
del _rehearse_cells
