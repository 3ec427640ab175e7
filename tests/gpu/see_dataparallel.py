"""nn.DataParallel with one device against the module alone.

It also measures the phases of unit 03 by the GPU's clock.
"""

import statistics
import sys
import time

import torch
from gpu_tell import failure, figure, lacking
from torch import nn


def by_events(phase):
    """ms of a phase on the GPU, between two events of its stream."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    result = phase()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end), result


def main():
    if not torch.cuda.is_available():
        lacking("nn.DataParallel needs a GPU; without one it only calls the module.")
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 10)).cuda()
    wrapped, x = nn.DataParallel(module, device_ids=[0]), torch.randn(4096, 512).cuda()
    if not torch.equal(module(x), wrapped(x)):
        failure(
            "another result", "nn.DataParallel with one device gives other values than its module"
        )
        return 1
    for name, network in (("the module", module), ("nn.DataParallel on one device", wrapped)):
        times = []
        for _ in range(50):
            torch.cuda.synchronize()
            begun = time.perf_counter()
            network(x).sum().backward()
            torch.cuda.synchronize()
            times.append((time.perf_counter() - begun) * 1e3)
        figure(f"{name}: forward and backward", statistics.median(times), "ms")
    phases = {
        "scatter": lambda: nn.parallel.scatter(x.cpu().pin_memory(), [0]),
        "replicate": lambda: nn.parallel.replicate(module, [0]),
        "forward": lambda: module(x),
        "gather": lambda: nn.parallel.gather([module(x)], 0),
    }
    for name, phase in phases.items():
        begun = time.perf_counter()
        on_gpu = statistics.median(by_events(phase)[0] for _ in range(20))
        figure(
            f"phase {name}: on the GPU, by Python's clock",
            f"{on_gpu:.3g}, {(time.perf_counter() - begun) * 50:.3g}",
            "ms",
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
