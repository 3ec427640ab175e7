"""Training scripts in the manner of public repositories, for `python -m benchmarks clinic`.

They are written for GPUs, and started unchanged with `manyhands clinic`, right and with each
mistake that is planted in them.

Each folder of `repositories/` is such a repository; its `planted.toml` says how it is started and
what is planted:

    in_the_manner_of = "karpathy/nanoGPT"
    start = "torchrun --standalone --nproc-per-node 2 train.py --max-iters 20"
    needs = "torch"     # a package that must be installed
    code = 0            # of the right script: 0, or 3 where the clinic says that it cannot determine all

    [[planted]]
    mistake = "no set_epoch"
    file = "train.py"
    was = "sampler.set_epoch(epoch)"      # occurs once in the file
    now = "pass"
    found = "Every epoch has the same order"    # the title of what is to be found, as the command prints it; of what is
                                                # no mistake of distribution, the beginning of the remark, to its colon;
                                                # a list where the speed of the machine decides between titles
"""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

from . import SMOKE

FOLDER = Path(__file__).with_name("repositories")
TITLE = re.compile(r"^   ! (.+)$", re.M)
REMARK = re.compile(r"^   \* ([^:\n]+):", re.M)  # what stands in front of the colon is its title
HANGS = re.compile(r"^2\. Does it hang\?\n   Yes", re.M)


def names():
    """Those of the folders."""
    return sorted(
        folder.name for folder in FOLDER.iterdir() if Path(folder, "planted.toml").exists()
    )


def missed(name, mistake=None, show=False):
    """How many runs of this script were not judged as wanted; a line is printed for each.

    With one `mistake`: that run only; `show` prints what the command printed.
    """
    about = tomllib.loads(Path(FOLDER, name, "planted.toml").read_text())
    if importlib.util.find_spec(about.get("needs", "torch")) is None:
        print(f"| {name} | {about['needs']} is not installed | | | |", flush=True)
        return 0
    number = 0
    for planted in [None, *([] if SMOKE else about["planted"])]:
        called = planted["mistake"] if planted else ""
        if mistake not in (None, called):
            continue
        start = time.monotonic()
        code, text = run(FOLDER / name, about["start"], planted)
        titles = TITLE.findall(text) + ["The script hangs"] * bool(HANGS.search(text))
        if planted:
            wanted = planted["found"]
            wanted = {wanted} if isinstance(wanted, str) else {*wanted}
            well = bool(wanted & {*titles, *REMARK.findall(text)})
        else:
            well = code == about["code"] and not titles
        number += not well
        print(
            f"| {name} | {called or '(right)'} | {'yes' if well else '**NO**'} | "
            f"{'; '.join(titles)} (code {code}) | {time.monotonic() - start:.0f} |",
            flush=True,
        )
        if show:
            print(text, flush=True)
    return number


def run(folder, start, planted=None):
    """Exit code and text of the clinic of a copy of this folder, with this mistake planted."""
    with tempfile.TemporaryDirectory() as place:
        copy = shutil.copytree(
            folder,
            Path(place, folder.name),
            ignore=shutil.ignore_patterns("planted.toml", "__pycache__"),
        )
        if planted:
            file = copy / planted["file"]
            text = file.read_text()
            if text.count(planted["was"]) != 1:
                sys.exit(
                    f"{folder.name}/planted.toml, {planted['mistake']!r}: `was` occurs "
                    f"{text.count(planted['was'])} times in {planted['file']}; it must occur once."
                )
            file.write_text(text.replace(planted["was"], planted["now"]))
        words = shlex.split(start)
        done = subprocess.run(
            [sys.executable, "-m", "manyhands", "clinic", *words],
            cwd=copy,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "COLUMNS": "400"},
        )
        return done.returncode, done.stdout
