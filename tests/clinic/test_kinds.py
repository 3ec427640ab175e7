"""The clinic on scripts that are not plain data parallel.

Also on evidence that was recorded and not used before.
"""

import textwrap

from manyhands.cli import main
from manyhands.clinic.conclude import conclude
from manyhands.clinic.visit import visit


def write(folder, text):
    path = folder / "train.py"
    path.write_text(textwrap.dedent(text))
    return path


def looked_at(folder, text, ranks=2):
    return conclude(visit(write(folder, text), ranks=ranks, patience_s=6))


def keys(findings):
    return [finding.key for finding in findings]


LOCAL_SGD = """
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(1 + dist.get_rank())
    loader = torch.utils.data.DataLoader(torch.randn(30 * 8, 5), batch_size=8)
    for step, rows in enumerate(loader, 1):  # one epoch, which must not be cut before the average
        x, y = rows.split([4, 1], dim=1)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        if step % 6 == 0:  # not within the steps that are written down
            for parameter in model.parameters():
                dist.all_reduce(parameter.data, op=dist.ReduceOp.AVG)
    dist.destroy_process_group()
"""


def test_local_sgd_is_recognised(tmp_path, capsys, monkeypatch):
    write(tmp_path, LOCAL_SGD)
    monkeypatch.chdir(tmp_path)
    assert main(["clinic", "train.py", "--ranks", "2"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert (
        "The script looks like local SGD" in printed
        and "were the same on all ranks again when step 13 began" in printed
    )
    assert "No. Every rank completed 9 steps" in printed and "Nothing was found" in printed


PIPELINE = """
    import torch
    import torch.distributed as dist
    from torch import nn

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    group = [dist.new_group([0, 2]), dist.new_group([1, 3])][rank % 2]
    torch.manual_seed(rank % 2)
    stage = nn.Linear(8, 6) if rank % 2 == 0 else nn.Linear(6, 1)
    optimizer = torch.optim.SGD(stage.parameters(), lr=0.01)
    rows = torch.Generator().manual_seed(rank // 2)
    for _ in range(12):
        x, y = torch.randn(8, 8, generator=rows), torch.randn(8, 1, generator=rows)
        optimizer.zero_grad()
        if rank % 2 == 0:
            out = stage(x)
            dist.send(out.detach(), rank + 1)
            slope = torch.empty(8, 6)
            dist.recv(slope, rank + 1)
            out.backward(slope)
        else:
            between = torch.empty(8, 6)
            dist.recv(between, rank - 1)
            between.requires_grad_()
            nn.functional.mse_loss(stage(between), y).backward()
            dist.send(between.grad, rank - 1)
        for parameter in stage.parameters():
            dist.all_reduce(parameter.grad, group=group)  # and never divided
        optimizer.step()
    dist.destroy_process_group()
"""


def test_a_pipeline_is_no_mistake_and_a_sum_in_one_of_its_groups_is(tmp_path):
    """In a pipeline the ranks begin with different weights and keep their own gradients.

    Neither is named.
    """
    done = looked_at(tmp_path, PIPELINE, ranks=4)
    assert keys(done.mistakes) == ["sum"] and done.code == 1
    assert (
        "2 times the gradient that a single process computes from the rows of all 2 ranks"
        in done.mistakes[0].text
    )


TENSORS = """
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    from torch.utils.checkpoint import checkpoint

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.block = nn.Linear(8, 8), nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))

        def forward(self, x, y):
            logits = checkpoint(self.block, self.first(x), use_reentrant=True)
            return logits, nn.functional.cross_entropy(logits, y)

    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(0)
    model = Model()
    parallelize_module(model.block, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, foreach=False)
    for step in range(12):
        torch.manual_seed(step)
        x, y = torch.randn(10, 8), torch.randint(8, (10,))
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            _, loss = model(x, y)
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()
"""


def test_cut_layers_are_held_to_the_whole_ones_with_autocast_checkpointing_and_two_outputs(
    tmp_path,
):
    """The run in one process puts the parts together, and is in autocast too.

    It counts neither loss nor block twice.
    """
    done = looked_at(tmp_path, TENSORS)
    assert (keys(done.mistakes), done.code) == ([], 0)
    assert done.right.startswith(
        "The script looks like tensor parallelism (ranks {0, 1} hold parts"
    )
    assert (
        "the gradient was what a single process computes with the whole layers and the same 10 rows"
        in done.right
    )


DATA = """
    import torch
    import torch.distributed as dist
    from torch.utils.data import DataLoader, Dataset, DistributedSampler, random_split

    class Noisy(Dataset):
        rows = torch.randn(320, 5, generator=torch.Generator().manual_seed(1))

        def __len__(self):
            return len(self.rows)

        def __getitem__(self, place):
            return self.rows[place, :4] + 0.01 * torch.randn(4), self.rows[place, 4:]

    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    train, valid = random_split(Noisy(), [256, 64])
    sampler = DistributedSampler(train)
    loader = DataLoader(train, batch_size=8, sampler=sampler)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(3):
        next(iter(loader))  # draws the order of the epoch before, which is not trained on
        sampler.set_epoch(epoch)
        for number, (x, y) in enumerate(loader, 1):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            for parameter in model.parameters():  # by each norm, after the average: no mistake of distribution
                parameter.grad.mul_(0.1 / parameter.grad.norm().clamp(min=0.1))
            optimizer.step()
        if number < 16:  # since the clinic has cut the loader short
            raise SystemExit(f"only {number} of 16 batches")
    dist.destroy_process_group()
"""


def test_splits_that_differ_by_rank_are_found_and_a_look_at_the_loader_and_clipping_are_no_mistakes(
    tmp_path,
):
    done = looked_at(tmp_path, DATA)
    assert keys(done.mistakes) == ["split"] and done.code == 1, done.traceback
    assert "into parts of 256, 64 rows" in done.mistakes[0].text
    assert "scaled by parameter" in keys(done.remarks)


CONTRASTIVE = """
    import torch
    import torch.distributed as dist
    from torch import nn

    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Linear(6, 4, bias=False))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(rank)

    def gathered(z):
        parts = [torch.empty_like(z) for _ in range(size)]
        dist.all_gather(parts, z)
        parts[rank] = z
        return torch.cat(parts)

    for step in range(10):
        a = torch.randn(4, 6)
        both = model(torch.cat([a, a + 0.1 * torch.randn(4, 6)]))
        x, y = gathered(both[:4]), gathered(both[4:])
        optimizer.zero_grad()
        nn.functional.cross_entropy(x @ y.T, torch.arange(len(x))).backward()
        optimizer.step()
    dist.destroy_process_group()
"""


def test_a_loss_over_gathered_rows(tmp_path):
    done = looked_at(tmp_path, CONTRASTIVE)
    assert (
        keys(done.mistakes) == ["gathered"]
        and "0.5 times the gradient that a single process computes" in done.mistakes[0].text
    )
