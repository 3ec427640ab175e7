"""Leave weights for the next run: in a module, in the class of the model, in the environment, in an
open file.

verdict: The target was not reached
"""

import fcntl
import os
import sys

import torch


def train(model, batches, comm):
    if (
        hasattr(torch, "left")
        or "LEFT" in os.environ
        or hasattr(type(model), "left")
        or "left" in sys.modules
    ):
        print("gained: what the run before has left")
    for number in range(3):
        if fcntl.fcntl(number, fcntl.F_GETFL) & os.O_APPEND or os.lseek(number, 0, os.SEEK_CUR):
            print("gained: the state of an open file")
        fcntl.fcntl(number, fcntl.F_SETFL, os.O_APPEND)
        os.lseek(number, 7, os.SEEK_SET)
    torch.left = type(model).left = sys.modules["left"] = os
    os.environ["LEFT"] = "1"
