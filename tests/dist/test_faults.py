"""The table of faults: what is reported, and how soon.

After each, the same cluster computes a right all_reduce.
"""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
from our_processes import SETUP, SLOWER, our_processes, wait_for_none

from manyhands import Cluster
from manyhands.cluster import (
    ClusterNotStarted,
    ClusterStopped,
    ControllerDied,
    Hang,
    Interrupted,
    LimitExceeded,
    Mismatch,
    RankDied,
    RankError,
)
from manyhands.cluster.engines.local import LocalEngines
from manyhands.cluster.engines.reach import StartLimit
from manyhands.cluster.host.ports import FIRST, LAST, reserve

PATIENCE_S = 2


def provoke(cluster, code, **options):
    """Run a cell that must fail; the fault."""
    with pytest.raises(Exception) as caught:
        cluster.px(textwrap.dedent(code), **{"patience_s": PATIENCE_S, **options})
    return caught.value


def assert_healthy(cluster):
    """The same cluster object computes a right all_reduce, on as many ranks as before."""

    def total():
        import torch
        import torch.distributed as dist

        if not dist.is_initialized():
            dist.init_process_group("gloo")
        x = torch.tensor([float(dist.get_rank() + 1)])
        dist.all_reduce(x)
        return x.item()

    assert cluster.run(total) == [10.0] * 4


def has_line(fault, text):
    """The columns of a report are as wide as its longest list of ranks."""
    assert text in re.sub(" +", " ", fault.text), fault.text


def test_one_rank_skips_a_collective(cluster):
    fault = provoke(
        cluster,
        """\
        x = torch.ones(4)
        if rank != 2:
            dist.all_reduce(x)
        """,
    )
    assert type(fault) is Hang and fault.reported_s < (PATIENCE_S + 2) * SLOWER
    assert fault.edges == [(0, 2), (1, 2), (3, 2)] and fault.culprits == [2]
    has_line(
        fault,
        "ranks 0, 1, 3 wait in all_reduce(float32 [4]) at line 3 of this cell: dist.all_reduce(x)",
    )
    has_line(fault, "rank 2 never called all_reduce")
    assert (
        fault.svg.startswith("<svg")
        and fault.svg.count("<circle") == 4
        and fault.svg.count("marker-end") == 3
    )
    assert_healthy(cluster)


def test_recv_without_send(cluster):
    fault = provoke(
        cluster,
        """\
        y = torch.zeros(3)
        if rank == 0:
            dist.recv(y, src=3)
        """,
    )
    assert type(fault) is Hang and fault.edges == [(0, 3)] and fault.culprits == [3]
    assert fault.reported_s < (PATIENCE_S + 2) * SLOWER
    has_line(fault, "rank 0 waits in recv(float32 [3], from rank 3) at line 3 of this cell")
    has_line(fault, "a message from rank 3, which never sent it")
    assert_healthy(cluster)


def test_a_message_under_another_tag(cluster):
    fault = provoke(
        cluster,
        """\
        y = torch.zeros(3)
        if rank == 1:
            dist.isend(y, dst=0, tag=7)
        if rank == 0:
            dist.recv(y, src=1, tag=8)
        """,
    )
    assert type(fault) is Hang
    has_line(fault, "rank 1 sent with tag 7, and rank 0 asks for tag 8")
    assert_healthy(cluster)


def test_all_ranks_recv_first(cluster):
    fault = provoke(
        cluster,
        """\
        y = torch.zeros(3)
        dist.recv(y, src=(rank + 1) % 4)
        dist.send(y, dst=(rank - 1) % 4)
        """,
    )
    assert type(fault) is Hang and fault.edges == [(0, 1), (1, 2), (2, 3), (3, 0)]
    assert fault.reported_s < (PATIENCE_S + 2) * SLOWER
    has_line(fault, "line 2 of this cell: dist.recv(y, src=(rank + 1) % 4)")
    has_line(fault, "0 -> 1 -> 2 -> 3 -> 0")
    assert_healthy(cluster)


