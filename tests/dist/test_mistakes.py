"""Mistakes that a rank can see by itself: a ValueError there, at once.

Where others take part in the call, they hear of it.
"""

import pytest
import torch
from mistakes import all_of, check, mistake

from manyhands import comm, functions

X = torch.arange(3.0)


@mistake({0: "ValueError: send: rank 0 is this rank itself"})
def send_to_itself(c):
    if c.rank == 0:
        functions.send(X, c, 0)


@mistake({1: "ValueError: recv: rank 1 is this rank itself"})
def recv_from_itself(c):
    if c.rank == 1:
        functions.recv(c, 1)


@mistake({0: "ValueError: send: rank 2 is not in communicator ..., whose ranks are 0 to 1."})
def send_to_a_rank_beyond_the_last(c):
    if c.rank == 0:
        functions.send(X, c, 2)


@mistake({1: "ValueError: send: rank -1 is not in communicator ..., whose ranks are 0 to 1."})
def send_to_a_negative_rank(c):
    if c.rank == 1:
        functions.send(X, c, -1)


@mistake({0: "ValueError: recv: rank 7 is not in communicator ..., whose ranks are 0 to 1."})
def recv_from_a_rank_beyond_the_last(c):
    if c.rank == 0:
        functions.recv(c, 7)


@mistake(
    {
        0: (
            "ValueError: recv: rank '1' is not a whole number. The ranks of communicator ... are 0 "
            "to 1."
        )
    }
)
def recv_from_a_rank_that_is_no_number(c):
    if c.rank == 0:
        functions.recv(c, "1")


@mistake(
    dict.fromkeys(
        range(2), "ValueError: bcast: root 2 is not in communicator ..., whose ranks are 0 to 1."
    )
)
def bcast_from_a_root_beyond_the_last(c):
    functions.bcast(c, X, root=2)


@mistake(dict.fromkeys(range(2), "ValueError: gather: root -1 is not in communicator"))
def gather_at_a_negative_root(c):
    functions.gather(c, X, root=-1)


@mistake(
    dict.fromkeys(
        range(3), "ValueError: scatter: root 3 is not in communicator ..., whose ranks are 0 to 2."
    ),
    ranks=3,
)
def scatter_from_a_root_beyond_the_last(c):
    functions.scatter(c, [X] * 3, root=3)


@mistake({0: "ValueError: send: a tensor is needed, not float."})
def send_a_number(c):
    if c.rank == 0:
        functions.send(1.0, c, 1)


@mistake({0: "ValueError: send: a tensor is needed, not ndarray."})
def send_an_array_among_tensors(c):
    if c.rank == 0:
        functions.send([X, X.numpy()], c, 1)


@mistake(
    {0: "ValueError: send: a tensor with layout torch.sparse_coo cannot be sent; use x.to_dense()."}
)
def send_a_sparse_tensor(c):
    if c.rank == 0:
        functions.send(X.to_sparse(), c, 1)


@mistake(
    {
        0: "ValueError: A tag is a whole number from 0 on, not -1.",
        1: "ValueError: A tag is a whole number from 0 on, not 1.5.",
    }
)
def tags_that_are_none(c):
    if c.rank == 0:
        functions.send(X, c, 1, tag=-1)
    else:
        functions.recv(c, 0, tag=1.5)


@mistake(
    {
        0: (
            "CommunicationError: ...allgather: rank 1 reports: allgather: a tensor is needed, not "
            "list."
        ),
        1: "ValueError: allgather: a tensor is needed, not list.",
        2: (
            "CommunicationError: ...allgather: rank 1 reports: allgather: a tensor is needed, not "
            "list."
        ),
    },
    ranks=3,
)
def allgather_of_a_list_on_one_rank(c):
    functions.allgather(c, [1.0] if c.rank == 1 else X)


@mistake(
    {
        0: (
            "CommunicationError: ...bcast, root 1: rank 1 reports: bcast: a tensor is needed, not "
            "NoneType."
        ),
        1: "ValueError: bcast: a tensor is needed, not NoneType.",
    }
)
def bcast_of_nothing(c):
    functions.bcast(c, None, root=1)


@mistake(
    {
        0: "ValueError: scatter: 2 tensors for 3 ranks; there must be one for each rank.",
        1: "CommunicationError: ...scatter, root 0: rank 0 reports: scatter: 2 tensors for 3 ranks",
        2: "CommunicationError: ...scatter, root 0: rank 0 reports: scatter: 2 tensors for 3 ranks",
    },
    ranks=3,
)
def scatter_of_too_few(c):
    functions.scatter(c, [X, X] if c.rank == 0 else None)


@mistake(
    {
        0: "CommunicationError: ...scatter, root 1: rank 1 reports: scatter: 3 tensors for 2 ranks",
        1: "ValueError: scatter: 3 tensors for 2 ranks; there must be one for each rank.",
    }
)
def scatter_of_too_many(c):
    functions.scatter(c, [X] * 3 if c.rank == 1 else None, root=1)


@mistake(
    {
        0: (
            "ValueError: scatter: a list or tuple with one tensor for each rank is needed, not "
            "Tensor."
        ),
        1: "CommunicationError: ...scatter, root 0: rank 0 reports: scatter: a list or tuple",
    }
)
def scatter_of_one_tensor(c):
    functions.scatter(c, torch.ones(2, 3))


