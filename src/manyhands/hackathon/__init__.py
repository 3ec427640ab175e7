"""The hackathon: challenges, and a judge that runs entries.

An entry is a folder with a file `entry.py`, in it one function, `train(model, batches, comm)`. The
judge has the data, the seeds, the clock, and whatever joins the ranks: an entry's ranks run each in
a closed room (`rooms.py`) with one socket, which leads to the judge. Over it they ask for batches
and for gradients (`accelerator.py`), and send each other tensors (`network.py`). So what an entry
has used is counted where it cannot reach.
"""
