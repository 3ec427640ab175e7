"""The wheel in environments of a user's own: the oldest and the newest PyTorch, and nothing else of the course.

    make test-wheel      takes minutes and gigabytes; TORCH_INDEX= names an index of CPU builds, which are much smaller
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from manyhands.cli.installers import Installer
from manyhands.cli.pythons import NoPython, find_python
from manyhands.cli.setup_steps import Steps

pytestmark = pytest.mark.wheel
ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "tests" / "clinic" / "patterns"
ENVIRONMENTS = {"oldest": ("torch==2.6.*", ("3.10", "3.11", "3.12", "3.13")),
                "newest": ("torch", ("3.14", "3.13", "3.12", "3.11"))}
HANGS = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
for step in range(6):
    model(torch.randn(8, 4)).sum().backward()
    if dist.get_rank() == 0 and step == 3:
        dist.barrier()  # rank 0 only
"""
SLEEPS = """
import time, torch, torch.distributed as dist
dist.init_process_group("gloo")
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(9):
    model(torch.randn(8, 4)).sum().backward()
    time.sleep(0.1)
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
    optimizer.step()
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a copy, because the build leaves files next to the sources."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    run([sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", folder / "made", folder])
    return next((folder / "made").glob("*.whl"))


@pytest.fixture(scope="module", params=ENVIRONMENTS)
def own(request, wheel, tmp_path_factory):
    """The folder of programs of an environment in which a user has installed PyTorch, and then the wheel."""
    torch, pythons = ENVIRONMENTS[request.param]
    try:
        python = find_python(os.environ, pythons)
    except NoPython as lack:
        pytest.skip(str(lack))
    folder = tmp_path_factory.mktemp("own")
    run([python, "-m", "venv", folder])
    index = os.environ.get("MANYHANDS_TORCH_INDEX")
    steps = Steps(1, folder / "torch.log")
    steps.begin("torch")
    installer = Installer(folder / "bin" / "python", dict(os.environ), steps, ROOT)
    installer.get_uv()  # pip takes a quarter of an hour for the build with CUDA on two busy cores
    installer.install(torch, *(["--extra-index-url", index] if index else []))
    steps.end("is there")
    before = run([folder / "bin" / "python", "-c", "import torch; print(torch.__version__)"]).stdout
    took("the wheel", [folder / "bin" / "pip", "install", f"{wheel}[clinic]"])
    assert run([folder / "bin" / "python", "-c", "import torch; print(torch.__version__)"]).stdout == before
    print(f"{request.param}: Python {pythons[0]} was wanted, {python}; PyTorch {before}")
    yield folder / "bin"
    shutil.rmtree(folder)  # gigabytes


def run(command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)
    assert options.get("check") is False or done.returncode == 0, done.stdout + done.stderr
    return done


def took(what, command, **options):
    began = time.monotonic()
    done = run(command, **options)
    print(f"{what}: {time.monotonic() - began:.0f} s")
    return done


def manyhands(own, *words, cwd):
    return took(words[0], [own / "manyhands", *words], cwd=cwd, check=False, timeout=600)


def test_the_three_commands_run_and_name_what_is_wrong(own, tmp_path):
    for name in ("by_hand", "fsdp2"):
        shutil.copy(SCRIPTS / f"{name}.py", tmp_path)
        done = manyhands(own, "clinic", f"{name}.py", "--ranks", "2", cwd=tmp_path)
        if name == "fsdp2" and "PyTorch 2.6 cannot run FSDP2 (fully_shard) on a CPU" in done.stderr:
            assert done.returncode == 2 and "has no attribute 'record_event'" in done.stdout  # torch's own error
            continue
        assert done.returncode == 0 and "   Yes" in done.stdout and "<svg" in (tmp_path / "clinic.html").read_text(), \
            done.stdout + done.stderr
        assert "Nothing was found that NCCL would do differently" in done.stdout
    done = manyhands(own, "rehearse", "by_hand.py", "--ranks", "2", cwd=tmp_path)
    assert done.returncode == 0 and "No findings in 168 calls" in done.stdout, done.stdout + done.stderr
    (tmp_path / "sleeps.py").write_text(SLEEPS)
    done = manyhands(own, "predict", "sleeps.py", "--to", "8", cwd=tmp_path)
    assert done.returncode == 0 and "Sums in a step: 2," in done.stdout, done.stdout + done.stderr
    (tmp_path / "hangs.py").write_text(HANGS)
    done = manyhands(own, "clinic", "hangs.py", "--ranks", "2", cwd=tmp_path)
    assert done.returncode == 1 and "line 8 of hangs.py" in done.stdout, done.stdout + done.stderr
    (tmp_path / "lacks.py").write_text("import a_package_of_the_users\n")
    done = manyhands(own, "clinic", "lacks.py", "--ranks", "1", cwd=tmp_path)
    assert done.returncode == 2 and "No module named 'a_package_of_the_users'" in done.stdout, done.stdout + done.stderr


def test_what_is_missing_is_said_in_a_sentence(own, tmp_path):
    run([own / "pip", "uninstall", "--yes", "psutil"])
    (tmp_path / "train.py").write_text("raise SystemExit('it ran')")
    for command in ("clinic", "rehearse", "predict"):
        done = manyhands(own, command, "train.py", cwd=tmp_path)
        assert done.returncode == 2 and done.stderr.endswith('pip install "manyhands[clinic]" installs what is needed.\n')
    done = manyhands(own, "check", "06", cwd=tmp_path)  # a command of the course
    assert done.returncode == 2 and done.stderr.startswith("manyhands check: ") and "Traceback" not in done.stderr
    done = manyhands(own, "lab", cwd=tmp_path)
    assert done.returncode == 2 and "The notebooks are in a clone" in done.stderr and len(done.stderr.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.py"]
