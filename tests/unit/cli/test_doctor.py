"""`manyhands doctor` on made-up machines.

PATH has stand-ins for programs, or nothing at all.
"""

import json
from pathlib import Path

import pytest

from manyhands.cli import doctor


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine whose only programs are those that the test makes.

    `machine("sinfo", "echo 3 nodes idle")` makes one.
    """
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    for module in ("manyhands.machine", "manyhands.cli.doctor"):
        monkeypatch.setattr(
            f"{module}.program",
            lambda name: str(folder / name) if (folder / name).exists() else None,
        )

    def make(name, script):
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)

    return make


def findings():
    return {finding.name: finding for group in doctor.survey().values() for finding in group}


@pytest.mark.parametrize(
    ("name", "program", "script", "shown"),
    [
        ("C++ compiler", "g++", "echo 'g++ 12.2.0'; echo more", "g++ 12.2.0"),
        ("CMake", "cmake", "echo cmake version 3.31", "cmake version 3.31"),
        (
            "GPUs",
            "nvidia-smi",
            "echo 'GPU 0: NVIDIA H200 (UUID: GPU-1)'; echo 'GPU 1: NVIDIA H200 (UUID: GPU-2)'",
            "GPU 0: NVIDIA H200; GPU 1: NVIDIA H200",
        ),
        (
            "MPI",
            "mpirun",
            "echo HYDRA build details:; echo '    Version:      5.0.2'",
            "MPICH 5.0.2",
        ),
        ("MPI", "mpirun", "echo 'mpirun (Open MPI) 5.0.1'", "mpirun (Open MPI) 5.0.1"),
        ("Slurm cluster", "sinfo", "echo 3 nodes idle", "3 nodes idle"),
        ("containers", "podman", "echo podman version 4.3.1", "podman: podman version 4.3.1"),
        ("containers", "docker", '[ "$1" = version ] && echo 28.2.2', "docker: 28.2.2"),
        ("user namespaces", "unshare", "exit 0", "yes"),
        ("bubblewrap", "bwrap", "echo bubblewrap 0.8.0", "bubblewrap 0.8.0"),
        ("Chromium", "chromium", "echo Chromium 156.0", "Chromium 156.0"),
    ],
)
def test_a_program_is_found_or_missed(machine, name, program, script, shown):
    before = findings()[name]
    machine(program, script)
    after = findings()[name]
    assert (before.found, after.found) == (None, shown)
    assert before.affects and before.remedy


@pytest.mark.parametrize(
    ("name", "program", "script"),
    [
        ("GPUs", "nvidia-smi", "echo 'Failed to initialize NVML'; exit 9"),
        ("GPUs", "nvidia-smi", "echo No devices were found"),
        ("Slurm cluster", "sinfo", "echo no configuration >&2; exit 1"),
        ("user namespaces", "unshare", "echo Operation not permitted >&2; exit 1"),
        ("bubblewrap", "bwrap", '[ "$1" = --version ] && echo bubblewrap 0.8.0 || exit 1'),
        ("containers", "docker", "echo Cannot connect to the daemon >&2; exit 1"),
    ],
)
def test_a_program_that_is_there_and_does_not_work_counts_as_missing(
    machine, name, program, script
):
    machine(program, script)
    assert findings()[name].found is None


def test_bubblewrap_without_namespaces_is_not_sent_to_the_package_manager(machine):
    assert "apt-get" in findings()["bubblewrap"].remedy
    machine("bwrap", '[ "$1" = --version ] && echo bubblewrap 0.8.0 || exit 1')
    assert "not allowed" in findings()["bubblewrap"].remedy


def test_all_three_daemons_of_slurm_are_needed(machine):
    machine("slurmd", "exit 0")
    machine("slurmctld", "exit 0")
    assert findings()["Slurm's daemons"].found is None
    machine("munged", "exit 0")
    assert findings()["Slurm's daemons"].found == "slurmctld, slurmd, munged"


def test_packages_are_looked_up_and_name_the_units_that_miss_them(machine, monkeypatch):
    there = {"torch": "2.13.0", "tensorflow-cpu": "2.21.0"}
    monkeypatch.setattr(doctor, "package", there.get)
    surveyed = findings()
    assert surveyed["PyTorch"].found == "2.13.0" and surveyed["TensorFlow"].found == "2.21.0"
    assert surveyed["JupyterLab"].found is None and surveyed["Horovod"].found is None
    assert "10" in surveyed["Horovod"].affects and "06" not in surveyed["Horovod"].affects
    assert (
        "06" in surveyed["PyTorch"].affects
        and "02" in surveyed["TensorFlow"].affects
        and "06" not in surveyed["TensorFlow"].affects
    )


def test_horovod_tells_its_controllers(tmp_path, monkeypatch):
    class Distribution:
        def locate_file(self, name):
            return tmp_path / name

    for framework, content in {
        "torch": b"..libmpi.so.12..HOROVOD_GLOO_RENDEZVOUS_ADDR",
        "tensorflow": b"..HOROVOD_GLOO_RENDEZVOUS_ADDR",
    }.items():
        (tmp_path / "horovod" / framework).mkdir(parents=True)
        (tmp_path / "horovod" / framework / "mpi_lib_v2.so").write_bytes(content)
    monkeypatch.setattr(doctor, "package", lambda name: "0.28.1")
    monkeypatch.setattr(doctor.metadata, "distribution", lambda name: Distribution())
    assert doctor.horovod_version() == "0.28.1 (tensorflow: Gloo; torch: Gloo and MPI)"


def test_too_little_memory_is_told_with_its_amount(monkeypatch, machine):
    monkeypatch.setattr(doctor, "memory_gb", lambda: 2)
    memory = findings()["memory"]
    assert memory.found is None and "2 GB" in memory.affects


def test_the_report_has_every_finding_and_ends_well(machine, capsys):
    machine("sinfo", "echo 3 nodes idle")
    assert doctor.main([]) == 0
    text = capsys.readouterr().out
    there, missing = text.split("Missing:")
    assert "3 nodes idle" in there and "bubblewrap" in missing and "remedy:" in missing
    assert doctor.main(["--json"]) == 0
    groups = json.loads(capsys.readouterr().out)
    assert list(groups) == ["languages", "frameworks", "devices", "clusters", "isolation"]
    assert {finding["name"] for group in groups.values() for finding in group} == set(findings())


def test_a_program_that_hangs_does_not_hang_the_doctor(machine):
    machine("sinfo", "exec /bin/sleep 60")
    assert doctor.says("sinfo", timeout_s=0.2) is None


def test_nothing_heavy_is_imported(tmp_path):
    import subprocess
    import sys

    code = (
        "import sys; from manyhands.cli import doctor; doctor.survey(); print(sorted({'torch', "
        "'tensorflow', 'ipyparallel'} & set(sys.modules)))"
    )
    root = Path(__file__).resolve().parents[3]
    assert (
        subprocess.check_output(
            [sys.executable, "-c", code], text=True, cwd=root, timeout=60
        ).strip()
        == "[]"
    )
