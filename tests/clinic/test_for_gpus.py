"""Scripts written for GPUs, in the repositories that they are in, through the three commands."""

import os
import tempfile
import textwrap

import pytest

from manyhands.cli import main
from manyhands.cluster.launch import launch_line
from manyhands.cluster.launch.script_copy import copied
from manyhands.gpu_stand_in.kernels import explain_gpu_error

TRAIN = """
    import os, sys
    import torch, torch.distributed as dist
    from torch import nn
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    from lib.width import WIDTH
    from torch.distributed.optim import ZeroRedundancyOptimizer  # torch.jit compiles its module

    class Noise(nn.Module):
        def forward(self, x):
            return x + 0.1 * torch.rand(len(x), 1, 1, 1, device=x.device)

    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("cpu:gloo,cuda:nccl", device_id=device)
    assert dist.device_mesh.DeviceMesh(device_type="cuda", mesh=[0, 1]).size() == 2
    assert torch.cuda.device_count() == dist.get_world_size() == 2 and torch.cuda.current_device() == dist.get_rank()
    assert sys.argv[1:] == ["--lr", "0.1"] and open("data/rows.txt").read() == "64"
    torch.manual_seed(dist.get_rank())
    host = torch.randn(4, device="cuda").cpu()
    seen = [None, None]
    dist.all_gather_object(seen, host.tolist())
    half, own = dist.ReduceOp.PREMUL_SUM(0.5), torch.zeros(1, device="cuda")
    part = torch.tensor([2.0, 4.0], device="cuda")
    dist.reduce_scatter_tensor(output=own, input=part, op=half)
    dist.all_reduce(part, op=half)
    assert own.item() == part[dist.get_rank()].item() == 2 + 2 * dist.get_rank()
    assert host.to(device=device, non_blocking=True).device == device
    assert seen[0] != seen[1] and host.cuda().device == device and host.to(dist.get_rank()).is_cuda
    rows = torch.full((1, 2), dist.get_rank(), device="cuda")
    flat, part = torch.empty(4, dtype=rows.dtype, device="cuda"), torch.empty(1, dtype=rows.dtype, device="cuda")
    dist.all_gather_into_tensor(flat, rows)
    dist.reduce_scatter_tensor(part, rows)
    assert flat.tolist() == [0, 0, 1, 1] and part.tolist() == [1]
    dist.gather_single(rows, flat if dist.get_rank() == 1 else None, dst=1)
    dist.gather_into_tensor(rows[0] + 2, flat.view(2, 2) if dist.get_rank() == 0 else None)
    assert flat.tolist() == ([0, 0, 1, 1] if dist.get_rank() else [2, 2, 3, 3])
    torch.manual_seed(0)
    net = nn.Sequential(Noise(), nn.Conv2d(1, WIDTH, 3), nn.BatchNorm2d(WIDTH), nn.ReLU(), nn.Flatten(), nn.Linear(4 * WIDTH, 2))
    net = nn.SyncBatchNorm.convert_sync_batchnorm(net).to(device)
    whole, alone = torch.randn(8, 1, 4, 4), nn.BatchNorm2d(1)
    shared = nn.SyncBatchNorm(1).cuda()
    mine = whole.chunk(2)[dist.get_rank()].cuda().requires_grad_()
    (shared(mine) ** 3).sum().backward()
    whole.requires_grad_()
    (alone(whole) ** 3).sum().backward()
    assert torch.allclose(mine.grad, whole.grad.chunk(2)[dist.get_rank()], atol=1e-5)
    assert torch.allclose(shared.running_var, alone.running_var)
    dist.all_reduce(torch.ones(2))  # by gloo
    model = nn.parallel.DistributedDataParallel(torch.compile(net), device_ids=[device.index], output_device=device)
    optimizer, scaler = torch.optim.SGD(model.parameters(), 0.1), torch.amp.GradScaler("cuda", enabled=False)
    rows = torch.utils.data.TensorDataset(torch.randn(64, 1, 4, 4), torch.randint(2, (64,)))
    sampler = torch.utils.data.DistributedSampler(rows, shuffle=False)
    for epoch in range(4):
        for x, y in torch.utils.data.DataLoader(rows, 8, sampler=sampler, pin_memory=True):
            optimizer.zero_grad()
            with torch.autocast("cuda", dtype=torch.bfloat16):
                out = model(x.to(device, non_blocking=True))
                assert out.dtype == torch.bfloat16 and out.device == device
                loss = nn.functional.cross_entropy(out, y.to(device))
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            torch.cuda.synchronize()
        if dist.get_rank() == 0:
            torch.save(model.state_dict(), "snapshot.pt")
        dist.barrier(device_ids=[device.index])
    torch.load("snapshot.pt", map_location={"cuda:0": f"cuda:{device.index}"})
    dist.destroy_process_group()
"""


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Make a repository with a script in a folder, a package beside that, and data.

    It is the current folder.
    """
    top = tmp_path / "repository"
    for name, text in {
        ".git/HEAD": "ref: refs/heads/main",
        "scripts/train.py": textwrap.dedent(TRAIN),
        "lib/__init__.py": "",
        "lib/width.py": "WIDTH = 4\n",
        "data/rows.txt": "64",
    }.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    monkeypatch.chdir(top)
    return top


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_script_for_gpus_in_a_subfolder_is_looked_at_as_it_is_started(
    repository, capsys, tmp_path
):
    before = files(repository)
    words = "torchrun --standalone --nproc_per_node=2 scripts/train.py --lr 0.1".split()
    code = main(["clinic", "--output", str(tmp_path / "page.html"), *words])
    printed = capsys.readouterr()
    text = " ".join(printed.out.split())
    assert code in (0, 3) and "Every rank completed 9 steps" in text, printed.out
    assert (
        "A stand-in took the place of GPUs" in text
        and "backend nccl is gloo" in text
        and "SyncBatchNorm" in text
    )
    assert "The model draws random numbers" in text  # those that are drawn on the GPU, too
    assert "--as-it-is switches it off" in " ".join((tmp_path / "page.html").read_text().split())
    assert printed.err.startswith("1 of 2: 9 steps, ") and "2 of 2: rehearsal, " in printed.err
    assert files(repository) == before


SPAWNS = """
    import os, sys
    import torch, torch.distributed as dist, torch.multiprocessing as mp
    from torch.distributed import init_process_group

    def train(rank, size):
        os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="12355")
        init_process_group("nccl", rank=rank, world_size=size)
        torch.accelerator.set_device_index(rank)
        moved = torch.ones(3).to(device="cuda", dtype=torch.float32)
        dist.all_reduce(torch.ones(3, device="cuda") + moved)
        dist.all_reduce(torch.ones(3, device="cuda:0"))
        dist.all_reduce(torch.ones(3).to(moved) + torch.ones(3).type_as(moved))
        dist.all_reduce(torch.ones(3).type_as(moved))
        dist.all_reduce(torch.ones(3), group=dist.new_group(backend="gloo"))
        dist.all_reduce(torch.tensor(float(rank)))
        torch.save(1, "left.pt")
        dist.destroy_process_group()

    if __name__ == "__main__":
        size = int(sys.argv[1]) if len(sys.argv) > 1 else torch.cuda.device_count()
        mp.spawn(train, args=(size,), nprocs=size)
        import flash_attn
