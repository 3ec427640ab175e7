"""Two attendees' sandboxes and the queue for checks: both see the hub's folder of sockets."""

import subprocess
import sys

import pytest

from hub.running_hub import wait_for
from manyhands.hub.folder import PLACES, sockets
from manyhands.hub.servers import sandbox

HOLD = """
import sys
from manyhands.grading.hub_client import check_slot
with check_slot.hold(lambda line, stays=False: print(line, flush=True)):
    print("mine", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def service(neighbours):
    path = sockets(neighbours.accounts.folder) / PLACES
    process = subprocess.Popen(
        [sys.executable, "-m", "manyhands.hub.services.check_queue", str(path), "1"]
    )
    wait_for(path.exists, "no socket")
    yield
    process.kill()
    process.wait()


def test_rooms_take_turns_and_nobody_has_two_places(neighbours, service):
    def check(name):
        return neighbours.start(
            name, HOLD, environment={"MANYHANDS_PLACES": f"{sandbox.SOCKETS}/{PLACES}"}
        )

    first = check("ann")
    assert first.stdout.readline() == "mine\n"
    again = check("ann")
    assert again.stdout.readline().startswith("place 1 in the queue, 1 at a time")
    other = check("ben")
    assert other.stdout.readline().startswith("place 1 in the queue, 1 at a time"), (
        "before the second check of who has a place"
    )
    first.kill()
    assert other.stdout.readline() == "mine\n"
    other.communicate(timeout=60)
    assert again.communicate(timeout=60)[0].endswith("mine\n")
