"""What the processes that exist many times over do without.

It would cost each of them memory and time.
"""

import subprocess
import sys

import pytest

LIGHT = {
    "the guard of a cluster": (
        "import manyhands.cluster.engines.guard",
        "numpy zmq psutil IPython",
    ),
    "a cluster's controller, before ipyparallel": (
        "import manyhands.cluster.engines.tied_controller",
        "numpy IPython torch",
    ),
    "what forks the graders": (
        "import manyhands.grading.classroom.grading, manyhands.grading.nbgrader.class_settings",
        "nbgrader sqlalchemy IPython",
    ),
    "a graded kernel": ("import manyhands.isolation.kernel_app", "debugpy _pydevd_bundle"),
}


def shown(program):
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()


@pytest.mark.parametrize("what", LIGHT)
def test_a_process_does_not_load_what_it_does_not_need(what):
    load, without = LIGHT[what]
    assert not set(shown(f"{load}\nimport sys\nprint(*sys.modules)")) & set(without.split())


def test_code_in_a_kernel_without_debugger_can_still_import_debugpy():
    program = (
        "from manyhands.kernel_imports import import_ipykernel\nimport_ipykernel()\nimport "
        "ipykernel.debugger, debugpy\nprint(ipykernel.debugger._is_debugpy_available, "
        "debugpy.__name__)"
    )
    assert shown(program) == ["False", "debugpy"]
