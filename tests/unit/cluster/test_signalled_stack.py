"""The stacks that a rank writes on a signal, which is sent only while the rank rests."""

import subprocess
import sys
import time

from manyhands.cluster.on_rank.signalled_stack import ScriptStacks

RANK = """
import sys, time
from manyhands.cluster.on_rank.signalled_stack import write_on_signal
write_on_signal(sys.argv[1])
print("at work", flush=True)
end = time.process_time() + 0.6
while time.process_time() < end:
    sorted(range(100))
print("waits", flush=True)
time.sleep(60)
"""


def test_a_rank_at_work_gets_no_signal_and_one_that_waits_says_where(tmp_path):
    """A stack that is written while a thread runs has ended processes (SIGSEGV)."""
    (tmp_path / "rank.py").write_text(RANK)
    stacks, outside = tmp_path / "stacks-0", ScriptStacks(tmp_path)
    process = subprocess.Popen(
        [sys.executable, tmp_path / "rank.py", stacks], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "at work\n"
        assert [outside.look(0) for _ in range(3)] == [None] * 3
        assert process.stdout.readline() == "waits\n" and len(stacks.read_text().splitlines()) == 1
        time.sleep(0.1)
        outside.look(0)
        time.sleep(0.3)
        assert outside.look(0)["lines"][-1]["line"] == 10
    finally:
        process.kill()
        process.wait()
