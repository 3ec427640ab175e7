"""`launch` itself: output by rank, exit codes, time-outs, and no process that outlives it.

Scripts here need no framework.
"""

import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from manyhands.cluster.launch import collect, command_lines
from manyhands.cluster.launch.run_script import LaunchError, launch


def two_tasks(path, *args, **options):
    return launch(path, *args, with_="tf_config", tasks={"worker": 2}, **options)


def left_over(mark):
    """The processes whose environment holds `mark`."""
    processes = []
    for process in psutil.process_iter():
        try:
            if (
                process.status() != psutil.STATUS_ZOMBIE
                and process.environ().get("LAUNCH_MARK") == mark
            ):
                processes.append(process)
        except psutil.Error:
            pass
    return processes


def wait_for(condition, timeout_s):
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


ALTERNATE = """
    import json, os, sys, time
    index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
    for i in range(2):
        time.sleep(0.05)
        print("line", i, "of", index, sys.argv[1:])
    print("a warning", file=sys.stderr)
"""


def test_output_is_shown_by_rank_when_all_have_ended(script, capsys):
    result = two_tasks(script(ALTERNATE), "--epochs", 3)
    text = capsys.readouterr().out
    assert text == "".join(
        f"[worker {r}] {line}\n"
        for r in (0, 1)
        for line in (
            f"line 0 of {r} ['--epochs', '3']",
            f"line 1 of {r} ['--epochs', '3']",
            "a warning",
        )
    )
    assert result.returncode == 0 and result.returncodes == {0: 0, 1: 0}
    assert result.output[1].splitlines()[0] == "line 0 of 1 ['--epochs', '3']"
    assert repr(result) == "<train.py under tf_config: 2 of 2 ranks ended with exit code 0>"
    assert "worker 1" in result._repr_html_()


def test_without_echo_nothing_is_shown(script, capsys):
    assert two_tasks(script("print(1)"), echo=False).output == {0: "1\n", 1: "1\n"}
    assert capsys.readouterr().out == ""


FAIL = """
    import json, os, signal, sys, time
    def train(index):
        if index == 1:
            time.sleep(float(sys.argv[2]))
            exec(sys.argv[1])
    train(json.loads(os.environ["TF_CONFIG"])["task"]["index"])
"""


def test_a_failing_rank_is_named_with_its_traceback_and_exit_code(script, capsys):
    result = two_tasks(script(FAIL), "raise ValueError('learning rate')", 0)
    assert (
        result.returncode == 1 and result.returncodes == {0: 0, 1: 1} and result.first_failed == 1
    )
    assert 'File "train.py", line 6, in train' in result.output[1]
    assert "ValueError: learning rate" in result.output[1]
    assert result.report() == "worker 1 failed first: exit code 1."
    assert "worker 1 failed first" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("how", "code"),
    [("sys.exit(7)", 7), ("os._exit(3)", 3), ("os.kill(os.getpid(), signal.SIGKILL)", -9)],
)
def test_exit_codes(script, how, code):
    result = two_tasks(script(FAIL), how, 0, echo=False)
    assert result.returncodes == {0: 0, 1: code} and result.returncode == code


def test_a_late_thread_that_aborts_the_process_hides_no_error(script):
    """torch.distributed's threads do so, about once in a hundred failures after a collective.

    It is an abort, not exit code 1.
    """
    result = two_tasks(
        script(FAIL),
        "print('ValueError: bad sample'); os.write(2, b'terminate called without an active "
        "exception\\n'); os.abort()",
        0,
        echo=False,
    )
    assert result.returncodes == {0: 0, 1: -6} and result.report().splitlines() == [
        "worker 1 failed first: killed by signal 6.",
        (
            '"terminate called without an active exception" is not the cause: after the error above'
            " it, Python was ending while a thread of a library was still running (of "
            "torch.distributed, say, just after a collective)."
        ),
    ]
    assert len(two_tasks(script(FAIL), "os.abort()", 0, echo=False).report().splitlines()) == 1


def test_after_a_failure_the_others_are_stopped_and_say_where_they_stood(script, monkeypatch):
    monkeypatch.setattr(collect, "FAILED_GRACE_S", 0.5)
    path = script("""
        import json, os, sys, time
        if json.loads(os.environ["TF_CONFIG"])["task"]["index"] == 0:
            sys.exit(5)
        time.sleep(1000)  # as in a collective
    """)
    begun = time.monotonic()
    result = two_tasks(path, echo=False)
    assert time.monotonic() - begun < 5
    assert result.returncodes == {0: 5, 1: -9} and result.returncode == 5 and not result.timed_out
    assert result.report().splitlines() == [
        "worker 0 failed first: exit code 5.",
        "[worker 1] was at train.py line 5, in <module>: time.sleep(1000)  # as in a collective",
    ]


