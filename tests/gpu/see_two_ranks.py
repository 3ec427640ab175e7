"""Ranks with NCCL on one GPU.

The rehearsal's programs are run, and held against what it says of them.

NCCL 2.30 or later can do that, as an experiment (NCCL_MULTI_RANK_GPU_ENABLE=1). A program that the
rehearsal says hangs must not end, one that fails must fail, one of which it says nothing must end
well. "may hang" and "differs" decide nothing, and are told.
"""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gpu_tell import failure, figure, needs_shared_nccl

PROGRAMS = Path(__file__).resolve().parents[1] / "dist" / "rehearsal_programs"
EACH_S = 40
AT_ONCE = max(1, min(5, (os.cpu_count() or 1) // 3))
# what the rehearsal says first: what must come
MUST = {"hangs": "hangs", "fails": "fails", "nothing": "ends"}
# All ranks have GPU 0, so that is each one's LOCAL_RANK; meshes and stages of the CPU become those
# of the GPU.
ON_CUDA = """
import os, re, sys, torch, torch.distributed as dist
os.environ["LOCAL_RANK"] = "0"
torch.cuda.set_device(0)
torch.set_default_device("cuda")
made = dist.init_process_group
def init_process_group(backend=None, *args, **kwargs):
    return made(backend if backend is None or ":" in backend else "nccl", *args, **kwargs)
dist.init_process_group = dist.distributed_c10d.init_process_group = init_process_group
with open(sys.argv[1]) as file:
    text = re.sub(r\'((?:mesh|Stage)\\(.*?)"cpu"\', r\'\\1"cuda"\', file.read())
exec(compile(text, sys.argv[1], "exec"), {"__name__": "__main__", "__file__": sys.argv[1]})
torch.cuda.synchronize()
"""


def said(program):
    """(what the rehearsal says, as the tests hold it; how many ranks the program is for)."""
    return re.search(
        r"expect: (.*), ranks (\d+)\"\"\"", program.read_text().splitlines()[0]
    ).groups()


def come_of(program, ranks, folder):
    """ "ends", "hangs" or "fails", and what was printed."""
    starter = folder / "on_cuda.py"
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        f"--nproc-per-node={ranks}",
        str(starter),
        str(program),
    ]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "NCCL_MULTI_RANK_GPU_ENABLE": "1"},
    )
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
    needs_shared_nccl()
    good, folder = True, Path(os.environ["GPU_SCRATCH"])
    (folder / "on_cuda.py").write_text(ON_CUDA)
    programs = sorted(PROGRAMS.glob("*.py"))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        comes = pool.map(lambda program: come_of(program, said(program)[1], folder), programs)
        for program, (came, output) in zip(programs, comes, strict=True):
            verdict, ranks = said(program)
            print(f"--- {program.stem}\n{output}")
            figure(program.stem, came, f"({ranks} ranks; the rehearsal: {verdict})")
            # the program goes on after the error
            caught = verdict.startswith("fails") and "differs" in verdict
            if MUST.get(re.match(r"\w+( hang)?", verdict).group(), came) != came and not caught:
                good = False
                failure(f"{program.stem}: the rehearsal says {verdict}, and it {came}", output)
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