"""


def test_processes_that_a_script_spawns_are_ranks_and_a_failure_says_why(repository, capsys):
    (repository / "spawn.py").write_text(
        textwrap.dedent(SPAWNS).replace("import flash_attn", "pass")
    )
    assert main(["rehearse", "spawn.py", "--ranks", "2"]) == 1
    printed = capsys.readouterr().out
    assert (
        "FAILS: spawn.py:12, ranks 0, 1" in printed
        and "on the same GPU on several ranks" in printed
    )
    assert (
        "FAILS: spawn.py:16, ranks 0, 1" in printed
        and "all_reduce is given a tensor that was made on the CPU" in printed
    )
    assert (
        "2 findings in" in printed
        and "2 ranks in 2 groups" in printed
        and "A stand-in took the place" in printed
    )
    assert not (repository / "left.pt").exists()
    (repository / "spawn.py").write_text(textwrap.dedent(SPAWNS))
    assert main(["rehearse", "spawn.py", "--ranks", "1"]) == 2
    printed = capsys.readouterr().out
    assert (
        "flash_attn is a package of kernels for GPUs, which have no CPU implementation" in printed
    )
    assert "It ran in a copy of the folder repository." in printed
    assert main(["rehearse", "spawn.py", "--ranks", "1", "--as-it-is", "--", "2"]) == 2
    assert (
        "starts 2 processes by itself, and 1 rank was asked for. Ask for as many: --ranks 2."
        in capsys.readouterr().out
    )


NEEDS_TWO = """
    import time
    import torch, torch.distributed as dist
    if torch.cuda.device_count() < 2:
        raise SystemExit("two GPUs are needed")
    dist.init_process_group("nccl")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1).cuda())
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(12):
        optimizer.zero_grad()
        time.sleep(0.3)
        model(torch.randn(8, 4).cuda()).square().mean().backward()
        optimizer.step()
    dist.destroy_process_group()
