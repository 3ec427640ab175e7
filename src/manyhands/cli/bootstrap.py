"""The set-up behind `make lab` and `make test`; `USAGE` says what it does."""

import sys

if sys.version_info < (3, 9):
    sys.exit(
        "manyhands needs Python 3.11, 3.12 or 3.13, and Python 3.9 or later to look for it; this is"
        " Python %d.%d.\nInstall one (Debian and Ubuntu: apt-get install python3 python3-venv), "
        "then type the same command again." % sys.version_info[:2]
    )

import os
import signal
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

USAGE = """The set-up behind `make lab` and `make test`: a clone becomes an environment in which the course
runs.

    python3 src/manyhands/cli/bootstrap.py setup            make or mend the environment
    python3 src/manyhands/cli/bootstrap.py offline          the same, then write all that it fetches into offline/
    python3 src/manyhands/cli/bootstrap.py run MODULE ...   the same, then `python -m MODULE ...` in it
    python3 src/manyhands/cli/bootstrap.py run --with SECTION MODULE ...   the same, and one more section of the lock
    python3 src/manyhands/cli/bootstrap.py run --horovod-later MODULE ...   the same, with Horovod built meanwhile
    python3 src/manyhands/cli/bootstrap.py horovod PID      what is left to the background while process PID runs

Run by whatever Python the machine has (3.9 or later, standard library only); it looks for the
Python that the course needs. A stamp in the environment remembers what was installed, so that a
second start takes a moment.
"""
ROOT = Path(__file__).resolve().parents[3]
if not __package__:  # run as a script: the package is not installed yet
    sys.path[0] = str(ROOT / "src")

from manyhands import machine
from manyhands.cli import offline, pythons, setup_horovod, setup_later, setup_plan
from manyhands.cli.installers import fetch_python
from manyhands.cli.setup_steps import StepFailedError, Steps, hold_set_up_lock


def set_up(root: Path = ROOT, again: bool = False, later: bool = False) -> Path:
    """Bring the environment up to date; returns its Python.

    `again` retries a Horovod build that has failed before; `later` leaves Horovod and the bytecode
    to the background.
    """
    plan = setup_plan.Plan(root, os.environ)
    again = again or setup_horovod.NO_SKIPS
    if later and plan.finished_but_horovod() and not plan.horovod_tried():
        cached, missing = setup_horovod.find_wheel_or_missing_tools(plan)
        if not missing:
            setup_later.start(__file__, plan)
            print(setup_horovod.describe_later(cached), flush=True)
            return plan.python
    if plan.finished(later) and (plan.horovod_done() or not (again or plan.horovod_may_work_now())):
        if not plan.compiled():
            setup_later.start(__file__, plan)
        if not plan.horovod_done():
            print(f"Horovod was not built; {setup_plan.HOROVOD_AGAIN}", flush=True)
        return plan.python
    steps = Steps(5, root / ".manyhands" / "setup.log")
    if os.environ.get("MANYHANDS_PIP") == "1":
        steps.note("MANYHANDS_PIP is no longer used, because uv installs all packages")
    with report_failures(steps), hold_set_up_lock(root / ".manyhands" / "setup.lock"):
        plan = setup_plan.Plan(root, os.environ)
        make_environment(plan, steps)
        install_torch(plan, steps)
        if later and not plan.compiled():
            setup_later.import_torch(plan)
        install_packages(plan, steps, later)
        setup_horovod.install(plan, steps, again, later)
        if later and not plan.finished():
            setup_later.start(__file__, plan)
    return plan.python


@contextmanager
def report_failures(steps: Steps) -> "Iterator[None]":
    """What goes wrong in a step ends the program with which, why and what to do."""
    try:
        yield
    except StepFailedError as error:
        sys.exit("\n" + steps.describe_failure(error))
    except OSError as error:
        sys.exit(
            "\n" + steps.describe_failure(StepFailedError(*setup_plan.explain_os_error(error)))
        )
    except KeyboardInterrupt:
        where = (
            f"in step [{steps.number}/{steps.total}] {steps.name}"
            if steps.number
            else "before the first step"
        )
        sys.exit(f"\nStopped {where}. Run the same command to continue from there.")


