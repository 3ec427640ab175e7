"""The machine: what nvidia-smi, PyTorch and `manyhands doctor` say."""

import platform
import subprocess
import sys

import torch
from gpu_tell import figure

for command in (["nvidia-smi"], [sys.executable, "-m", "manyhands", "doctor"]):
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=50
        )
        print(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}")
    except OSError as problem:
        print(f"{command[0]}: {problem}")
figure("PyTorch", torch.__version__)
figure("CUDA of PyTorch", str(torch.version.cuda))
figure("Python", platform.python_version())
if torch.cuda.is_available():
    facts = torch.cuda.get_device_properties(0)
    figure("NCCL", ".".join(map(str, torch.cuda.nccl.version())))
    figure("GPUs", torch.cuda.device_count())
    figure("GPU 0", facts.name)
    figure("memory of GPU 0", facts.total_memory / 2**30, "GiB")
    x = torch.ones(1024, 1024, device="cuda")
    assert (x @ x)[0, 0].item() == 1024, "a product on the GPU is wrong"
