"""Counts what ranks send each other: messages, bytes, rounds, and the peak of their memory.

    with Ledger() as ledger:
        loss.backward()
    ledger.messages_sent, ledger.bytes_sent, ledger.rounds
    print(ledger.table())

It sees our own functions, `torch.distributed` by whatever name its functions were imported, and
what C++ code sends by itself, DistributedDataParallel's reducer above all; nobody has to prepare
anything. While no ledger is open nothing listens.

A message of our functions and of `dist.send`, `dist.recv` is counted as it passes. Of a collective
of torch.distributed one can see that it was called, with which tensors, and when its work was done,
but not what its library sends for it: it counts with the messages of a model
(`manyhands.ledger.models`), and tables name it. `entries` holds what was seen.
"""

from manyhands.ledger.account import Merged, Row, merge
from manyhands.ledger.core import Ledger
from manyhands.ledger.entry import Entry
from manyhands.ledger.step_timeline import median_steps

__all__ = ["Entry", "Ledger", "Merged", "Row", "median_steps", "merge"]
