"""A detector of one stage that takes images of different sizes. In training it returns a dict of losses, each of them
over a fixed number of cells that are drawn at random in each image."""

import torch
import torch.nn.functional as F
from torch import nn

STRIDE = 4


class BoxPredictor(nn.Module):
    def __init__(self, in_channels, num_classes):
        super().__init__()
        self.objectness = nn.Conv2d(in_channels, 1, 1)
        self.cls_score = nn.Conv2d(in_channels, num_classes, 1)
        self.bbox_pred = nn.Conv2d(in_channels, 4, 1)

    def forward(self, x):
        maps = (self.objectness(x), self.cls_score(x), self.bbox_pred(x))
        return [m.flatten(2).transpose(1, 2) for m in maps]


class Detector(nn.Module):
    def __init__(self, num_classes, cells_per_image=8, width=16):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, width, 3, 2, 1), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, 2, 1), nn.BatchNorm2d(width), nn.ReLU(inplace=True))
        self.box_predictor = BoxPredictor(width, num_classes)
        self.cells_per_image = cells_per_image

    def batch_images(self, images):
        """All images in one tensor, filled up with zeros."""
        height = max(-(-img.shape[1] // STRIDE) * STRIDE for img in images)
        width = max(-(-img.shape[2] // STRIDE) * STRIDE for img in images)
        batch = images[0].new_zeros((len(images), 3, height, width))
        for place, img in zip(batch, images):
            place[:, :img.shape[1], :img.shape[2]].copy_(img)
        return batch

    def forward(self, images, targets=None):
        if self.training and targets is None:
            raise ValueError("In training mode, targets should be passed")
        x = self.backbone(self.batch_images(images))
        objectness, scores, deltas = self.box_predictor(x)
        if not self.training:
            return [{"scores": o.sigmoid(), "labels": s.argmax(-1), "boxes": d}
                    for o, s, d in zip(objectness, scores, deltas)]
        found, labels, wanted, drawn = [], [], [], []
        for place, target in enumerate(targets):
            inside, centre = self.cells(target["boxes"][0], x.shape[-2:])
            cells = self.sample(inside)
            drawn.append(cells)
            found.append(inside[cells].float())
            labels.append(torch.where(inside[cells], target["labels"][0], 0))
            wanted.append((target["boxes"][0] - centre[cells]) / 16)
        take = [torch.stack([m[i][cells] for i, cells in enumerate(drawn)]) for m in (objectness, scores, deltas)]
        found, wanted = torch.stack(found), torch.stack(wanted)
        inside = found[..., None]
        box_loss = F.smooth_l1_loss(take[2] * inside, wanted * inside, reduction="sum") / found.numel()
        return {"loss_objectness": F.binary_cross_entropy_with_logits(take[0][..., 0], found),
                "loss_classifier": F.cross_entropy(take[1].flatten(0, 1), torch.cat(labels)),
                "loss_box_reg": box_loss}

    def cells(self, box, size):
        """Which cells of the map have their centre inside the box, and the centres."""
        y, x = torch.meshgrid(*(torch.arange(n, device=box.device) * STRIDE + STRIDE / 2 for n in size), indexing="ij")
        centre = torch.stack([x, y, x, y], -1).flatten(0, 1)
        inside = (centre[:, 0] > box[0]) & (centre[:, 1] > box[1]) & (centre[:, 0] < box[2]) & (centre[:, 1] < box[3])
        return inside, centre

    def sample(self, inside):
        """As many cells inside as outside of the box, where there are as many."""
        positive, negative = torch.where(inside)[0], torch.where(~inside)[0]
        num_pos = min(len(positive), self.cells_per_image // 2)
        perm1 = torch.randperm(len(positive), device=positive.device)[:num_pos]
        perm2 = torch.randperm(len(negative), device=negative.device)[:self.cells_per_image - num_pos]
        return torch.cat([positive[perm1], negative[perm2]])