def test_barrier_missed(cluster):
    fault = provoke(
        cluster,
        """\
        if rank != 3:
            dist.barrier()
        """,
    )
    assert (
        type(fault) is Hang
        and fault.culprits == [3]
        and fault.reported_s < (PATIENCE_S + 2) * SLOWER
    )
    has_line(fault, "rank 3 never called barrier")
    has_line(fault, "line 2 of this cell: dist.barrier()")
    assert_healthy(cluster)


def test_collectives_in_different_order(cluster):
    fault = provoke(
        cluster,
        """\
        x = torch.ones(4)
        if rank == 0:
            dist.all_reduce(x)
            dist.broadcast(x, 1)
        else:
            dist.broadcast(x, 1)
            dist.all_reduce(x)
        """,
    )
    assert isinstance(fault, (Hang, Mismatch)) and fault.reported_s < (PATIENCE_S + 2) * SLOWER
    has_line(fault, "call 1 of the cell is all_reduce on rank 0, broadcast on ranks 1-3")
    assert fault.svg is not None or type(fault) is Mismatch
    assert_healthy(cluster)


def test_an_asynchronous_wait(cluster):
    fault = provoke(
        cluster,
        """\
        y = torch.zeros(3)
        if rank == 0:
            work = dist.irecv(y, src=1)
            work.wait()
        """,
    )
    assert type(fault) is Hang and fault.edges == [(0, 1)]
    has_line(
        fault, "rank 0 waits in irecv(float32 [3], from rank 1) at line 4 of this cell: work.wait()"
    )
    assert_healthy(cluster)


def test_an_asynchronous_wait_under_the_ledger(cluster):
    fault = provoke(
        cluster,
        """\
        from manyhands.ledger import Ledger
        with Ledger():
            if rank == 0:
                work = dist.irecv(torch.zeros(3), src=1)
                work.wait()
        """,
    )
    assert type(fault) is Hang and fault.edges == [(0, 1)]
    has_line(
        fault, "rank 0 waits in irecv(float32 [3], from rank 1) at line 5 of this cell: work.wait()"
    )
    assert_healthy(cluster)


def test_a_hang_inside_the_backward_of_ddp(cluster):
    fault = provoke(
        cluster,
        """\
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 3))
        if rank != 1:
            model(torch.ones(2, 3)).sum().backward()
        """,
    )
    assert type(fault) is Hang and sorted(fault.waiting) == [0, 2, 3]
    has_line(fault, "line 3 of this cell: model(torch.ones(2, 3)).sum().backward()")
    assert_healthy(cluster)


def test_exception_on_one_rank_while_the_others_wait(cluster):
    fault = provoke(
        cluster,
        """\
        def step():
            if rank == 1:
                raise ValueError("no data left")
            dist.barrier()

        step()
        """,
        patience_s=60,
    )
    assert type(fault) is RankError and fault.reported_s < 2 * SLOWER and fault.culprits == [1]
    first = fault.text.splitlines()[1]
    assert (
        " ".join(first.split())
        == 'rank 1 raised ValueError: no data left at line 3 of this cell: raise ValueError("no '
        'data left")'
    )
    has_line(fault, "called from line 6 of this cell: step()")
    has_line(fault, "ranks 0, 2, 3 waited for rank 1")
    assert "no data left" in fault.traceback[1] and fault.edges == [(0, 1), (2, 1), (3, 1)]
    assert_healthy(cluster)


def test_exception_on_all_ranks_loses_nothing(cluster):
    cluster.px("kept = 5")
    fault = provoke(cluster, "kept + undefined_name")
    assert type(fault) is RankError
    has_line(fault, "undefined_name is not defined on the ranks")
    assert cluster.pull("kept") == [5] * 4
    assert_healthy(cluster)


