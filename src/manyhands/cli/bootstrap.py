"""The set-up behind `make lab` and `make test`: a clone becomes an environment in which the course runs.

    python3 src/manyhands/cli/bootstrap.py setup            make or mend the environment
    python3 src/manyhands/cli/bootstrap.py offline          the same, then write all that it fetches into offline/
    python3 src/manyhands/cli/bootstrap.py run MODULE ...   the same, then `python -m MODULE ...` in it
    python3 src/manyhands/cli/bootstrap.py run --with SECTION MODULE ...   the same, and one more section of the lock
    python3 src/manyhands/cli/bootstrap.py run --horovod-later MODULE ...   the same, with Horovod built meanwhile
    python3 src/manyhands/cli/bootstrap.py horovod          what is built in the background

Run by whatever Python the machine has (3.9 or later, standard library only); it looks for the Python that the course
needs. A stamp in the environment remembers what was installed, so that a second start takes a moment.
"""

import sys

if sys.version_info < (3, 9):
    sys.exit("manyhands needs Python 3.11, 3.12 or 3.13, and Python 3.9 or later to look for it; this is Python "
             "%d.%d.\nInstall one (Debian and Ubuntu: apt-get install python3 python3-venv), "
             "then type the same command again." % sys.version_info[:2])

import fcntl
import os
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
if not __package__:  # run as a script: the package is not installed yet
    sys.path[0] = str(ROOT / "src")

from manyhands import machine
from manyhands.cli import horovod_wheel, offline, pythons, setup_plan
from manyhands.cli.installers import fetch_python
from manyhands.cli.setup_steps import StepFailed, Steps

LATER = "Horovod is being {} Start_Here shows how far it is. Meanwhile, everything but unit 10 works."
BUILT = "built in the background, which takes about 4 minutes on 2 cores, once."
INSTALLED = "installed in the background, from the wheel that was built here before."
NO_SKIPS = os.environ.get("MANYHANDS_NO_SKIPS") == "1"
BUILD_FAILS = (StepFailed, RuntimeError, OSError, subprocess.SubprocessError)


def set_up(root=ROOT, again=False, later=False):
    """Bring the environment up to date; returns its Python. `again` retries a Horovod build that has failed before;
    `later` leaves a build to the background."""
    plan = setup_plan.Plan(root, os.environ)
    again = again or NO_SKIPS
    if later and plan.finished_but_horovod() and not plan.horovod_tried():
        cached, missing = wheel_or_tools(plan)
        if not missing:
            print(start_horovod(plan, cached), flush=True)
            return plan.python
    if plan.finished() and (plan.horovod_done() or not (again or plan.horovod_may_work_now())):
        if not plan.horovod_done():
            print(f"Horovod was not built; {setup_plan.HOROVOD_AGAIN}", flush=True)
        return plan.python
    steps = Steps(5, root / ".manyhands" / "setup.log")
    with failures_told(steps), one_at_a_time(root / ".manyhands" / "setup.lock"):
        plan = setup_plan.Plan(root, os.environ)
        make_environment(plan, steps)
        install_torch(plan, steps)
        install_packages(plan, steps)
        install_horovod(plan, steps, again, later)
    return plan.python


@contextmanager
def failures_told(steps):
    """What goes wrong in a step ends the program with which, why and what to do."""
    try:
        yield
    except StepFailed as error:
        sys.exit("\n" + steps.failure(error))
    except OSError as error:
        sys.exit("\n" + steps.failure(StepFailed(*setup_plan.explain_os_error(error))))
    except KeyboardInterrupt:
        where = f"in step [{steps.number}/{steps.total}] {steps.name}" if steps.number else "before the first step"
        sys.exit(f"\nStopped {where}. Run the same command to continue from there.")


@contextmanager
def one_at_a_time(path):
    """`make lab` and `make test` typed at once: the second waits for the first."""
    with open(path, "w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Another set-up of this clone is running; waiting for it ...", flush=True)
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError:
            pass  # a file system without locks
        yield


