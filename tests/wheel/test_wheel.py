"""The wheel in environments of a user's own.

One is empty, and the others have the oldest and the newest PyTorch and nothing else of the course.

make test-wheel      takes minutes and gigabytes; TORCH_INDEX= names an index of CPU builds, which are much smaller
"""

import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

import distribution
from manyhands.cli.installers import Installer
from manyhands.cli.pythons import NoPythonError, find_python
from manyhands.cli.setup_steps import Steps

pytestmark = pytest.mark.wheel
ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "tests" / "clinic" / "patterns"
ENVIRONMENTS = {
    "oldest": ("torch==2.6.*", ("3.10", "3.11", "3.12", "3.13")),
    "newest": ("torch", ("3.14", "3.13", "3.12", "3.11")),
}
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
def sdist_and_wheel(tmp_path_factory):
    """What a release has built, where MANYHANDS_DIST names its folder.

    Else it is what this clone builds.
    """
    if folder := os.environ.get("MANYHANDS_DIST"):
        [sdist], [wheel] = (
            Path(folder).resolve().glob("*.tar.gz"),
            Path(folder).resolve().glob("*.whl"),
        )
        return sdist, wheel
    return distribution.build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def wheel(sdist_and_wheel):
    return sdist_and_wheel[1]


@pytest.fixture(scope="module")
def empty(wheel, tmp_path_factory):
    """The folder of programs of an environment in which there was nothing, and then the wheel."""
    folder = tmp_path_factory.mktemp("empty")
    run([sys.executable, "-m", "venv", folder])
    took("the wheel, into an empty environment", [folder / "bin" / "pip", "install", wheel])
    return folder / "bin"


@pytest.fixture(scope="module", params=ENVIRONMENTS)
def own(request, wheel, tmp_path_factory):
    """The folder of programs of an environment in which a user has installed PyTorch.

    The wheel was installed after it.
    """
    torch, pythons = ENVIRONMENTS[request.param]
    try:
        python = find_python(os.environ, pythons)
    except NoPythonError as lack:
        pytest.skip(str(lack))
    folder = tmp_path_factory.mktemp("own")
    run([python, "-m", "venv", folder])
    index = os.environ.get("MANYHANDS_TORCH_INDEX")
    steps = Steps(1, folder / "torch.log")
    steps.begin("torch")
    # as pip does it: else each rank would compile all that it imports
    environ = {**os.environ, "UV_COMPILE_BYTECODE": "1"}
    installer = Installer(folder / "bin" / "python", environ, steps, ROOT)
    installer.install(torch, *(["--extra-index-url", index] if index else []))
    steps.end("is there")
    before = run([folder / "bin" / "python", "-c", "import torch; print(torch.__version__)"]).stdout
    took("the wheel", [folder / "bin" / "pip", "install", wheel])
    assert (
        run([folder / "bin" / "python", "-c", "import torch; print(torch.__version__)"]).stdout
        == before
    )
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


def test_in_an_empty_environment_the_core_works_and_brings_no_framework(empty, tmp_path):
    listed = {
        line.partition("==")[0].lower()
        for line in run([empty / "pip", "list", "--format", "freeze"]).stdout.split()
    }
    assert {"manyhands", "matplotlib", "numpy", "psutil"} <= listed and not listed & {
        "torch",
        "tensorflow",
        "ipyparallel",
    }
    first_commands(empty, tmp_path)
    shutil.copy(SCRIPTS / "by_hand.py", tmp_path)
    done = manyhands(empty, "clinic", "by_hand.py", "--ranks", "2", cwd=tmp_path)
    assert (
        done.returncode == 2
        and "PyTorch is not installed for" in done.stderr
        and "Traceback" not in done.stderr
    )