"""


def test_predict_takes_a_script_that_needs_two_ranks(repository, capsys, tmp_path):
    (repository / "two.py").write_text(textwrap.dedent(NEEDS_TWO))
    assert (
        main(
            [
                "predict",
                "two.py",
                "--to",
                "8,32",
                "--global-batch",
                "fixed",
                "--output",
                str(tmp_path / "p.svg"),
            ]
        )
        == 0
    )
    printed = capsys.readouterr()
    assert "two GPUs are needed" in printed.out and "was measured on 2 ranks" in printed.out
    assert (
        "the global batch of 16 rows stays the same" in printed.out
        and "less than one row: 32 ranks." in printed.out
    )
    assert "1 of 2: one rank, " in printed.err and "2 of 2: 2 ranks, " in printed.err


def test_a_script_that_takes_no_step_is_not_determined_and_its_last_words_are_shown(
    repository, capsys, tmp_path
):
    (repository / "two.py").write_text(
        "import sys, torch\nif torch.cuda.device_count() < 2:\n    print('two GPUs are needed')\n  "
        "  sys.exit()\n"
    )
    assert (
        main(
            [
                "clinic",
                "two.py",
                "--ranks",
                "2",
                "--as-it-is",
                "--output",
                str(tmp_path / "page.html"),
            ]
        )
        == 3
    )
    printed = capsys.readouterr().out
    assert (
        "Not determined, because no step of a torch optimiser was seen" in printed
        and "The last lines that ranks 0, 1 printed:" in printed
    )
    assert "two GPUs are needed" in printed and "Nothing was found" not in printed


@pytest.mark.parametrize(
    ("words", "script", "arguments", "ranks", "env"),
    [
        (
            "torchrun --nnodes=1 --nproc-per-node 2 --rdzv-backend c10d t.py --lr 1",
            "t.py",
            "--lr 1",
            2,
            {},
        ),
        (
            "python -m torch.distributed.launch --nproc_per_node=4 t.py",
            "t.py",
            "",
            4,
            {"MANYHANDS_RANK_OPTION": "--local-rank"},
        ),
        (
            "accelerate launch --multi_gpu --mixed_precision bf16 --num_processes 2 t.py --a",
            "t.py",
            "--a",
            2,
            {"ACCELERATE_MIXED_PRECISION": "bf16"},
        ),
        (
            "fabric run --accelerator cuda --devices=2 t.py x",
            "t.py",
            "x",
            2,
            {"LT_CLI_USED": "1", "LT_ACCELERATOR": "cuda", "LT_DEVICES": "2"},
        ),
        (
            "deepspeed --num_gpus 2 t.py --deepspeed",
            "t.py",
            "--deepspeed",
            2,
            {"MANYHANDS_RANK_OPTION": "--local_rank"},
        ),
        ("python -u t.py --n 3", "t.py", "--n 3", None, {}),
        ("mpirun -np 2 python t.py", "t.py", "", 2, {}),
    ],
)
def test_how_scripts_are_started(words, script, arguments, ranks, env):
    line = launch_line.read(words.split())
    assert (line.script, line.arguments, line.ranks, line.env) == (
        script,
        arguments.split(),
        ranks,
        env,
    )


def test_modules_and_launchers_that_are_not_read(repository, capsys):
    assert launch_line.read("python -m lib.width --x".split()).module == "lib.width"
    assert launch_line.file_of("lib.width") == os.path.join("lib", "width.py")
    assert main(["clinic", "srun", "-n", "4", "python", "scripts/train.py"]) == 2
    assert (
        "manyhands clinic torchrun --nproc-per-node 4 scripts/train.py" in capsys.readouterr().err
    )


WRITES = """
    import ctypes, os, shutil, signal, time

    signal.signal(signal.SIGUSR2, lambda *_: os._exit(5))  # Slurm's, to have a checkpoint written
    time.sleep(3.5)  # so long that the watch looks where this is

    def outside_of_python(path):  # as a library in C++ opens a file
        return ctypes.CDLL(None, use_errno=True).open(path.encode(), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)

    assert open("huge.bin").read() == "x" * 11
    assert outside_of_python("small.bin") > 0 and outside_of_python("elsewhere/checkpoint.bin") > 0
    assert outside_of_python("huge.bin") < 0 and ctypes.get_errno() == 30 and outside_of_python("many/0") < 0
    open("huge.bin", "w").write("mine")
    assert open("huge.bin").read() == "mine" and outside_of_python("huge.bin") > 0
    os.mkdir("many/new")
    open("many/0", "w").write("mine")
    assert outside_of_python("many/new/0") > 0 and len(os.listdir("many")) == 4
    shutil.rmtree("many")
    print("All was written.")