def test_a_server_that_fails_is_a_failure_and_one_that_serves_on_is_not(script, monkeypatch):
    monkeypatch.setattr(collect, "FAILED_GRACE_S", 0.5)
    path = script("""
        import json, os, sys, time
        kind = json.loads(os.environ["TF_CONFIG"])["task"]["type"]
        if kind == sys.argv[1]:
            sys.exit(int(sys.argv[2]))
        time.sleep(1000)
    """)
    tasks = {"chief": 1, "ps": 1, "worker": 1}
    failed = launch(path, "ps", 6, with_="tf_config", tasks=tasks, echo=False)
    assert failed.names[failed.first_failed] == "ps 0" and failed.returncode == 6
    assert failed.where == {0: "was at train.py line 6, in <module>: time.sleep(1000)"}
    good = launch(path, "chief", 0, with_="tf_config", tasks=tasks, echo=False)
    assert good.returncode == 0 and good.report() == "" and good.returncodes == {0: 0, 1: -9, 2: -9}
    assert (
        repr(good)
        == "<train.py under tf_config: 1 of 1 ranks ended with exit code 0, 2 servers were stopped>"
    )


def test_a_long_temporary_folder_is_no_obstacle(script, tmp_path, monkeypatch):
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    assert two_tasks(script("print(1)"), echo=False).returncode == 0


HANG = """
    import json, os, subprocess, sys, time
    def exchange():
        subprocess.Popen(["sleep", "1000"], start_new_session=True)
        print("waiting")
        time.sleep(1000)
    if json.loads(os.environ["TF_CONFIG"])["task"]["index"] == 1:
        exchange()
"""


def test_time_out_says_where_and_leaves_no_process(script, capsys):
    mark = f"time-out-{os.getpid()}"
    begun = time.monotonic()
    result = two_tasks(script(HANG), timeout_s=2, env={"LAUNCH_MARK": mark})
    assert time.monotonic() - begun < 2 + 3
    assert result.timed_out and result.returncodes == {0: 0, 1: 124} and result.returncode == 124
    assert result.output[1] == "waiting\n"
    assert capsys.readouterr().out.splitlines() == [
        "[worker 1] waiting",
        "Time-out: 1 of 2 ranks had not finished.",
        "[worker 1] was at train.py line 6, in exchange: time.sleep(1000)",
    ]
    assert left_over(mark) == []


KERNEL = """
    import sys
    from manyhands.cluster.launch.run_script import launch
    launch(sys.argv[1], with_=sys.argv[2], nodes=1, ranks_per_node=2, env={"LAUNCH_MARK": sys.argv[3]})
"""