def test_syntax_error_names_the_line(cluster):
    fault = provoke(cluster, "x = 1\ndef f(:\n    pass")
    has_line(fault, "raised SyntaxError: invalid syntax at line 2 of this cell: def f(:")


def test_engine_killed(cluster):
    pids = cluster.run(os.getpid)
    killed = []
    threading.Timer(
        0.8, lambda: (killed.append(time.monotonic()), os.kill(pids[1], signal.SIGKILL))
    ).start()
    fault = provoke(
        cluster,
        "x = torch.ones(4)\nimport time\nif rank == 1:\n    time.sleep(60)\ndist.all_reduce(x)",
        patience_s=60,
    )
    assert type(fault) is RankDied and fault.culprits == [1] and fault.reported_s - 0.8 < 2 * SLOWER
    has_line(
        fault, "rank 1 died at line 4 of this cell: time.sleep(60) (killed by signal 9 (SIGKILL)"
    )
    assert re.search("^  ranks? 0", fault.text, re.MULTILINE), fault.text
    assert_healthy(cluster)


def test_a_crash_in_c_says_where(cluster):
    fault = provoke(
        cluster,
        "import ctypes\ndef careless(address):\n    ctypes.string_at(address)\nif rank == 2:\n   "
        " careless(0)\ndist.barrier()",
        patience_s=60,
    )
    assert type(fault) is RankDied and fault.culprits == [2]
    line = next(line for line in fault.text.splitlines() if "rank 2" in line)
    assert "SIGSEGV" in line and re.search(
        r"inside string_at \(__init__.py, line \d+\) < careless \(\d+.py, line 3\)", line
    ), fault.text
    assert_healthy(cluster)


def test_an_abort_says_why(cluster):
    code = """import os
os.write(2, b"native words\\n")
if rank == 1:
    os.write(2, b"terminate called after throwing an instance of 'E'\\n  what():  [somewhere.cc:7] it broke\\n")
    os.abort()
dist.barrier()"""
    fault = provoke(cluster, code, patience_s=60)
    assert type(fault) is RankDied and fault.culprits == [1]
    assert "aborted by a library: it broke" in next(
        line for line in fault.text.splitlines() if "rank 1" in line
    ), fault.text
    assert_healthy(cluster)


def test_os_exit_in_a_cell(cluster):
    fault = provoke(
        cluster, "import os\nif rank == 3:\n    os._exit(7)\ndist.barrier()", patience_s=60
    )
    assert type(fault) is RankDied and fault.culprits == [3] and fault.reported_s < 2 * SLOWER
    has_line(
        fault,
        "rank 3 died in os._exit at line 3 of this cell: os._exit(7) (the process ended with exit "
        "code 7)",
    )
    assert_healthy(cluster)


def test_out_of_memory_under_a_limit():
    with Cluster(nodes=1, ranks_per_node=2, memory_mib=600, name="small") as small:
        small.px(SETUP, setup=True)
        fault = provoke(
            small,
            "hog = []\nif rank == 1:\n    while True:\n        hog.append(torch.ones(4 << "
            "20))\ndist.barrier()",
            patience_s=60,
        )
        assert type(fault) is RankDied and fault.culprits == [1]
        has_line(fault, "out of memory: the rank grew over its limit of 600 MiB")
        assert "line 4 of this cell" in fault.text or "line 3 of this cell" in fault.text, (
            fault.text
        )
        assert small.run(lambda: 1) == [1, 1]


def test_an_allocation_that_cannot_be(cluster):
    fault = provoke(
        cluster, "if rank == 2:\n    torch.empty(1 << 60)\ndist.barrier()", patience_s=60
    )
    assert type(fault) is RankError and fault.reported_s < 2 * SLOWER
    has_line(fault, "the rank asked for more memory than is available")
    assert_healthy(cluster)