@mistake(
    {
        0: "ValueError: alltoall: 1 tensors for 2 ranks",
        1: "CommunicationError: ...alltoall: rank 0 reports: alltoall: 1 tensors for 2 ranks",
    }
)
def alltoall_of_too_few_on_one_rank(c):
    functions.alltoall(c, [X] * (c.rank + 1))


@mistake(
    {
        0: "CommunicationError: ...alltoall: rank 2 reports: alltoall: 4 tensors for 3 ranks",
        1: "CommunicationError: ...alltoall: rank 2 reports: alltoall: 4 tensors for 3 ranks",
        2: "ValueError: alltoall: 4 tensors for 3 ranks; there must be one for each rank.",
    },
    ranks=3,
)
def alltoall_of_too_many_on_one_rank(c):
    functions.alltoall(c, [X] * (4 if c.rank == 2 else 3))


@mistake(dict.fromkeys(range(2), "ValueError: alltoall: 3 tensors for 2 ranks"))
def alltoall_of_too_many_on_all_ranks(c):
    functions.alltoall(c, [X] * 3)


@mistake(
    {
        0: "ValueError: scatter_obj: the root has 3 objects for 2 ranks.",
        1: (
            "CommunicationError: ...scatter_obj, root 0: rank 0 reports: scatter_obj: the root has "
            "3 objects"
        ),
    }
)
def scatter_obj_of_too_many(c):
    c.scatter_obj([1, 2, 3] if c.rank == 0 else None)


@mistake(dict.fromkeys(range(2), "ValueError: bcast: root 0.0 is not a whole number"))
def bcast_from_a_root_that_is_no_whole_number(c):
    functions.bcast(c, X, 0.0)


@mistake({0: "ValueError: send: a tensor on the device meta has a shape but no elements"})
def a_tensor_without_elements(c):
    if c.rank == 0:
        functions.send(torch.ones(100_000, device="meta"), c, 1)


@mistake(
    {
        0: (
            "CommunicationError: ...allreduce: rank 1 reports: allreduce: a tensor is needed, not "
            "float."
        ),
        1: "ValueError: allreduce: a tensor is needed, not float.",
    }
)
def a_sum_of_something_else_on_one_rank(c):
    c.allreduce(3.0 if c.rank == 1 else X)


class Refuses:
    """An object that cannot be sent."""

    def __reduce__(self):
        raise ValueError("this object stays here")


STAYS = {
    0: "ValueError: this object stays here",
    1: "CommunicationError: ...rank 0 reports: this object stays here",
}


@mistake(STAYS)
def bcast_obj_of_what_cannot_be_sent(c):
    c.bcast_obj(Refuses() if c.rank == 0 else None)


@mistake(STAYS)
def gather_obj_of_what_cannot_be_sent(c):
    c.gather_obj(Refuses() if c.rank == 0 else None, root=1)


@mistake(STAYS)
def allgather_obj_of_what_cannot_be_sent(c):
    c.allgather_obj(Refuses() if c.rank == 0 else None)


@mistake(STAYS)
def scatter_obj_of_what_cannot_be_sent(c):
    c.scatter_obj([None, Refuses()])


MODELS_DIFFER = (
    "CommunicationError: bcast_data: the modules differ. Of their parameters and buffers, number {}"
    " is {} on rank 0 and {} on rank 1."
)


@mistake({rank: MODELS_DIFFER.format(0, "float32 (1, 1)", "float32 (4, 1)") for rank in range(2)})
def bcast_data_that_would_be_repeated(c):
    c.bcast_data(torch.nn.Linear(1, 1 if c.rank == 0 else 4))


@mistake({rank: MODELS_DIFFER.format(1, "float32 (3,)", "nothing") for rank in range(2)})
def bcast_data_of_a_model_without_bias(c):
    c.bcast_data(torch.nn.Linear(3, 3, bias=c.rank == 0))


@mistake({0: "ValueError: recv: a tensor is needed, not int."})
def a_delegate_that_is_no_tensor(c):
    if c.rank == 0:
        functions.recv(c, 1, 7)


@mistake(dict.fromkeys(range(2), "ValueError: pseudo_connect: give at least one variable"))
def pseudo_connect_of_a_delegate_alone(c):
    functions.pseudo_connect(torch.zeros(()))


@mistake(
    dict.fromkeys(
        range(2), "ValueError: There is no backend 'tcp'; there are: auto, gloo, nccl, mpi."
    )
)
def a_backend_that_does_not_exist(c):
    comm.create_communicator("tcp")


@mistake(dict.fromkeys(range(2), "ValueError: timeout_s is a number of seconds above 0, not -1."))
def a_time_out_below_zero(c):
    comm.create_communicator(c.backend, timeout_s=-1)


@mistake(dict.fromkeys(range(2), "ValueError: timeout_s is a number of seconds above 0, not inf."))
def a_time_out_that_never_ends(c):
    comm.create_communicator(c.backend, timeout_s=float("inf"))


@mistake(
    dict.fromkeys(
        range(2),
        'ValueError: The "nccl" backend needs a GPU for every rank, and this process sees none',
    )
)
def nccl_without_a_gpu(c):
    comm.create_communicator("nccl")


@pytest.mark.parametrize("program", all_of(__name__), ids=lambda program: program.__name__)
def test_it_is_told(program, pool, tmp_path):
    if program is nccl_without_a_gpu and torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    check(pool, program, tmp_path)
