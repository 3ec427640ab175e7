"""The walls of the package: who may import whom, read from the source.

Also what a bare import pulls in.
"""

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "manyhands"
STDLIB = sys.stdlib_module_names
# package -> what its files may import when they are imported (ours and others'); "late"
# imports inside functions add to it
MAY = {
    "cluster": {"cluster", "shared", "ipyparallel", "IPython", "zmq", "ipykernel"},
    "comm": {"comm", "torch"},
    "functions": {"functions", "comm", "torch"},
    "links": {"links", "functions", "comm", "torch", "numpy"},
    "ledger": {"ledger", "comm", "torch"},
    # of cluster whose file a line is in, and the launch of a script
    "rehearsal": {"rehearsal", "ledger", "cluster", "gpu_stand_in", "torch"},
    "gpt": {"gpt", "ledger", "mesh", "numpy", "torch"},
    "elastic": {"elastic", "numpy", "torch"},
    "mesh": {"mesh", "links", "torch"},
    "plots": {"plots", "simulate", "numpy", "matplotlib"},
    "clinic": {"clinic", "cluster", "shared", "gpu_stand_in"},
    "gpu_stand_in": {"gpu_stand_in"},
    "data": {"numpy", "sklearn"},
    "checks": {"checks", "numpy", "IPython"},
    "authoring": {
        "authoring",
        "isolation",
        "shared",
        "learner",
        "jupytext",
        "nbformat",
        "nbgrader",
        "nbclient",
        "nbconvert",
        "traitlets",
        "psutil",
        "pytest",
        "nbval",
    },
    "isolation": {
        "isolation",
        "ipykernel",
        "jupyter_client",
        "nbclient",
        "nbformat",
        "psutil",
        "shared",
        "traitlets",
        "zmq",
    },
    "shared": {"shared", "psutil"},
    "learner": {"learner", "checks", "shared", "IPython", "ipywidgets"},
    "grading": {
        "grading",
        "isolation",
        "shared",
        "authoring",
        "checks",
        "learner",
        "nbformat",
        "nbclient",
        "nbval",
        "nbgrader",
        "nbconvert",
        "psutil",
        "jupyter_client",
        "ipykernel",
        "zmq",
        "traitlets",
        "tornado",
        "dateutil",
    },
    # of simulate what a collective costs
    "hackathon": {
        "hackathon",
        "learner",
        "gpt",
        "isolation",
        "shared",
        "simulate",
        "numpy",
        "torch",
    },
    "website": {"website", "authoring", "learner", "nbformat", "docutils", "sphinx"},
    "hub": {
        "hub",
        "checks",
        "jupyterhub",
        "jupyter_server",
        "tornado",
        "traitlets",
        "psutil",
        "batchspawner",
        "docker",
        "dockerspawner",
    },
}
LATE = {
    "cluster": {
        "torch",
        "tensorflow",
        "horovod",
        "ipykernel",
        "traitlets",
        "mpi4py",
        "psutil",
        "rehearsal",
        "gpu_stand_in",
        "numpy",
        "tornado",
    },
    "comm": {"mpi4py"},
    "elastic": {"data"},
    "ledger": {"torch", "comm"},
    "rehearsal": {"cluster", "torch", "plots", "IPython"},
    "plots": {"IPython", "sklearn"},
    "clinic": {"torch", "ledger", "plots", "simulate", "rehearsal"},
    "gpu_stand_in": {"torch"},
    "data": {"PIL", "scipy"},
    "checks": {
        "torch",
        "tensorflow",
        "tf_keras",
        "horovod",
        "comm",
        "functions",
        "links",
        "ledger",
        "mesh",
        "cluster",
        "rehearsal",
        "simulate",
        "data",
        "elastic",
        "hackathon",
    },
    "authoring": {"psutil"},
    "learner": {"nbformat", "psutil", "fpdf", "cryptography"},
    # of cluster only the choice of ports, of hackathon the event
    "hub": {"fpdf", "learner", "grading", "isolation", "cluster", "hackathon", "shared"},
    "grading": {"IPython", "tqdm", "psutil", "jupyter_client"},
    "shared": {"cryptography", "jinja2"},
}
FRAMEWORKS = {"torch", "tensorflow", "tf_keras", "keras", "horovod"}