"""


def test_nothing_that_a_user_made_is_overwritten_in_whatever_way_it_is_opened(
    repository, monkeypatch, capsys, tmp_path
):
    """The folder for temporary files is reached by a link.

    It is below the folder that is copied.
    """
    from manyhands.cluster.launch import script_copy

    (repository / "tmp").mkdir()
    (repository.parent / "link").symlink_to(repository / "tmp")
    monkeypatch.setattr(tempfile, "tempdir", str(repository.parent / "link"))
    (repository / "ring").symlink_to("ring")
    (repository / "data" / "write.py").write_text(textwrap.dedent(WRITES))
    (repository / "data" / "many").mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (repository / "data" / "elsewhere").symlink_to(elsewhere)
    originals = [
        repository / "data" / "small.bin",
        elsewhere / "checkpoint.bin",
        repository / "data" / "huge.bin",
        *(repository / "data" / "many" / str(number) for number in range(3)),
    ]
    for number, path in enumerate(originals):
        path.write_text("x" * (11 if number == 2 else 9))
    for name, bound in (("LARGE_BYTES", 10), ("FOLDER_FILES", 2)):
        monkeypatch.setattr(script_copy, name, bound)
    monkeypatch.chdir(repository / "data")
    with copied("write.py") as place:
        assert (
            not any((place.root / "tmp").iterdir())
            and os.path.islink(place.root / "ring")
            and place.start == "data"
        )
        led = place.environment({"PYTHONPATH": f"src:{repository / 'lib'}:/usr"})["PYTHONPATH"]
        assert led == f"src:{place.root / 'lib'}:/usr"
    assert main(["rehearse", "mpirun", "-np", "1", "python", "write.py"]) == 3
    printed = capsys.readouterr()
    assert (
        "All was written." in printed.out
        and "starts the ranks as torchrun does, not with mpirun" in printed.err
    )
    assert [len(path.read_text()) for path in originals] == [
        9,
        9,
        11,
        9,
        9,
        9,
    ] and not place.root.exists()
    assert {"data/huge.bin", "data/many"} <= set(place.linked)
    # a system on which there is no read-only mount
    monkeypatch.setattr(script_copy, "GUARD", os.devnull + "/")
    with copied("write.py") as place:
        assert {"data/huge.bin", "data/many"} <= set(place.left_out) and not place.linked


@pytest.mark.parametrize(
    ("error", "what"),
    [
        ("ModuleNotFoundError: No module named 'triton'", "triton is a package"),
        (
            (
                "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA "
                "install root."
            ),
            "compiles a CUDA extension",
        ),
        ("RuntimeError: 0 active drivers ([]). There should only be one.", "a Triton kernel"),
        (
            (
                "NotImplementedError: Could not run 'mine::scan' with arguments from the 'CPU' "
                "backend."
            ),
            "a kernel for GPUs",
        ),
        (
            "AssertionError: Torch not compiled with CUDA enabled",
            "uses a feature of GPUs that the stand-in",
        ),
        ("ModuleNotFoundError: No module named 'pandas'", None),
    ],
)
def test_what_no_stand_in_can_take_the_place_of(error, what):
    sentence = explain_gpu_error(f"Traceback:\n{error}\n")
    assert sentence is None if what is None else what in sentence


def test_the_time_between_events_that_were_not_recorded_is_refused_as_on_a_gpu(monkeypatch):
    from manyhands.gpu_stand_in import cuda_module

    monkeypatch.setattr(cuda_module, "note", lambda what: None)
    with pytest.raises(RuntimeError, match="recorded"):
        cuda_module.Event().elapsed_time(cuda_module.Event())
