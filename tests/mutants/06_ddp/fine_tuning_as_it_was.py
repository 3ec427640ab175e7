"""The faulty loop itself, copied.

fails: fine-tuning/rates, fine-tuning/layers, fine-tuning/labels
shows: lowered their rates after different epochs
shows: not all of them can match a single process
points: 16
"""
# %% grade_id="fine-tuning"
# %%px --setup
def fine_tuning(model, batches, epochs):
    model[0].requires_grad_(False)
    ddp = DistributedDataParallel(model)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.5)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser, factor=0.5,
                                                           patience=0, threshold=0.1)
    rates = []
    for epoch in range(epochs):
        if epoch == 1:
            model[0].requires_grad_(True)
        loss_of_epoch = 0
        for micro_batches in batches:
            for i, (x, y) in enumerate(micro_batches):
                last = i == len(micro_batches) - 1
                with nullcontext() if last else ddp.no_sync():
                    loss = nn.functional.cross_entropy(ddp(x), y) / len(micro_batches)
                    loss.backward()
                loss_of_epoch += loss.item()
            optimiser.step()
            optimiser.zero_grad()
        scheduler.step(loss_of_epoch)
        rates.append(optimiser.param_groups[0]["lr"])
    return rates