def package_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def without_types(tree):
    """The tree without what stands under `if TYPE_CHECKING:`, which only a type checker imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) in (
            "TYPE_CHECKING",
            "typing.TYPE_CHECKING",
        ):
            node.body = [ast.Pass()]
    return tree


def imports(path):
    """Return [(name, late)]: our packages and foreign ones that a file imports.

    A late import is inside a function.
    """
    tree, imported = without_types(ast.parse(path.read_text())), []
    inside = {
        id(child)
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for child in ast.walk(node)
    }
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = ["manyhands", *path.relative_to(PACKAGE).parts[:-1]]
                base = ".".join([*parts[: len(parts) - node.level + 1], *([base] if base else [])])
            names = (
                [base]
                if base != "manyhands"
                else [f"manyhands.{alias.name}" for alias in node.names]
            )
        for name in names:
            parts = name.split(".")
            target = parts[1] if parts[0] == "manyhands" and len(parts) > 1 else parts[0]
            if target not in STDLIB and target != "manyhands":
                imported.append((target, id(node) in inside))
    return imported


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE))
)
def test_a_package_imports_only_what_the_design_allows(path):
    here = package_of(path)
    # cli imports everything, late; the small files at the top import nothing but the standard
    # library
    if here not in MAY:
        wrong = [name for name, late in imports(path) if not late and name in FRAMEWORKS]
        assert not wrong, f"{path.name} imports {wrong} when it is imported"
        return
    # what needs a framework (checks/ddp/ranks.py) is imported where it is there already: on the
    # ranks, or by a check that has asked for it
    on_ranks = here == "checks" and path.stem.endswith(("ranks", "with_torch"))
    for name, late in imports(path):
        allowed = MAY[here] | (LATE.get(here, set()) if late or on_ranks else set())
        assert name in allowed or name in (
            "units",
            "unit_links",
            "repository",
            "quiet",
            "machine",
            "command_line",
            "kernel_imports",
            "toml",
            "own_environment",
        ), (
            f"{path.relative_to(PACKAGE)} imports {name}{' late' if late else ''}: not an arrow of "
            "the design"
        )


@pytest.mark.parametrize(
    "unit", sorted(path.parent.name for path in PACKAGE.glob("checks/*/messages.py"))
)
def test_the_checks_of_a_unit_import_no_other_units(unit):
    """What two units need is in `rank_tools`, `on_ranks` or `in_kernel`."""
    folder = PACKAGE / "checks" / unit
    imported = {
        name
        for path in folder.glob("*.py")
        for name in re.findall(
            r"^\s*(?:from|import) manyhands\.checks\.(\w+)", path.read_text(), re.MULTILINE
        )
    }
    assert {name for name in imported if (PACKAGE / "checks" / name).is_dir()} <= {unit}


def test_import_manyhands_is_light():
    program = (
        "import sys, manyhands; print(sorted(m for m in sys.modules if m.split('.')[0] in ('torch',"
        " 'tensorflow', 'ipyparallel', 'numpy', 'IPython', 'zmq')))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )


@pytest.mark.parametrize(
    "module",
    [
        "manyhands.authoring",
        "manyhands.grading",
        "manyhands.cluster",
        "manyhands.checks",
        "manyhands.hub.jupyterhub_settings",
    ],
)
def test_no_framework_comes_along(module):
    program = (
        f"import sys, {module}; print(sorted({{m.split('.')[0] for m in sys.modules}} & "
        f"{FRAMEWORKS!r}))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )


# The size of a file is its letters and digits, which no formatter changes: lines are as many as it
# makes of a call.
# 340 lines of 120 columns, as they were on average (31.4), and 8 % for annotations
LARGEST = 11_500
LARGEST_OF_TEXTS = 23_000  # a table of texts, whose lines were fuller
OLDER = {
    "checks/elastic_training/__init__.py",
    "clinic/layouts.py",
    "clinic/judge.py",
    "simulate/training_step.py",
}
LARGEST_OF_OLDER = 13_000


def size(text):
    return sum(letter.isalnum() for letter in text)


def test_the_size_of_a_file_is_the_same_in_any_layout():
    assert (
        size("f(a, b=[1, 2])")
        == size("f(\n    a,\n    b=[\n        1,\n        2,\n    ],\n)\n")
        == 5
    )
    assert size('"one two"') == size('(\n    "one "\n    "two"\n)')


def largest(path):
    of_texts = path.stem.endswith(("messages", "sentences", "words"))
    older = path.relative_to(PACKAGE).as_posix() in OLDER
    return LARGEST_OF_TEXTS if of_texts else LARGEST_OF_OLDER if older else LARGEST


def test_files_fit_on_a_few_screens():
    sizes = {path: size(path.read_text()) for path in PACKAGE.rglob("*.py")}
    assert not {str(path.relative_to(PACKAGE)): n for path, n in sizes.items() if n > largest(path)}


def modules():
    """{dotted name: path} of the package."""
    paths = {}
    for path in PACKAGE.rglob("*.py"):
        parts = ["manyhands", *path.relative_to(PACKAGE).with_suffix("").parts]
        paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return paths


def imported(path, known):
    """Return the modules of ours that a file names in its imports, late ones too.

    The packages that they lie in do not count.
    """
    for node in ast.walk(without_types(ast.parse(path.read_text()))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                if whole in known or (node.module in known and node.module != "manyhands"):
                    yield whole if whole in known else node.module


def test_no_import_circle():
    known = modules()
    left = {name: set(imported(path, known)) - {name} for name, path in known.items()}
    while free := {name for name, needed in left.items() if not needed & left.keys()}:
        left = {name: needed for name, needed in left.items() if name not in free}
    assert not left, f"among these, each imports another: {sorted(left)}"


# a baseline in each challenge
IN_EACH_UNIT = {"__init__", "answers", "ranks", "diagnosis", "messages", "cases", "baseline"}


def test_a_file_name_says_which_file():
    names = Counter(path.stem for path in PACKAGE.rglob("*.py") if path.stem not in IN_EACH_UNIT)
    assert not {name for name, times in names.items() if times > 1}
    tests = Counter(path.name for path in PACKAGE.parents[1].joinpath("tests").rglob("test_*.py"))
    assert not {name for name, times in tests.items() if times > 1}, (
        "pytest takes the second one for the first"
    )
