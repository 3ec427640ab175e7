"""Two ranks with NCCL on one GPU: the rehearsal's programs for two ranks are run, and held against what it says of them.

NCCL 2.30 or later can do that, as an experiment (NCCL_MULTI_RANK_GPU_ENABLE=1). A program that the rehearsal says hangs
must not end; one of which it says nothing must end well. "may hang" and "differs" are told, and decide nothing.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import torch
from gpu_tell import failure, figure, lacking

PROGRAMS = Path(__file__).resolve().parents[1] / "dist" / "rehearsal_programs"
EACH_S, LEAST = 25, (2, 30)
ON_CUDA = """
import runpy, sys, torch, torch.distributed as dist
torch.cuda.set_device(0)
torch.set_default_device("cuda")
made = dist.init_process_group
def init_process_group(backend=None, *args, **kwargs):
    return made("nccl", *args, **kwargs)
dist.init_process_group = dist.distributed_c10d.init_process_group = init_process_group
runpy.run_path(sys.argv[1], run_name="__main__")
torch.cuda.synchronize()
"""


def said(program):
    """(what the rehearsal says, as the tests hold it; how many ranks the program is for)."""
    return re.search(r"expect: (.*), ranks (\d+)\"\"\"", program.read_text().splitlines()[0]).groups()


def come_of(program, folder):
    """"ends", "hangs" or "fails", and what was printed."""
    starter = folder / "on_cuda.py"
    starter.write_text(ON_CUDA)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(starter),
               str(program)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               env={**os.environ, "NCCL_MULTI_RANK_GPU_ENABLE": "1"})
    try:
        output, _ = process.communicate(timeout=EACH_S)
        return ("ends" if process.returncode == 0 else "fails"), output
    except subprocess.TimeoutExpired:
        process.terminate()
        try:
            output, _ = process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
        return "hangs", output


def main():
    if not torch.cuda.is_available():
        lacking("NCCL needs a GPU, and there is none.")
    if torch.cuda.nccl.version()[:2] < LEAST:
        lacking(f"NCCL {torch.cuda.nccl.version()} refuses two ranks on one GPU: it takes 2.30 or later.")
    good, folder = True, Path(os.environ["GPU_SCRATCH"])
    for program in sorted(PROGRAMS.glob("*.py")):
        verdict, ranks = said(program)
        if ranks != "2":
            continue
        came, output = come_of(program, folder)
        figure(program.stem, came, f"(the rehearsal: {verdict})")
        wrong = came != "hangs" if verdict.startswith("hangs") else came != "ends" if verdict == "nothing" else False
        if wrong:
            good = False
            failure(f"{program.stem}: the rehearsal says {verdict}, and it {came}", output)
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