def make_environment(plan, steps):
    """Steps 1 and 2: a Python that the course runs on,
    then the virtual environment (or the conda environment that is active)."""
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
        base = (pythons.site_python if plan.site else pythons.find_python)(os.environ, plan.pythons())
    except pythons.NoPython as lack:
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
    plan.stamp = {"root": str(plan.root), "python": pythons.series(pythons.ask_python(str(plan.python))),
                  "site": plan.site}
    plan.save()
    return steps.end(f"{plan.prefix.name} made")


def install_torch(plan, steps):
    """Step 3: PyTorch alone, with what its wheel asks for (nothing for a CPU build, CUDA's packages for the other)."""
    steps.begin("PyTorch")
    if plan.site:
        plan.finish_part("torch", plan.torch_wanted())
        return steps.end(f"{plan.version('torch')}, the site's own")
    if plan.stamp.get("torch") != plan.torch_wanted():
        gpu = setup_plan.gpu_here()
        warned = []

        def watch(line):
            if "nvidia" in line and line.strip().startswith(("Collecting", "Downloading")) and not gpu and not warned:
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


def install_packages(plan, steps):
    """Step 4: every other pinned package, without asking for dependencies: the list is whole.
    Then the course itself."""
    steps.begin("packages")
    names = plan.write_package_list()
    if plan.stamp.get("packages") != plan.packages_wanted():
        seen = set()

        def watch(line):
            if line.startswith(("Collecting", "Requirement already", "Processing")):  # pip's words
                seen.add(line.split()[3 if line.startswith("Requirement") else 1])
            return ", ".join(filter(None,
                                    [seen and f"{min(len(seen), len(names))} of {len(names)}",
                                     setup_plan.detail(line)]))

        options = ["--no-deps", "--requirement", plan.package_list, *plan.begin_part("packages")]
        plan.installer(steps).install(*options, watch=watch)
        plan.finish_part("packages", plan.packages_wanted())
    if plan.stamp.get("course") != plan.course_wanted():
        plan.installer(steps).install("--no-deps", "--no-build-isolation", "--editable", plan.root)
        plan.finish_part("course", plan.course_wanted())
    steps.end(f"{len(names)} and the course itself")


def wheel_or_tools(plan):
    """(whether Horovod's wheel is in the cache, [(tool, remedy)] that are missing to build it if it is not)."""
    cached = plan.horovod_cached()
    return cached, [] if cached else horovod_wheel.missing_tools(plan.python)


def start_horovod(plan, cached):
    """Start step 5 in the background; returns what is told of it.

    A shell that ends immediately starts it, because JupyterLab ends all its own children.
    """
    if not machine.horovod_build(plan.root):  # else it runs already
        subprocess.run(["/bin/sh", "-c", '"$@" &', "sh", sys.executable, str(Path(__file__).resolve()), "horovod"],
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       start_new_session=True, preexec_fn=lambda: os.nice(19), env=plan.environ, check=True)
    return LATER.format(INSTALLED if cached else BUILT)


def build_horovod(root=ROOT):
    """What `start_horovod` starts: build Horovod without stopping another set-up, and install it as step 5 does."""
    with machine.horovod_lock(root, patience_s=5) as mine:  # a page that looks holds it for a moment
        if not mine:
            return
        machine.tell(machine.horovod_progress(root), "")  # a build that was killed has left how far it was
        plan, steps = setup_plan.Plan(root, os.environ), Steps(1, root / ".manyhands" / "horovod.log")
        steps.begin("Horovod " + horovod_wheel.VERSION)
        try:
            wheel_of(plan, steps)
            failed = None
        except BUILD_FAILS as error:
            failed = error
        steps.number = 0
        with one_at_a_time(root / ".manyhands" / "setup.lock"):
            now = setup_plan.Plan(root, os.environ)  # another set-up may have changed what it says
            now.stamp["horovod_lacks"] = []  # this build had its tools
            if failed:
                horovod_failed(now, steps, failed)
            else:
                install_horovod(now, steps, again=True)


