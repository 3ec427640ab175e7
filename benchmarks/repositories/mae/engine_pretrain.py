"""One epoch of pre-training, with gradient accumulation and a learning rate for each iteration."""

import math
import sys

import torch

import util.lr_sched as lr_sched
import util.misc as misc


def train_one_epoch(model, data_loader, optimizer, device, epoch, loss_scaler, log_writer=None, args=None):
    model.train(True)
    metric_logger = misc.MetricLogger()
    metric_logger.add_meter("lr", misc.SmoothedValue(window_size=1))
    header = "Epoch: [{}]".format(epoch)
    accum_iter = args.accum_iter
    optimizer.zero_grad()

    for data_iter_step, (samples, _) in enumerate(metric_logger.log_every(data_loader, 20, header)):
        if data_iter_step % accum_iter == 0:
            lr_sched.adjust_learning_rate(optimizer, data_iter_step / len(data_loader) + epoch, args)
        samples = samples.to(device, non_blocking=True)

        with torch.cuda.amp.autocast():
            loss, _, _ = model(samples, mask_ratio=args.mask_ratio)
        loss_value = loss.item()
        if not math.isfinite(loss_value):
            print("Loss is {}, stopping training".format(loss_value))
            sys.exit(1)

        loss /= accum_iter
        loss_scaler(loss, optimizer, parameters=model.parameters(), update_grad=(data_iter_step + 1) % accum_iter == 0)
        if (data_iter_step + 1) % accum_iter == 0:
            optimizer.zero_grad()

        torch.cuda.synchronize()
        lr = optimizer.param_groups[0]["lr"]
        metric_logger.update(loss=loss_value, lr=lr)
        loss_value_reduce = misc.all_reduce_mean(loss_value)
        if log_writer is not None and (data_iter_step + 1) % accum_iter == 0:
            log_writer.write(f"{(data_iter_step / len(data_loader) + epoch) * 1000:.0f} {loss_value_reduce} {lr}\n")

    metric_logger.synchronize_between_processes()
    print("Averaged stats:", {k: str(meter) for k, meter in metric_logger.meters.items()})
    return {k: meter.global_avg for k, meter in metric_logger.meters.items()}
