"""The sum of the losses is the mean times the number of labels, and without labels this is not a number.

fails: fine-tuning/labels
shows: a micro-batch may have none
points: 18
"""
# %% grade_id="fine-tuning"
# %%px --setup
def fine_tuning(model: nn.Sequential, batches: list, epochs: int) -> list[float]:
    def sum_of_all(number):
        total = torch.tensor(float(number), dtype=torch.float64, device=device)
        dist.all_reduce(total)
        return total.item()

    model[0].requires_grad_(False)
    ddp = DistributedDataParallel(model)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.5)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser, factor=0.5,
                                                           patience=0, threshold=0.1)
    rates = []
    for epoch in range(epochs):
        if epoch == 1:
            model[0].requires_grad_(True)
            ddp = DistributedDataParallel(model)  # its hooks: on all layers now
        loss_of_epoch = labels_of_epoch = 0
        for micro_batches in batches:
            labels = sum_of_all(sum((y != -100).sum().item() for _, y in micro_batches))
            for i, (x, y) in enumerate(micro_batches):
                last = i == len(micro_batches) - 1
                with nullcontext() if last else ddp.no_sync():
                    loss = nn.functional.cross_entropy(ddp(x), y) * (y != -100).sum()
                    (loss * world_size / labels).backward()
                loss_of_epoch += loss.item()
            labels_of_epoch += labels
            optimiser.step()
            optimiser.zero_grad()
        scheduler.step(sum_of_all(loss_of_epoch) / labels_of_epoch)
        rates.append(optimiser.param_groups[0]["lr"])
    return rates
