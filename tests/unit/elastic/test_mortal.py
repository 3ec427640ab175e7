"""A function in a process of its own: how its end is told, and that nothing of it is left."""

import time

import psutil
import pytest
import torch

from manyhands.elastic.mortal import Outcome, failure, in_process, in_ranks, kill_me, with_rank


def test_what_it_returns_comes_back_and_what_it_prints_does_not(capfd):
    outcome = in_process(lambda a, b: print("heard") or {"sum": a + b}, 2, 3)
    assert (outcome.value, outcome.killed_by, outcome.error) == ({"sum": 5}, "", "")
    assert capfd.readouterr().out == ""


def test_it_changes_nothing_here():
    here = [1]
    assert in_process(here.append, 2).error == ""
    assert here == [1]


def test_an_error_comes_in_words():
    assert in_process(lambda: 1 / 0).error == "ZeroDivisionError: division by zero"


def test_a_large_answer_is_read_to_its_end():
    assert in_process(bytes, 300_000).value == bytes(300_000)


def test_a_death_is_told_by_its_signal():
    assert in_process(kill_me).killed_by == "SIGKILL"


def test_one_that_does_not_end_is_killed():
    begun, before = time.monotonic(), psutil.Process().children()
    assert in_process(time.sleep, 60, limit_s=0.2).error == "not done after 0.2 s"
    assert time.monotonic() - begun < 30
    assert psutil.Process().children() == before


def test_torch_computes_in_a_fork_though_its_threads_are_not_there():
    x = torch.ones(2000, 2000)
    x.relu()  # on several threads, where there are several processors
    assert in_process(lambda: float(x.relu().sum()), limit_s=60).value == 4e6


@pytest.mark.parametrize("size", [0, 700])
def test_a_full_disk_raises_or_kills_at_that_byte(tmp_path, size):
    def write(path):
        path.write_bytes(bytes(1000))

    full = in_process(write, tmp_path / "full", file_bytes=size)
    assert full.error.startswith("OSError: [Errno 27]")
    dead = in_process(write, tmp_path / "dead", file_bytes=size, dies=True)
    assert dead.killed_by == "SIGXFSZ"
    assert (tmp_path / "dead").stat().st_size == size


def test_a_file_below_the_limit_is_written(tmp_path):
    assert in_process((tmp_path / "file").write_bytes, bytes(999), file_bytes=1000).value == 999


def summed(value):
    import torch.distributed as dist

    total = torch.tensor(float(value + dist.get_rank()))
    dist.all_reduce(total)
    return dist.get_rank(), total.item()


def test_ranks_meet_over_gloo_and_return_in_order():
    assert [outcome.value for outcome in in_ranks(summed, 10, ranks=3)] == [
        (0, 33.0),
        (1, 33.0),
        (2, 33.0),
    ]


def test_ranks_of_which_one_is_late_or_raises_leave_no_process():
    def uneven():
        import torch.distributed as dist

        if dist.get_rank() == 1:
            raise ValueError("as it happens")
        time.sleep(60)

    before = psutil.Process().children()
    outcomes = in_ranks(uneven, ranks=2, limit_s=8)
    assert [outcome.error.partition(". ")[0] for outcome in outcomes] == [
        "not done after 8 s",
        "ValueError: as it happens",
    ]
    assert "wait for each other" in outcomes[0].error and "very busy" in outcomes[0].error
    assert psutil.Process().children() == before


def test_the_ranks_of_a_failure_are_named():
    fine, wrong = Outcome(value=1), Outcome(error="RuntimeError: life raised KeyError: 'a'")
    assert with_rank(failure([fine, fine]), [fine, fine]) == ""
    assert (
        with_rank(failure([fine, wrong]), [fine, wrong]) == "On rank 1: life raised KeyError: 'a'"
    )
    assert (
        with_rank(failure([wrong, wrong]), [wrong, wrong])
        == "On all ranks: life raised KeyError: 'a'"
    )
    unwritten = [Outcome(error="RuntimeError: life is not written yet: put your code")] * 2
    assert with_rank(failure(unwritten), unwritten) == "life is not written yet: put your code"


def test_an_error_on_one_rank_ends_the_others_and_is_named_first():
    def some():
        import torch.distributed as dist

        if dist.get_rank() == 1:
            raise NameError("name 'paht' is not defined")
        dist.all_reduce(torch.ones(1))

    began = time.monotonic()
    outcomes = in_ranks(some, ranks=3)
    assert (
        failure(outcomes) == "NameError: name 'paht' is not defined"
        and time.monotonic() - began < 30
    )
    assert all(outcome.error for outcome in outcomes)
    assert failure(in_ranks(summed, 10, ranks=2)) == ""
