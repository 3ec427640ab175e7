"""Run the tests with coverage.py, in kernels, ranks and commands too: `make coverage`.

    python -m tests.coverage_run                      every test, then a table and pages in build/coverage/pages
    python -m tests.coverage_run tests/unit -k mesh   the arguments are pytest's

The settings are in pyproject.toml, `[tool.coverage.run]`. coverage.py starts by itself in each
process and in each of its forks, and writes what it has counted when the process ends. However, a
cluster ends its ranks by SIGKILL, and the grader ends kernels so, after which nothing can be
written. Therefore, for as long as this program runs, a line in the environment has each measured
process begin with coverage_ends.py, which lets a process save its data first.
"""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "coverage"
# after a1_coverage.pth, by its name; nothing happens in processes that are not measured
STARTS = Path(sysconfig.get_path("purelib")) / "zz_manyhands_coverage.pth"
FLAG = "MANYHANDS_COVERAGE"  # in the environment of the tests, and so of all that they start
BEGIN = (
    "import os; exec(open({path!r}).read(), {{}}) if os.getenv('{flag}') and "
    "os.path.exists({path!r}) else None\n"
)


def coverage(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "coverage", *arguments], cwd=ROOT, env=os.environ | {FLAG: "1"}
    ).returncode


def main(arguments):
    """Run pytest and print the table; returns pytest's exit status."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    coverage("erase")
    STARTS.write_text(
        BEGIN.format(flag=FLAG, path=str(Path(__file__).with_name("coverage_ends.py")))
    )
    try:
        status = coverage("run", "-m", "pytest", *arguments)
    finally:
        STARTS.unlink(missing_ok=True)
    # the files of a process that was killed while it wrote are left out
    coverage("combine", "--quiet")
    coverage("html", "--quiet")
    coverage("report")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