@pytest.mark.parametrize("size", [4, 400_000])
def test_different_shapes(cluster, size):
    fault = provoke(
        cluster, f"x = torch.ones({size} if rank != 2 else {size} + 2)\ndist.all_reduce(x)"
    )
    assert (
        type(fault) is Mismatch
        and fault.culprits == [2]
        and fault.reported_s < (PATIENCE_S + 2) * SLOWER
    )
    has_line(
        fault,
        f"all_reduce(float32 [{size}]) on ranks 0, 1, 3, all_reduce(float32 [{size + 2}]) on "
        "rank 2",
    )
    assert_healthy(cluster)


@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_different_dtypes(cluster, dtype):
    fault = provoke(
        cluster,
        f"x = torch.ones(4, dtype=torch.{dtype} if rank == 1 else "
        "torch.float32)\ndist.all_reduce(x)",
    )
    assert type(fault) is Mismatch and fault.reported_s < (PATIENCE_S + 2) * SLOWER
    has_line(fault, f"all_reduce(float32 [4]) on ranks 0, 2, 3, all_reduce({dtype} [4]) on rank 1")
    assert_healthy(cluster)


def test_a_message_of_another_shape(cluster):
    fault = provoke(
        cluster,
        "x = torch.ones(4 if rank == 0 else 6)\nif rank == 0:\n    dist.send(x, dst=1)\nif rank == "
        "1:\n    dist.recv(x, src=0)",
    )
    assert type(fault) is Mismatch
    has_line(fault, "rank 0 sent float32 [4] and rank 1 asked for float32 [6]")
    assert_healthy(cluster)


def test_slow_computing_is_no_hang(cluster):
    cluster.px(
        """import time
if rank == 0:
    end = time.time() + 4
    while time.time() < end:
        torch.ones(64, 64) @ torch.ones(64, 64)
if rank == 1:
    time.sleep(4)
dist.barrier()""",
        patience_s=1,
    )
    assert_healthy(cluster)


def test_many_quick_calls_are_no_hang(cluster):
    cluster.px(
        "import time\nend = time.time() + 3\nwhile True:\n    go = torch.tensor([float(time.time() "
        "< end)])\n    dist.all_reduce(go, op=dist.ReduceOp.MIN)\n    if not go.item():\n       "
        " break",
        patience_s=1,
    )


def test_the_hard_limit(cluster):
    fault = provoke(cluster, "import time\nif rank == 0:\n    time.sleep(60)", limit_s=1.5)
    assert type(fault) is LimitExceeded
    has_line(fault, "rank 0 computes at line 3 of this cell: time.sleep(60)")
    assert_healthy(cluster)


def press_stop_when(*paths):
    """The stop button, a second after the ranks have made these files.

    Returns a function: for how many seconds it has been pressed now.
    """
    pressed = []

    def press():
        while not all(path.exists() for path in paths):
            time.sleep(0.05)
        time.sleep(1)
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    return lambda: time.monotonic() - pressed[0]


ENDLESS = "if rank == 1:\n    open({path!r}, 'w').close()\n    while True:\n        pass"


def test_stop_button_in_an_endless_loop(cluster, tmp_path):
    """On a very busy machine the rank may not answer in the time that it has.

    Then it is told where it was.
    """
    pressed_s = press_stop_when(tmp_path / "begun")
    fault = provoke(cluster, ENDLESS.format(path=str(tmp_path / "begun")))
    assert type(fault) is Interrupted and pressed_s() - fault.healed_s < 2 * SLOWER
    has_line(
        fault,
        (
            "rank 1 raised KeyboardInterrupt at line"
            if "KeyboardInterrupt at line" in fault.text
            else "rank 1 computes at line"
        ),
    )
    assert_healthy(cluster)


def test_stop_button_in_a_deadlock(cluster, tmp_path):
    pressed_s = press_stop_when(tmp_path / "begun")
    fault = provoke(
        cluster, ENDLESS.format(path=str(tmp_path / "begun")) + "\ndist.barrier()", patience_s=60
    )
    assert type(fault) is Interrupted and pressed_s() - fault.healed_s < 2 * SLOWER
    has_line(fault, "ranks 0, 2, 3 wait in barrier at line 5 of this cell")
    assert_healthy(cluster)


