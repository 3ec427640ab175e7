"""Runs command lines of `manyhands`, one forked process for each: what they load is loaded once.

    python forked_commands.py JOBS RESULTS

JOBS is a JSON list of {"words", "cwd", "limit_s"}, perhaps with "uid", the user to be, and
"writes", a path and what it is to hold before; RESULTS gets a list of {"code", "out", "err"} in the
same order. A command that has not ended after its limit gets the code "late".
"""

import contextlib
import json
import os
import signal
import sys
import tempfile
import traceback

from nbgrader.api import Gradebook  # noqa: F401

from manyhands import cli
from manyhands.cli import certificate, doctor, lab  # noqa: F401 (so that they are loaded once)
from manyhands.clinic import clinic_command, predict_command, scale, visit  # noqa: F401
from manyhands.grading.classroom import class_commands, steps  # noqa: F401
from manyhands.grading.nbgrader import gradebook  # noqa: F401
from manyhands.hackathon.event import event_command  # noqa: F401
from manyhands.hackathon.judge import judging, sandboxes  # noqa: F401
from manyhands.hub import hub_command  # noqa: F401
from manyhands.hub.accounts import accounts_command  # noqa: F401
from manyhands.rehearsal import rehearse_command  # noqa: F401


def run(job):
    if "writes" in job:
        path, content = job["writes"]
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if not child:
            _become(job, out, err)
        code = _ended(child, job["limit_s"])
        return {"code": code, "out": _text(out), "err": _text(err)}


def _become(job, out, err):
    """The child: ends with the command's exit code."""
    code = 99
    try:
        os.setpgid(0, 0)
        os.chdir(job["cwd"])
        if "uid" in job:
            os.setuid(job["uid"])
        for number, file in enumerate((open(os.devnull, "rb"), out, err)):  # noqa: SIM115 - of a process that ends
            os.dup2(file.fileno(), number)
        words = [os.fsdecode(word.encode("utf-8", "surrogateescape")) for word in job["words"]]
        sys.argv = ["manyhands", *words]
        code = cli.main(words) or 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:  # noqa: BLE001 - a fork must not return into the tests
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _ended(child, limit_s):
    def too_late(*_):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        late.append(True)

    late = []
    signal.signal(signal.SIGALRM, too_late)
    signal.alarm(limit_s)
    _, status = os.waitpid(child, 0)
    signal.alarm(0)
    return "late" if late else os.waitstatus_to_exitcode(status)


def _text(file):
    file.seek(0)
    return file.read().decode("utf-8", "backslashreplace")


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8", errors="surrogateescape") as jobs:
        results = [run(job) for job in json.load(jobs)]
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(results, file)
