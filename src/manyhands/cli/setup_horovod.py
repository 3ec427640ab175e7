"""Step 5 of the set-up: Horovod, from the cache or built, now or in the background.

Standard library only, and readable by Python 3.9.
"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from manyhands import machine
from manyhands.cli import horovod_wheel, setup_plan
from manyhands.cli.setup_steps import StepFailedError, Steps, hold_set_up_lock

if TYPE_CHECKING:
    from pathlib import Path

    from manyhands.cli.setup_steps import Watch


LATER = (
    "When your first cell has run, Horovod is {} "
    "Start_Here shows how far it is. Meanwhile, everything but unit 10 works."
)
BUILT = "built in the background, which takes about 4 minutes on 2 cores, once."
INSTALLED = "installed in the background, from the wheel that was built here before."
NO_SKIPS = os.environ.get("MANYHANDS_NO_SKIPS") == "1"
BUILD_FAILS = (StepFailedError, RuntimeError, OSError, subprocess.SubprocessError)


def find_wheel_or_missing_tools(plan: setup_plan.Plan) -> tuple[bool, list[tuple[str, str]]]:
    """Return whether Horovod's wheel is in the cache, and the tools that are missing to build it.

    They are [(tool, remedy)], and [] if the wheel is in the cache.
    """
    cached = plan.horovod_cached()
    return cached, [] if cached else horovod_wheel.missing_tools(plan.python)


def describe_later(cached: bool) -> str:
    """Return what is told of a Horovod that the background builds.

    If its wheel is `cached`, the background only installs it.
    """
    return LATER.format(INSTALLED if cached else BUILT)


def build(root: Path) -> None:
    """Build Horovod without stopping another set-up, and install it as step 5 does."""
    plan, steps = setup_plan.Plan(root, os.environ), Steps(1, root / ".manyhands" / "horovod.log")
    steps.begin("Horovod " + horovod_wheel.VERSION)
    failed: Exception | None = None
    try:
        get_wheel(plan, steps)
    except BUILD_FAILS as error:
        failed = error
    steps.number = 0
    with hold_set_up_lock(root / ".manyhands" / "setup.lock"):
        now = setup_plan.Plan(root, os.environ)  # another set-up may have changed what it says
        now.stamp["horovod_lacks"] = []  # this build had its tools
        if failed:
            _remember(now, steps, failed)
        else:
            install(now, steps, again=True)


def get_wheel(plan: setup_plan.Plan, steps: Steps) -> Path:
    """Return Horovod's wheel, from the cache or built.

    A file of the clone says how far it is, for its pages.
    """
    progress = machine.horovod_progress(plan.root)

    def shown(detail: str | None) -> str | None:
        if detail:
            machine.write_progress(progress, detail)
        return detail

    def call(command: list[str], env: dict[str, str], cwd: str, watch: Watch) -> None:
        steps.call(command, env, cwd, watch=lambda line: shown(watch(line)))

    def waiting(detail: str) -> None:
        steps.show(f"another set-up is {shown(detail) or 'building it'}")

    try:
        return horovod_wheel.get_wheel(plan.python, call, waiting=waiting)
    finally:
        machine.write_progress(progress, "")


def install(plan: setup_plan.Plan, steps: Steps, again: bool, later: bool = False) -> None:
    """Step 5: Horovod, from the cache or built, now or `later`.

    It may fail without stopping the course, except where CI forbids it.
    """
    steps.begin("Horovod " + horovod_wheel.VERSION)
    wanted = plan.horovod_wanted()
    if plan.stamp.get("horovod") == wanted:
        return steps.end("is there")
    if plan.stamp.get("horovod_failed") == wanted and not again and not plan.horovod_may_work_now():
        return steps.end("not built; " + setup_plan.HOROVOD_AGAIN)
    try:
        cached, missing = find_wheel_or_missing_tools(plan)
        plan.stamp["horovod_lacks"] = [what for what, _ in missing]
        if missing:
            raise StepFailedError(
                "not found: " + ", ".join(what for what, _ in missing),
                "; ".join(remedy for _, remedy in missing),
            )
        if later:
            return steps.end(describe_later(cached))
        wheel = get_wheel(plan, steps)
        plan.installer(steps).install("--no-deps", "--force-reinstall", wheel)
        steps.call([plan.python, "-c", setup_plan.TRY_HOROVOD], env=plan.environment())
    except BUILD_FAILS as error:
        return _remember(plan, steps, error)
    plan.finish_part("horovod", wanted)
    return steps.end("is there")


def _remember(plan: setup_plan.Plan, steps: Steps, error: Exception) -> None:
    """Say why, and remember it.

    So the next start does not try for minutes what fails again.
    """
    failed = (
        error if isinstance(error, StepFailedError) else StepFailedError(str(error), "read the log")
    )
    if NO_SKIPS:
        raise failed from error
    print(steps.describe_failure(failed), flush=True)
    plan.finish_part("horovod_failed", plan.horovod_wanted())
    print(
        f"  The rest of the course works. Affected: {horovod_wheel.AFFECTED}. `make setup` tries "
        "again.",
        flush=True,
    )
