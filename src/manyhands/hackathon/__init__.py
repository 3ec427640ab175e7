"""The hackathon: challenges, and a judge that runs entries.

An entry is a folder with a file `entry.py`, in it one function, `train(model, batches, comm)`. The
judge has the data, the seeds, the clock, and whatever joins the ranks: each rank of an entry runs
in a sandbox (`judge/sandboxes.py`) with one socket, which leads to the judge. Over it they ask for
batches and for gradients (`judge/accelerator.py`), and send each other tensors
(`judge/network.py`). So what an entry has used is counted where it cannot reach.
"""