def make_environment(plan: setup_plan.Plan, steps: Steps) -> None:
    """Do steps 1 and 2: a Python that the course runs on, and the virtual environment.

    The conda environment that is active serves instead of the two.
    """
    steps.begin("Python")
    if plan.conda:
        steps.end(f"from the conda environment {plan.prefix}")
        steps.begin("environment")
        plan.check_conda()
        return steps.end("conda's")
    if plan.environment_ready():
        steps.end(str(plan.python))
        steps.begin("virtual environment")
        return steps.end(f"{plan.prefix.name} exists")
    try:
        base = (pythons.find_site_python if plan.site else pythons.find_python)(
            os.environ, plan.pythons()
        )
    except pythons.NoPythonError as lack:
        if plan.offline:
            raise
        base = fetch_python(plan.root, steps, lack)
    if plan.offline:
        offline.unpack(plan.offline, plan.root)
        steps.note(f"without a network: everything is taken from {plan.offline.name}/")
    steps.end(base)
    steps.begin("virtual environment")
    plan.clear_prefix()
    steps.call([base, "-m", "venv", str(plan.prefix)])
    if plan.site:
        plan.show_site(base)
    plan.installer(steps).get_uv()
    facts = pythons.ask_python(str(plan.python))
    if facts is None:
        raise StepFailedError(f"{plan.python} did not answer", "type the same command again")
    plan.stamp = {
        "root": str(plan.root),
        "python": pythons.series(facts),
        "site": plan.site,
    }
    plan.save()
    return steps.end(f"{plan.prefix.name} made")


def install_torch(plan: setup_plan.Plan, steps: Steps) -> None:
    """Do step 3: install PyTorch alone, with what its wheel asks for.

    That is nothing for a CPU build, and CUDA's packages for the other.
    """
    steps.begin("PyTorch")
    if plan.site:
        plan.finish_part("torch", plan.torch_wanted())
        return steps.end(f"{plan.version('torch')}, the site's own")
    if plan.stamp.get("torch") != plan.torch_wanted():
        gpu = setup_plan.gpu_here()
        warned: list[bool] = []

        def watch(line: str) -> "str | None":
            if line.strip().startswith("Downloading nvidia") and not gpu and not warned:
                warned.append(True)
                steps.note(setup_plan.CUDA_NOT_WANTED)
            return setup_plan.detail(line)

        options = plan.torch_arguments() + plan.begin_part("torch")
        plan.installer(steps).install(*options, watch=watch, **plan.torch_build())
        plan.stamp["torch_source"] = plan.torch_source()
        plan.finish_part("torch", plan.torch_wanted())
        if gpu and plan.version("torch").endswith("+cpu"):
            steps.note(setup_plan.GPU_NOT_USED)
    return steps.end(plan.version("torch"))


def install_packages(plan: setup_plan.Plan, steps: Steps, later: bool = False) -> None:
    """Step 4: every other pinned package, without asking for dependencies: the list is whole.

    Then the course itself, and, unless that is left for `later`, the bytecode of all.
    """
    steps.begin("packages")
    names = plan.write_package_list()
    if plan.stamp.get("packages") != plan.packages_wanted():
        options: list[str | Path] = [
            "--no-deps",
            "--requirement",
            plan.package_list,
            *plan.begin_part("packages"),
        ]
        plan.installer(steps).install(*options, watch=setup_plan.detail)
        plan.finish_part("packages", plan.packages_wanted())
    if plan.stamp.get("course") != plan.course_wanted():
        plan.installer(steps).install("--no-deps", "--no-build-isolation", "--editable", plan.root)
        plan.finish_part("course", plan.course_wanted())
    if not later and not plan.compiled():
        compile_packages(plan, steps)
    steps.end(f"{len(names)} and the course itself")


def compile_packages(plan: setup_plan.Plan, steps: Steps, workers: int = 0) -> None:
    """Write the bytecode, and remember that it is there."""
    setup_later.compile_packages(plan, steps, workers)
    plan.stamp["compiled"] = plan.bytecode_wanted()
    plan.save()


