"""Two towers whose features are compared: a small convolution for images, a causal transformer for texts."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class CLIP(nn.Module):
    def __init__(self, embed_dim=16, width=32, vocab_size=64, context_length=8, init_logit_scale=np.log(1 / 0.07)):
        super().__init__()
        self.visual = nn.Sequential(nn.Conv2d(3, width, 4, 4), nn.GELU(), nn.Flatten(),
                                    nn.Linear(width * 16, embed_dim))
        self.token_embedding = nn.Embedding(vocab_size, width)
        self.positional_embedding = nn.Parameter(torch.empty(context_length, width))
        self.transformer = nn.TransformerEncoderLayer(width, 2, 2 * width, dropout=0.0, batch_first=True,
                                                      norm_first=True)
        self.ln_final = nn.LayerNorm(width)
        self.text_projection = nn.Parameter(torch.empty(width, embed_dim))
        self.logit_scale = nn.Parameter(torch.ones([]) * init_logit_scale)
        mask = torch.full((context_length, context_length), float("-inf")).triu_(1)
        self.register_buffer("attn_mask", mask, persistent=False)
        nn.init.normal_(self.positional_embedding, std=0.01)
        nn.init.normal_(self.text_projection, std=width**-0.5)

    def encode_image(self, image, normalize=False):
        features = self.visual(image)
        return F.normalize(features, dim=-1) if normalize else features

    def encode_text(self, text, normalize=False):
        x = self.token_embedding(text) + self.positional_embedding
        x = self.ln_final(self.transformer(x, src_mask=self.attn_mask))
        x = x[torch.arange(x.shape[0], device=x.device), text.argmax(dim=-1)] @ self.text_projection
        return F.normalize(x, dim=-1) if normalize else x

    def forward(self, image=None, text=None):
        return {"image_features": self.encode_image(image, normalize=True),
                "text_features": self.encode_text(text, normalize=True), "logit_scale": self.logit_scale.exp()}