@pytest.mark.parametrize("with_", ["tf_config", "mpirun"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_outlives_the_kernel(script, number, with_):
    mark = f"kernel-{os.getpid()}-{number}-{with_}"
    hang = script(
        "import subprocess, time\nsubprocess.Popen(['sleep', '1000'], "
        "start_new_session=True)\ntime.sleep(1000)",
        "hang.py",
    )
    temporary = tempfile.mkdtemp(prefix="mh", dir="/tmp")  # tmp_path is too long for a socket
    env = {**os.environ, "TMPDIR": temporary}
    kernel = subprocess.Popen(
        [sys.executable, script(KERNEL, "kernel.py"), hang, with_, mark],
        stderr=subprocess.PIPE,
        env=env,
    )
    try:
        assert wait_for(lambda: sum(p.name() == "sleep" for p in left_over(mark)) == 2, 20)
        assert os.listdir(temporary) != []
        kernel.send_signal(number)
        assert wait_for(lambda: left_over(mark) == [], 5), [
            (p.pid, p.ppid(), p.cmdline()) for p in left_over(mark)
        ]
        kernel.wait(5)
        assert wait_for(lambda: os.listdir(temporary) == [], 5)
    finally:
        shutil.rmtree(temporary)
        kernel.kill()
        kernel.communicate()
        for process in left_over(mark):
            process.kill()


def test_in_a_terminal_lines_come_live_and_coloured(script):
    slow = script("""
        import json, os, time
        index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
        print("hello")
        time.sleep(30 * index)
    """)
    program = (
        f"from manyhands.cluster.launch.run_script import launch; launch({str(slow)!r}, "
        "with_='tf_config', nodes=1, timeout_s=60)"
    )
    ours, theirs = pty.openpty()
    quiet_off = {name: value for name, value in os.environ.items() if name != "MANYHANDS_QUIET"}
    process = subprocess.Popen([sys.executable, "-c", program], stdout=theirs, env=quiet_off)
    try:
        seen = b""
        while seen.count(b"hello") < 2:
            seen += os.read(ours, 4096)
        assert process.poll() is None  # one rank is still asleep
        lines = {line for line in seen.decode().split("\r\n") if line}
        assert lines == {"\x1b[36m[worker 0]\x1b[0m hello", "\x1b[33m[worker 1]\x1b[0m hello"}
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(theirs)


def test_too_much_output_is_cut(script, monkeypatch):
    monkeypatch.setattr(collect, "KEPT_BYTES", 1000)
    result = two_tasks(script("for i in range(1000): print('x' * 99)"), echo=False)
    assert result.returncode == 0
    assert result.output[0].endswith("\n... 99000 more bytes were discarded\n")


def test_environment_of_another_launch_is_not_passed_on(script, monkeypatch):
    for name in ("RANK", "MASTER_PORT", "SLURM_JOB_ID", "PMI_RANK", "HOROVOD_RANK"):
        monkeypatch.setenv(name, "3")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    path = script("""
        import os
        names = "RANK MASTER_PORT SLURM_JOB_ID PMI_RANK HOROVOD_RANK OMP_NUM_THREADS MINE".split()
        print([os.environ.get(name) for name in names])
    """)
    result = two_tasks(path, env={"MINE": 4}, echo=False)
    assert result.output[0] == "[None, None, None, None, None, '1', '4']\n"


def test_gpus_are_dealt_out_by_node(script, monkeypatch):
    path = script("import os; print(os.environ.get('CUDA_VISIBLE_DEVICES'))")
    for gpus, expected in (
        (["0", "1", "2", "3"], ["0,1", "0,1", "2,3", "2,3"]),
        (["5"], ["5", "5", "5", "5"]),
    ):
        monkeypatch.setattr(command_lines, "gpu_ids", lambda gpus=gpus: gpus)
        result = launch(path, with_="mpirun", nodes=2, ranks_per_node=2, echo=False)
        assert [result.output[rank].strip() for rank in range(4)] == expected


def test_mistakes_get_a_remedy(script, tmp_path, monkeypatch):
    path = script("print(1)", "train.py")
    with pytest.raises(FileNotFoundError, match=re.escape("There is no script 'trian.py'")):
        launch("trian.py")
    with pytest.raises(FileNotFoundError, match="There: train.py"):
        launch(tmp_path / "trian.py")
    with pytest.raises(ValueError, match="use one of torchrun, horovodrun, mpirun, tf_config"):
        launch(path, with_="srun")
    with pytest.raises(ValueError, match="whole numbers from 1"):
        launch(path, nodes=0)
    with pytest.raises(ValueError, match="tf_config"):
        launch(path, tasks={"worker": 2})
    with pytest.raises(ValueError, match="at most one chief"):
        launch(path, with_="tf_config", tasks={"chief": 2})
    with pytest.raises(LaunchError, match="Horovod is not installed: `make lab` builds it"):
        launch(path, with_="horovodrun", python="/usr/bin/python3")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(LaunchError, match="pip install mpich mpi4py"):
        launch(path, with_="mpirun", python="/usr/bin/python3")


def test_a_launcher_that_fails_by_itself_is_quoted(script, monkeypatch):
    monkeypatch.setattr(command_lines, "mpiexec", lambda python: "/bin/false")
    result = launch(script("print(1)"), with_="mpirun", nodes=1, ranks_per_node=2, echo=False)
    assert result.returncode == 1 and result.returncodes == {0: None, 1: None}
    assert result.report() == "mpirun ended with exit code 1."


def test_several_launches_at_once_do_not_meet(script):
    path = script("""
        import json, os, socket
        config = json.loads(os.environ["TF_CONFIG"])
        host, port = config["cluster"]["worker"][config["task"]["index"]].split(":")
        with socket.create_server((host, int(port))):
            print(port)
    """)
    with ThreadPoolExecutor(5) as pool:
        results = list(
            pool.map(
                lambda _: launch(path, with_="tf_config", tasks={"worker": 4}, echo=False), range(5)
            )
        )
    ports = [int(text) for result in results for text in result.output.values()]
    assert [result.returncode for result in results] == [0] * 5 and len(set(ports)) == 20
