"""The functions of unit 11 over MPI: nothing in a program changes but its launcher. On two nodes with two processes each:

    mpirun -n 4 -hosts HOST1:2,HOST2:2 python 11_mpi.py         MPICH, Intel MPI
    mpirun -n 4 -H HOST1:2,HOST2:2 python 11_mpi.py             Open MPI
    torchrun --nproc-per-node 4 11_mpi.py                       over gloo, or over NCCL where each rank has a GPU
"""

import torch

from manyhands import comm, functions


def there_and_back(c):
    """Rank 0 multiplies by 3 and sends, rank 1 multiplies by 5 and sends back, rank 0 multiplies by 7. The gradients of this rank's factors."""
    if c.rank > 1:
        return []
    factors = [torch.tensor(value, device=c.device, requires_grad=True) for value in ((3.0, 7.0), (5.0,))[c.rank]]
    if c.rank == 0:
        delegate = functions.send(factors[0] * 2, c, rank=1)
        start = factors[1] * functions.recv(c, rank=1, delegate_variable=delegate)
    else:
        start = functions.send(factors[0] * functions.recv(c, rank=0), c, rank=0)
    start.backward()
    return [factor.grad.item() for factor in factors]


def both_sides(c, call):
    """<Ax, g> and <x, A^T g>, over all ranks: rank r holds r + 1, and each output has the gradient r + 1."""
    x = torch.tensor(c.rank + 1.0, device=c.device, requires_grad=True)
    ys = call(x)
    torch.autograd.backward(ys, [torch.full_like(y, c.rank + 1.0) for y in ys])
    left = sum(y.item() * (c.rank + 1) for y in ys)
    return c.allreduce_obj(left), c.allreduce_obj(0 if x.grad is None else x.item() * x.grad.item())


def main():
    c = comm.create_communicator(timeout_s=30)
    bcast = both_sides(c, lambda x: [functions.bcast(c, x, root=1)])
    allgather = both_sides(c, lambda x: functions.allgather(c, x))
    print(f"rank {c.rank} of {c.size}, over {c.backend}: there and back {there_and_back(c)}; bcast {bcast}, allgather {allgather}")
    c.close()


if __name__ == "__main__":
    main()