def finish_in_background(root: Path, starter: int) -> None:
    """Write the bytecode, then build Horovod if it is still missing.

    `setup_later.start` starts this.
    """
    begun = time.time()
    if setup_plan.Plan(root, os.environ).horovod_tried():
        setup_later.wait_for_first_cell(root, starter, begun)
        return compile_in_background(root)
    # a page that looks holds it for a moment
    with machine.hold_horovod_lock(root, timeout_s=5) as mine:
        if mine:
            machine.write_progress(machine.horovod_progress(root), setup_later.WAITING)
            setup_later.wait_for_first_cell(root, starter, begun)
            machine.write_progress(machine.horovod_progress(root), "")
            compile_in_background(root)
            setup_horovod.build(root)


def compile_in_background(root: Path) -> None:
    """Write the bytecode with one process. What goes wrong costs only time later."""
    steps = Steps(1, root / ".manyhands" / "bytecode.log")
    steps.begin("bytecode")
    plan = setup_plan.Plan(root, os.environ)
    if plan.compiled():
        return
    with suppress(*setup_horovod.BUILD_FAILS):
        wanted = plan.bytecode_wanted()
        setup_later.compile_packages(plan, steps, workers=1)
        with hold_set_up_lock(root / ".manyhands" / "setup.lock"):
            plan = setup_plan.Plan(root, os.environ)  # another set-up may have changed what it says
            plan.stamp["compiled"] = wanted
            plan.save()


def install_section(plan: setup_plan.Plan, name: str) -> None:
    """Install the packages of one more section of the lock, for the commands that need them.

    They are `make site` and `make test`.
    """
    if plan.stamp.get(name) == plan.section_wanted(name):
        return
    steps = Steps(1, plan.root / ".manyhands" / "setup.log")
    with report_failures(steps), hold_set_up_lock(plan.root / ".manyhands" / "setup.lock"):
        steps.begin(f"packages of [{name}]")
        options: list[str | Path] = [
            "--no-deps",
            "--requirement",
            plan.section_list(name),
            *plan.begin_part(name),
        ]
        plan.installer(steps).install(*options, watch=setup_plan.detail)
        plan.finish_part(name, plan.section_wanted(name))
        compile_packages(plan, steps)
        steps.end(f"{len(plan.section(name))}")


def write_offline(plan: setup_plan.Plan) -> None:
    """The folder that sets a machine up which has no network."""
    steps = Steps(3, plan.root / ".manyhands" / "offline.log")
    with report_failures(steps), hold_set_up_lock(plan.root / ".manyhands" / "setup.lock"):
        offline.write(plan, steps, plan.version("torch"))
    print(
        f"Carry the clone with {offline.NAME}/ to a machine with Python {plan.stamp['python']}; "
        "`make lab` there needs no network."
    )


def main(argv: "list[str]") -> None:
    """Do what the command line asks for.

    `setup`, `offline`, `horovod`, or `run [--with SECTION] [--horovod-later] MODULE arguments`.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    more = argv[2:3] if argv[:1] == ["run"] and argv[1:2] == ["--with"] else []
    if more:
        argv = ["run", *argv[3:]]
    later = argv[:2] == ["run", "--horovod-later"]
    if later:
        argv = ["run", *argv[2:]]
    if (
        not argv
        or argv[0] not in ("setup", "offline", "horovod", "run")
        or (argv[0] == "run" and len(argv) < 2)
    ):
        sys.exit(USAGE)
    if argv[0] == "horovod":
        return finish_in_background(ROOT, int(argv[1]) if argv[1:] else 0)
    python = set_up(again=argv[0] == "setup", later=later)
    if argv[0] == "setup":
        print(f"The course is ready: {python}")
        return
    plan = setup_plan.Plan(ROOT, os.environ)
    if argv[0] == "offline":
        write_offline(plan)
        return
    for name in more:
        install_section(plan, name)
    sys.stdout.flush()
    os.execve(str(python), [str(python), "-m", *argv[1:]], plan.environment())


if __name__ == "__main__":
    main(sys.argv[1:])