def test_pip_builds_the_same_wheel_from_the_sdist(sdist_and_wheel, tmp_path):
    """In isolation, with the build tools that pip fetches."""
    sdist, wheel = sdist_and_wheel
    run([sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", tmp_path, sdist])
    assert content(tmp_path / wheel.name) == content(wheel)


def content(wheel):
    """{name: checksum} of the package's files."""
    with zipfile.ZipFile(wheel) as archive:
        return {
            entry.filename: entry.CRC
            for entry in archive.infolist()
            if entry.filename.startswith("manyhands/")
        }


def first_commands(own, tmp_path):
    """Outside a clone, the package is imported from this environment.

    It knows its version and the machine.
    """
    done = run([own / "python", "-c", "import manyhands; print(manyhands.__file__)"], cwd=tmp_path)
    assert done.stdout.startswith(str(own.parent))
    version = run([own / "manyhands", "--version"], cwd=tmp_path).stdout
    assert (
        version.startswith("manyhands ")
        and version.split()[1] in run([own / "pip", "show", "manyhands"]).stdout
    )
    doctor = run([own / "manyhands", "doctor"], cwd=tmp_path).stdout
    assert doctor.startswith(f"manyhands {version.split()[1]} on ") and "combination" in doctor


def test_the_three_commands_run_and_name_what_is_wrong(own, tmp_path):
    first_commands(own, tmp_path)
    for name in ("by_hand", "fsdp2"):
        shutil.copy(SCRIPTS / f"{name}.py", tmp_path)
        done = manyhands(own, "clinic", f"{name}.py", "--ranks", "2", cwd=tmp_path)
        if name == "fsdp2" and "PyTorch 2.6 cannot run FSDP2 (fully_shard) on a CPU" in done.stderr:
            # torch's own error
            assert done.returncode == 2 and "has no attribute 'record_event'" in done.stdout
            continue
        assert (
            done.returncode == 0
            and "   Yes" in done.stdout
            and "<svg" in (tmp_path / "clinic.html").read_text()
        ), done.stdout + done.stderr
        assert "Nothing was found that NCCL would do differently" in done.stdout
    done = manyhands(own, "rehearse", "by_hand.py", "--ranks", "2", cwd=tmp_path)
    assert done.returncode == 0 and "No findings in 168 calls" in done.stdout, (
        done.stdout + done.stderr
    )
    (tmp_path / "sleeps.py").write_text(SLEEPS)
    done = manyhands(own, "predict", "sleeps.py", "--to", "8", cwd=tmp_path)
    assert done.returncode == 0 and "Sums in a step: 2," in done.stdout, done.stdout + done.stderr
    (tmp_path / "hangs.py").write_text(HANGS)
    done = manyhands(own, "clinic", "hangs.py", "--ranks", "2", cwd=tmp_path)
    assert done.returncode == 1 and "line 8 of hangs.py" in done.stdout, done.stdout + done.stderr
    (tmp_path / "lacks.py").write_text("import a_package_of_the_users\n")
    done = manyhands(own, "clinic", "lacks.py", "--ranks", "1", cwd=tmp_path)
    assert done.returncode == 2 and "No module named 'a_package_of_the_users'" in done.stdout, (
        done.stdout + done.stderr
    )


def test_what_is_missing_is_said_in_a_sentence(own, tmp_path):
    run([own / "pip", "uninstall", "--yes", "psutil"])
    (tmp_path / "train.py").write_text("raise SystemExit('it ran')")
    for command in ("clinic", "rehearse", "predict"):
        done = manyhands(own, command, "train.py", cwd=tmp_path)
        assert done.returncode == 2 and done.stderr.endswith(
            'pip install "manyhands[clinic]" installs what is needed.\n'
        )
    done = manyhands(own, "check", "06", cwd=tmp_path)  # a command of the course
    assert (
        done.returncode == 2
        and done.stderr.startswith("manyhands check: ")
        and "Traceback" not in done.stderr
    )
    done = manyhands(own, "lab", cwd=tmp_path)
    assert (
        done.returncode == 2
        and "The notebooks are in a clone" in done.stderr
        and len(done.stderr.splitlines()) == 1
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.py"]
