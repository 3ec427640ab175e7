"""The contrastive loss over the features of all ranks."""

import torch
import torch.distributed as dist
import torch.distributed.nn
from torch import nn
from torch.nn import functional as F


def gather_features(image_features, text_features, local_loss=False, gather_with_grad=False, rank=0, world_size=1):
    if gather_with_grad:
        all_image_features = torch.cat(torch.distributed.nn.all_gather(image_features), dim=0)
        all_text_features = torch.cat(torch.distributed.nn.all_gather(text_features), dim=0)
    else:
        gathered_image_features = [torch.zeros_like(image_features) for _ in range(world_size)]
        gathered_text_features = [torch.zeros_like(text_features) for _ in range(world_size)]
        dist.all_gather(gathered_image_features, image_features)
        dist.all_gather(gathered_text_features, text_features)
        if not local_loss:  # the gradient of this rank's own features
            gathered_image_features[rank] = image_features
            gathered_text_features[rank] = text_features
        all_image_features = torch.cat(gathered_image_features, dim=0)
        all_text_features = torch.cat(gathered_text_features, dim=0)
    return all_image_features, all_text_features


class ClipLoss(nn.Module):
    def __init__(self, local_loss=False, gather_with_grad=False, rank=0, world_size=1):
        super().__init__()
        self.local_loss, self.gather_with_grad = local_loss, gather_with_grad
        self.rank, self.world_size = rank, world_size

    def get_ground_truth(self, device, num_logits):
        labels = torch.arange(num_logits, device=device, dtype=torch.long)
        if self.world_size > 1 and self.local_loss:
            labels = labels + num_logits * self.rank
        return labels

    def get_logits(self, image_features, text_features, logit_scale):
        if self.world_size == 1:
            logits_per_image = logit_scale * image_features @ text_features.T
            return logits_per_image, logits_per_image.T
        all_image_features, all_text_features = gather_features(
            image_features, text_features, self.local_loss, self.gather_with_grad, self.rank, self.world_size)
        if self.local_loss:
            return (logit_scale * image_features @ all_text_features.T,
                    logit_scale * text_features @ all_image_features.T)
        logits_per_image = logit_scale * all_image_features @ all_text_features.T
        return logits_per_image, logits_per_image.T

    def forward(self, image_features, text_features, logit_scale, output_dict=False):
        logits_per_image, logits_per_text = self.get_logits(image_features, text_features, logit_scale)
        labels = self.get_ground_truth(image_features.device, logits_per_image.shape[0])
        total_loss = (F.cross_entropy(logits_per_image, labels) + F.cross_entropy(logits_per_text, labels)) / 2
        return {"contrastive_loss": total_loss} if output_dict else total_loss
