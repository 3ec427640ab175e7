"""The model and its contrastive loss."""

from .loss import ClipLoss
from .model import CLIP

__all__ = ["CLIP", "ClipLoss"]
