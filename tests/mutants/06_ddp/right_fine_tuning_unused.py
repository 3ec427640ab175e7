"""DDP wraps the model while nothing is frozen, and looks for unused parameters; gradients are divided after they have been averaged; the loss is summed by steps."""
# %% grade_id="fine-tuning"
# %%px --setup
def fine_tuning(model, batches, epochs):
    ddp = DistributedDataParallel(model, find_unused_parameters=True)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.5)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser, factor=0.5, patience=0, threshold=0.1)
    rates = []
    for epoch in range(epochs):
        model[0].requires_grad_(epoch > 0)
        of_epoch = 0.0
        for micro_batches in batches:
            sums = torch.zeros(2, dtype=torch.float64, device=device)
            for i, (x, y) in enumerate(micro_batches):
                with ddp.no_sync() if i < len(micro_batches) - 1 else nullcontext():
                    loss = nn.functional.cross_entropy(ddp(x), y, reduction="sum")
                    loss.backward()
                sums += torch.stack([loss.detach().double(), (y != -100).sum().double()])
            dist.all_reduce(sums)
            for parameter in model.parameters():
                if parameter.grad is not None:
                    parameter.grad *= world_size / sums[1]
            optimiser.step()
            optimiser.zero_grad()
            of_epoch += (sums[0] / sums[1]).item()
        scheduler.step(of_epoch)
        rates.append(optimiser.param_groups[0]["lr"])
    return rates
