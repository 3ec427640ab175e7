"""Kernels see what is fixed for them and nothing personal.

The chain itself imports no framework.
"""

import os
import subprocess
import sys

from manyhands.isolation.kernel_environment import kernel_environment


def test_the_fixed_part_and_the_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("MANYHANDS_SEED", "5")
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("JUPYTER_PATH", "/personal")
    variables = kernel_environment(tmp_path)
    assert variables["MANYHANDS_SEED"] == "0" and variables["MANYHANDS_QUIET"] == "1"
    assert variables["PYTHONHASHSEED"] == "0" and variables["OMP_NUM_THREADS"] == "1"
    assert "RANK" not in variables and "JUPYTER_PATH" not in variables
    for name in (
        "IPYTHONDIR",
        "JUPYTER_DATA_DIR",
        "JUPYTER_CONFIG_DIR",
        "JUPYTER_RUNTIME_DIR",
        "TMPDIR",
    ):
        assert os.path.isdir(variables[name]) and variables[name].startswith(str(tmp_path))
    assert variables["PATH"].split(os.pathsep)[0] == os.path.dirname(sys.executable)
    assert os.path.isfile(variables["MATPLOTLIBRC"])


def test_seed_and_additions(tmp_path):
    variables = kernel_environment(tmp_path, seed=7, MANYHANDS_PROFILE="slurm")
    assert (variables["MANYHANDS_SEED"], variables["MANYHANDS_PROFILE"]) == ("7", "slurm")


def test_no_framework_is_imported():
    modules = (
        "adopt canonical command execute labs layout make slides text "
        "up_to_date validate validate_server".split()
    )
    code = (
        f"import sys; from manyhands.authoring import {', '.join(modules)}; "
        "from manyhands.isolation import kernel_environment; print(*sys.modules)"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"torch", "tensorflow", "keras", "tf_keras", "horovod", "ipyparallel"} & set(loaded)