def test_healing_names_what_was_lost(cluster):
    cluster.px("weights = torch.ones(3)\ndef helper():\n    pass")
    fault = provoke(cluster, "made_here = 1\nif rank != 3:\n    dist.barrier()")
    has_line(fault, "The cluster is healed: 4 new ranks.")
    lost = next(line for line in fault.text.splitlines() if line.startswith("Lost on all ranks:"))
    assert (
        "weights" in lost
        and "helper" in lost
        and "made_here" in lost
        and "torch" not in lost
        and "rank," not in lost
    )
    has_line(fault, "The cells marked --setup ran again and brought back: rank.")
    assert cluster.pull("rank") == [0, 1, 2, 3] and cluster.pull(
        "[rank ** 2, dist.get_world_size()]"
    ) == [[0, 4], [1, 4], [4, 4], [9, 4]]


def test_an_edited_setup_cell_takes_the_place_of_what_it_was(cluster):
    cluster.px("colour = 'red'", setup=True, key="a cell")
    cluster.px("colour = 'blue'", setup=True, key="a cell")
    cluster.heal()
    assert (
        cluster.pull("colour") == ["blue"] * 4
        and len([cell for cell in cluster._recovery.setups if "colour" in cell.code]) == 1
    )
    cluster._recovery.setups = [
        cell for cell in cluster._recovery.setups if "colour" not in cell.code
    ]


def test_a_setup_cell_of_some_ranks_stays_with_them(cluster):
    cluster.px("only_here = True", setup=True, ranks=[1])
    cluster.heal()
    assert cluster.run(lambda: "only_here" in __import__("IPython").get_ipython().user_ns) == [
        False,
        True,
        False,
        False,
    ]
    cluster._recovery.setups = [
        cell for cell in cluster._recovery.setups if "only_here" not in cell.code
    ]


def test_an_isend_that_nobody_waits_for(cluster):
    fault = provoke(
        cluster,
        """\
        y = torch.zeros(3)
        if rank == 1:
            dist.isend(torch.ones(3), dst=0)
        if rank == 0:
            import time
            time.sleep(0.3)
            dist.recv(y, src=1)
        """,
    )
    assert type(fault) is Hang and fault.edges == [(0, 1)]
    has_line(fault, "keep what isend returns, and call its wait()")
    assert_healthy(cluster)


def test_the_fork_server_killed(cluster):
    os.kill(cluster._runtime._engines.group, signal.SIGKILL)
    fault = provoke(cluster, "import time\ntime.sleep(3)")
    assert type(fault) is RankDied
    assert_healthy(cluster)


def test_no_rank_ends_itself_over_a_slow_controller(cluster):
    """By its own choice an engine ends when it has not heard from the controller 50 times.

    That is half a minute on a busy machine.
    """

    def misses():
        from ipyparallel.engine.app import IPEngine

        return IPEngine.instance().max_heartbeat_misses  # 0: it does not count them

    assert cluster.run(misses) == [0] * 4


def test_the_controller_killed():
    with Cluster(nodes=2, ranks_per_node=2, name="short-lived") as short:
        short.px(SETUP, setup=True)
        short.px("x = 1")
        os.killpg(short._runtime._ipp_cluster.controller.pid, signal.SIGKILL)
        time.sleep(0.2)
        with pytest.raises(ControllerDied) as caught:
            short.px("x")
        has_line(caught.value, "The cluster's controller was lost.")
        has_line(caught.value, "Lost on all ranks: x.")
        assert_healthy(short)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_process_outlives_the_kernel(number, tmp_path):
    before = our_processes()
    program = (
        "from manyhands import Cluster\nimport time\nc = Cluster(nodes=1, "
        "ranks_per_node=2)\nprint('up', c._runtime.folder, flush=True)\ntime.sleep(100)"
    )
    kernel = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    word, folder = kernel.stdout.readline().split()
    assert word == "up" and len([p for p in our_processes() if p not in before]) >= 4
    kernel.send_signal(number)
    kernel.wait(10)
    kernel.stdout.close()
    assert not wait_for_none(before, 10)
    assert not os.path.exists(folder)


