"""The course's script 06_dogs.py on made images: images a second, and the GPU's peak memory.

It is run with 0, 4 and 12 workers.
"""

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import torch
from gpu_tell import failure, figure
from PIL import Image

SCRIPT = Path(__file__).resolve().parents[2] / "sources" / "scripts" / "06_dogs.py"
ON_GPU = torch.cuda.is_available()
BATCH, STEPS, WORKERS = (64, 15, (12, 4, 0)) if ON_GPU else (4, 3, (0,))


def make_images(root):
    """Write images of two breeds, as many for training as STEPS batches have.

    The files differ, their pixels are few.
    """
    draw = np.random.default_rng(0)
    for breed in ("n1-a", "n2-b"):
        folder = root / "Images" / breed
        folder.mkdir(parents=True)
        for number in range(BATCH * STEPS * 5 // 8 + 1):
            pixels = draw.integers(0, 256, (10, 12, 3), np.uint8)
            Image.fromarray(pixels).resize((400, 330)).save(folder / f"{number}.jpg")


def used_bytes(peak, done):
    while not done.wait(0.1):
        free, total = torch.cuda.mem_get_info(0)
        peak[0] = max(peak[0], total - free)


def main():
    root = Path(os.environ["GPU_SCRATCH"])
    make_images(root / "dogs")
    for workers in WORKERS:
        peak, done = [0], threading.Event()
        if ON_GPU:
            threading.Thread(target=used_bytes, args=(peak, done), daemon=True).start()
        command = [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node=1",
            str(SCRIPT),
            str(root / "dogs"),
            str(root / f"run-{workers}"),
            "--epochs",
            "2" if ON_GPU else "1",
            "--batch",
            str(BATCH),
            "--workers",
            str(workers),
        ]
        ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        done.set()
        speeds = re.findall(r"([\d.]+) images a second", ran.stdout)
        if ran.returncode or not speeds:
            failure(f"{workers} workers", ran.stdout)
            return 1
        figure(
            f"{workers} workers: images a second in the last epoch, batch {BATCH}",
            float(speeds[-1]),
        )
        if ON_GPU:
            figure(f"{workers} workers: most memory in use on GPU 0", peak[0] / 2**30, "GiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
