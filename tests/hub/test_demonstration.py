"""`manyhands hub` without root: a person in a sandbox of their own has none.

It says what it is, and takes one account.
"""

import shutil

from hub.running_hub import small_course

DEMONSTRATE = """
import os, re, subprocess, sys, time
sys.path.insert(0, os.environ["HOME"])
from pathlib import Path
from hub.running_hub import Hub, Visitor

hub = Hub(Path.home() / "clone", Path.home() / "hub")
try:
    hub.wait_until_open()
    print(hub.printed().splitlines()[0])
    two = subprocess.run([sys.executable, "-m", "manyhands", "accounts", "--home", str(hub.folder), "create", "2", "--expires", "1h"], capture_output=True, text=True)
    print(two.returncode, two.stderr.split(".")[0])
    [(name, password)] = hub.create(1)
    visitor = Visitor(hub)
    print(visitor.log_in(name, password).status_code)
    visitor.start_server(name)
    print(sorted(path.name for path in (hub.folder / "homes" / name / "work").iterdir()))
finally:
    print(hub.stop())
"""


def test_without_root(neighbours):
    home, uid = neighbours.accounts.home("ben"), neighbours.accounts.get("ben").uid
    small_course(home / "clone")
    (home / "hub").mkdir()
    # found as the package `hub`
    shutil.copy(__file__.replace("test_demonstration", "running_hub"), home / "hub")
    for path in [home, *home.rglob("*")]:
        shutil.chown(path, uid, uid)
    printed = neighbours.run("ben", DEMONSTRATE, environment={"HOME": "/home/ben"}).splitlines()
    assert printed[0].startswith("DEMONSTRATION for one trusted person"), printed
    assert (
        printed[1]
        == "2 manyhands accounts: Only root can give each attendee a separate user number and a "
        "closed room"
    )
    assert printed[2:] == [
        "302",
        "['.manyhands', '00_preflight', '00_preflight_tutorial.ipynb', 'Start_Here.md']",
        "0",
    ]