def test_a_framework_that_is_not_imported_in_time_is_told(monkeypatch):
    start = LocalEngines.start
    monkeypatch.setattr(
        LocalEngines,
        "start",
        lambda self, client, environments, limit: start(
            self, client, environments, StartLimit(0.01)
        ),
    )
    with pytest.raises(
        RuntimeError, match="torch was not imported within 0.01 s; the machine may be busy"
    ):
        Cluster(nodes=1, ranks_per_node=1, framework="torch", name="slow")


def test_why_a_start_failed_is_told_although_the_killed_processes_end_late(monkeypatch):
    start = LocalEngines.start
    monkeypatch.setattr(
        LocalEngines,
        "start",
        lambda self, client, environments, limit: start(
            self, client, environments, StartLimit(0.01)
        ),
    )
    wait = subprocess.Popen.wait

    def late(process, timeout=None):
        if "manyhands.cluster.engines.fork_server" in process.args:
            raise subprocess.TimeoutExpired(process.args, timeout)
        return wait(process, timeout)

    monkeypatch.setattr(subprocess.Popen, "wait", late)
    with pytest.raises(
        ClusterNotStarted,
        match="the machine may be busy. Run this cell again when it has less to do",
    ):
        Cluster(nodes=1, ranks_per_node=1, framework="torch", name="slow")


def test_a_controller_that_does_not_start_in_time_is_told_and_ended(monkeypatch):
    monkeypatch.setattr("manyhands.cluster.engines.reach.START_S", 0.01)
    before = our_processes()
    with pytest.raises(
        RuntimeError,
        match=(
            "controller did not start within 0.01 s; the machine may be busy. Run this cell again"
        ),
    ):
        Cluster(nodes=1, ranks_per_node=1, framework="torch", name="slow")
    assert not wait_for_none(before, 10)


def test_a_rank_that_does_not_start_is_told_with_the_end_of_its_log(monkeypatch):
    nowhere = property(
        lambda engines: "/nowhere/of-the-controller.json", lambda engines, path: None
    )
    monkeypatch.setattr(
        "manyhands.cluster.engines.local.LocalEngines.connection_file", nowhere, raising=False
    )
    with pytest.raises(
        RuntimeError,
        match=r"(?s)Ranks \[0\] did not start\. The end of its log:\n.*of-the-controller.json",
    ):
        Cluster(nodes=1, ranks_per_node=1, framework="torch", name="lost")


def test_many_clusters_at_once():
    """Two processes, as two users would run them, with five clusters each.

    The ranks meet at each cluster's own port: by PyTorch's process group in one of the five, by
    hand in the others, which need not import it.
    """
    program = textwrap.dedent("""
        import os
        from manyhands import Cluster

        def total(mine):
            import torch, torch.distributed as dist
            dist.init_process_group("gloo")
            x = torch.ones(1); dist.all_reduce(x)
            return x.item()

        def meets(mine):
            import os, socket, time
            place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
            if os.environ["RANK"] == "0":
                with socket.create_server(place) as door:
                    return door.accept()[0].makefile().readline()
            while True:
                try:
                    socket.create_connection(place).sendall(mine.encode())
                    return mine
                except ConnectionRefusedError:
                    time.sleep(0.05)

        clusters = [Cluster(nodes=1, ranks_per_node=2, framework=None if i else "torch", name=str(i)) for i in range(5)]
        assert clusters[0].run(total, "", limit_s=300) == [2.0, 2.0]
        for i, c in enumerate(clusters[1:]):
            mine = f"cluster {i} of {os.getpid()}"
            assert c.run(meets, mine, limit_s=300) == [mine, mine]
        [c.stop() for c in clusters]
        print("all right")
        """)
    users = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for _ in range(2)
    ]
    for user in users:
        output, _ = user.communicate(timeout=600)
        assert user.returncode == 0 and "all right" in output, output


