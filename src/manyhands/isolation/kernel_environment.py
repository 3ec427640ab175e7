"""The one environment that kernels run in when a notebook is built, validated or graded."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

# What every such kernel sees, on every machine.
FIXED = {
    "MANYHANDS_QUIET": "1",  # progress displays off
    "MANYHANDS_PROFILE": "local",
    "PYTHONHASHSEED": "0",
    "PYTHONUNBUFFERED": "1",
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "TF_ENABLE_ONEDNN_OPTS": "0",  # another order of sums on other processors
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "COLUMNS": "80",
    "JUPYTER_PLATFORM_DIRS": "0",
}
# What the author's own shell must not bring in.
_DROPPED = (
    "JUPYTER_PATH JUPYTER_CONFIG_PATH IPYTHON_CONFIG PYTHONSTARTUP PYTHONWARNINGS "
    "PYTEST_CURRENT_TEST PYTEST_ADDOPTS MPLBACKEND FORCE_COLOR NO_COLOR TF_CONFIG "
    "TF_USE_LEGACY_KERAS RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK MASTER_ADDR "
    "MASTER_PORT MANYHANDS_NODE_DIR"
).split()


def kernel_environment(home: str | Path, seed: int = 0, **more: str) -> dict[str, str]:
    """All environment variables of a kernel that builds, validates or grades.

    `home` is a folder that the caller makes and throws away: Jupyter's, IPython's and temporary
    files go there, so no personal configuration is read and nothing is left behind. Keep its path
    short: sockets are made below it. `seed` is what the checks draw from. `more` is put on top
    (`MANYHANDS_PROFILE="slurm"`).
    """
    home = Path(home)
    folders = {
        "IPYTHONDIR": home / "ipython",
        "JUPYTER_CONFIG_DIR": home / "jupyter",
        "JUPYTER_DATA_DIR": home / "data",
        "JUPYTER_RUNTIME_DIR": home / "run",
        "TMPDIR": home / "tmp",
    }
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    inherited = {name: value for name, value in os.environ.items() if name not in _DROPPED}
    scripts = os.path.dirname(sys.executable)
    path = {"PATH": scripts + os.pathsep + inherited.get("PATH", os.defpath)}
    style = _matplotlib_defaults()
    return {
        **inherited,
        **FIXED,
        **path,
        **({"MATPLOTLIBRC": style} if style else {}),
        **{name: str(folder) for name, folder in folders.items()},
        "MANYHANDS_SEED": str(seed),
        **more,
    }


def _matplotlib_defaults() -> str | None:
    """The settings that matplotlib ships, in place of the author's own.

    They are found without importing it.
    """
    spec = find_spec("matplotlib")
    if spec is None or not spec.submodule_search_locations:
        return None
    return os.path.join(spec.submodule_search_locations[0], "mpl-data", "matplotlibrc")
