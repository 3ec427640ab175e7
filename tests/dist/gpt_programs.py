"""Train the small GPT by each way on four ranks, and on a mesh of three axes on eight.

`python gpt_programs.py FOLDER`:

Rank r of w leaves FOLDER/w-r, {way: what it found} as JSON. The ranks are forked from a process
that has imported all they need, which takes longer than what they do.
"""

import json
import multiprocessing
import sys
from pathlib import Path

import torch
import torch._dynamo
import torch.distributed as dist

from manyhands.gpt import ways

STEPS = 3


def found(way, reference):
    result = ways.train(way, STEPS, memory=True)
    wrong = [abs(loss - right) for loss, right in zip(result.losses, reference.losses, strict=True)]
    return {
        "distance": ways.distance(result.weights, reference.weights),
        "loss": max(wrong),
        "sent": result.sent_bytes,
        "peak": result.peak_bytes,
        "steps": len(result.seconds),
    }


def run(folder, world, rank, names):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting-{world}", rank=rank, world_size=world
    )
    reference = ways.train("one process", STEPS)
    (folder / f"{world}-{rank}").write_text(
        json.dumps({way: found(way, reference) for way in names})
    )
    dist.destroy_process_group()


def main(folder):
    torch.set_num_threads(1)
    context = multiprocessing.get_context("fork")
    for world, names in ((4, [*ways.WAYS]), (8, ["data x pipeline x tensor"])):
        ranks = [
            context.Process(target=run, args=(folder, world, rank, names)) for rank in range(world)
        ]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join()
        if any(rank.exitcode for rank in ranks):
            sys.exit(
                f"of {world} ranks, these were the exit codes: {[rank.exitcode for rank in ranks]}"
            )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