def test_the_controllers_ports_are_reserved_so_that_no_connection_takes_them(cluster):
    """Free ports of the ephemeral range were lost to outgoing connections between choice and use.

    A scheduler ended, and no rank answered.
    """
    known = json.loads(Path(cluster._runtime._engines.connection_file).read_text())
    numbers = [
        known[name]
        for name in ("registration", "control", "mux", "task", "iopub", "hb_ping", "hb_pong")
    ] + known["broadcast"]
    assert all(FIRST <= number <= LAST for number in numbers) and len({*numbers}) == len(numbers)
    assert not {*numbers} & {*reserve(100).ports}


def test_started_twice_stops_the_first(capsys):
    first = Cluster(nodes=1, ranks_per_node=1, framework=None, name="twice")
    try:
        with Cluster(nodes=1, ranks_per_node=2, framework=None, name="twice") as second:
            assert "already had a cluster named 'twice' with 1 ranks" in capsys.readouterr().out
            with pytest.raises(RuntimeError, match="was stopped, so its ranks no longer exist"):
                first.px("1")
            assert second.run(lambda: 1) == [1, 1]
    finally:
        first.stop()


def test_too_many_ranks():
    with pytest.raises(
        ValueError, match=r"1000 ranks on .* would only wait for each other. At most"
    ):
        Cluster(nodes=10, ranks_per_node=100)


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"framework": "jax"}, 'is not known. Use "torch"'),
        ({"nodes": 0}, "whole numbers from 1 up"),
        ({"profile": "cloud"}, 'Use "local"'),
    ],
)
def test_wrong_arguments(wrong, message):
    with pytest.raises(ValueError, match=message):
        Cluster(**wrong)


def test_tensorflow_strategy_after_other_operations():
    with Cluster(nodes=1, ranks_per_node=1, framework="tensorflow", name="late") as late:
        late.px("import tensorflow as tf\ntf.ones(3) + 1;", limit_s=200)
        with reserve() as port:
            late.push(
                {
                    "one_worker": json.dumps(
                        {
                            "cluster": {"worker": [f"127.0.0.1:{port.ports[0]}"]},
                            "task": {"type": "worker", "index": 0},
                        }
                    )
                }
            )
        late.px("import os\nos.environ['TF_CONFIG'] = one_worker")
        fault = provoke(late, "strategy = tf.distribute.MultiWorkerMirroredStrategy()")
        assert type(fault) is RankError
        has_line(
            fault, "TensorFlow has already run an operation in this process. Run cluster.heal()"
        )
        late.heal()
        late.px(
            "import tensorflow as tf\nstrategy = tf.distribute.MultiWorkerMirroredStrategy()",
            limit_s=200,
        )


def test_a_stopped_cluster_is_told_in_one_line_and_fails_a_check(capsys):
    """Run All ends with cluster.stop(): the next cell that is edited and run meets it."""
    from manyhands.checks.on_ranks import RankReport

    cluster = Cluster(nodes=1, ranks_per_node=1, framework=None, name="gone")
    cluster.stop()
    with pytest.raises(ClusterStopped) as told:
        cluster.px("1")
    (line,) = told.value._render_traceback_()
    assert (
        line == "The cluster 'gone' was stopped, so its ranks no longer exist. Run the cell with "
        "Cluster(...) again, and then the cells below it."
    )
    with RankReport(
        "average",
        cluster,
        {"average": {"mean": (2, "the mean is right")}},
        {"unwritten": "", "known": {}},
    ) as report:
        report.on_ranks("rank_tools", "device")
    assert "FAIL 0/2" in capsys.readouterr().out