def wheel_of(plan, steps):
    """Horovod's wheel, from the cache or built; a file of the clone says how far it is, for its pages."""
    progress = machine.horovod_progress(plan.root)

    def shown(detail):
        if detail:
            machine.tell(progress, detail)
        return detail

    def call(command, env, cwd, watch):
        steps.call(command, env, cwd, watch=lambda line: shown(watch(line)))

    def waiting(detail):
        steps.show(f"another set-up is {shown(detail) or 'building it'}")

    try:
        return horovod_wheel.get_wheel(plan.python, call, waiting=waiting)
    finally:
        machine.tell(progress, "")


def install_horovod(plan, steps, again, later=False):
    """Step 5: Horovod, from the cache or built, now or `later`. It may fail without stopping the course, except where
    CI forbids it."""
    steps.begin("Horovod " + horovod_wheel.VERSION)
    wanted = plan.horovod_wanted()
    if plan.stamp.get("horovod") == wanted:
        return steps.end("is there")
    if plan.stamp.get("horovod_failed") == wanted and not again and not plan.horovod_may_work_now():
        return steps.end("not built; " + setup_plan.HOROVOD_AGAIN)
    try:
        cached, missing = wheel_or_tools(plan)
        plan.stamp["horovod_lacks"] = [what for what, _ in missing]
        if missing:
            raise StepFailed("not found: " + ", ".join(what for what, _ in missing),
                             "; ".join(remedy for _, remedy in missing))
        if later:
            return steps.end(start_horovod(plan, cached))
        wheel = wheel_of(plan, steps)
        plan.installer(steps).install("--no-deps", "--force-reinstall", wheel)
        steps.call([plan.python, "-c", setup_plan.TRY_HOROVOD], env=plan.environment())
    except BUILD_FAILS as error:
        return horovod_failed(plan, steps, error)
    plan.finish_part("horovod", wanted)
    return steps.end("is there")


def horovod_failed(plan, steps, error):
    """Say why, and remember it, so that the next start does not try for minutes what fails again."""
    failed = error if isinstance(error, StepFailed) else StepFailed(str(error), "read the log")
    if NO_SKIPS:
        raise failed from error
    print(steps.failure(failed), flush=True)
    plan.finish_part("horovod_failed", plan.horovod_wanted())
    print(f"  The rest of the course works. Affected: {horovod_wheel.AFFECTED}. `make setup` tries again.", flush=True)


def install_section(plan, name):
    """The packages of one more section of the lock, for commands that need them: `make site`, `make test`."""
    if plan.stamp.get(name) == plan.section_wanted(name):
        return
    steps = Steps(1, plan.root / ".manyhands" / "setup.log")
    with failures_told(steps), one_at_a_time(plan.root / ".manyhands" / "setup.lock"):
        steps.begin(f"packages of [{name}]")
        options = ["--no-deps", "--requirement", plan.section_list(name), *plan.begin_part(name)]
        plan.installer(steps).install(*options, watch=setup_plan.detail)
        plan.finish_part(name, plan.section_wanted(name))
        steps.end(f"{len(plan.section(name))}")


def write_offline(plan):
    """The folder that sets a machine up which has no network."""
    steps = Steps(3, plan.root / ".manyhands" / "offline.log")
    with failures_told(steps), one_at_a_time(plan.root / ".manyhands" / "setup.lock"):
        offline.write(plan, steps, plan.version("torch"))
    print(f"Carry the clone with {offline.NAME}/ to a machine with Python {plan.stamp['python']}; "
          "`make lab` there needs no network.")


def main(argv):
    """`setup`, `offline`, `horovod`, or `run [--with SECTION] [--horovod-later] MODULE arguments`."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    more = argv[2:3] if argv[:1] == ["run"] and argv[1:2] == ["--with"] else []
    if more:
        argv = ["run", *argv[3:]]
    later = argv[:2] == ["run", "--horovod-later"]
    if later:
        argv = ["run", *argv[2:]]
    if not argv or argv[0] not in ("setup", "offline", "horovod", "run") or (argv[0] == "run" and len(argv) < 2):
        sys.exit(__doc__)
    if argv[0] == "horovod":
        return build_horovod()
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
