"""Threads without end.

verdict: RuntimeError: can't start new thread
"""

import threading


def train(model, batches, comm):
    while True:
        threading.Thread(target=threading.Event().wait, daemon=True).start()
