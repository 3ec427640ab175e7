"""A vision transformer that takes images of any size, and DINO's projection head."""

import torch
import torch.nn as nn
import torch.nn.functional as F


def drop_path(x, drop_prob, training):
    """Drop a residual branch, for each image separately."""
    if drop_prob == 0.0 or not training:
        return x
    keep = 1 - drop_prob
    return x / keep * torch.rand(x.shape[0], 1, 1, device=x.device).add(keep).floor()


class Block(nn.Module):
    def __init__(self, dim, num_heads, drop_path_rate):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, num_heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.drop_path_rate = drop_path_rate

    def forward(self, x):
        y = self.norm1(x)
        x = x + drop_path(self.attn(y, y, y, need_weights=False)[0], self.drop_path_rate, self.training)
        return x + drop_path(self.mlp(self.norm2(x)), self.drop_path_rate, self.training)


class VisionTransformer(nn.Module):
    def __init__(self, img_size=16, patch_size=4, embed_dim=32, depth=2, num_heads=2, drop_path_rate=0.0):
        super().__init__()
        self.embed_dim, self.grid = embed_dim, img_size // patch_size
        self.patch_embed = nn.Conv2d(3, embed_dim, patch_size, patch_size)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, embed_dim))
        self.pos_embed = nn.Parameter(torch.zeros(1, embed_dim, self.grid, self.grid))
        self.blocks = nn.ModuleList(Block(embed_dim, num_heads, drop_path_rate) for _ in range(depth))
        self.norm = nn.LayerNorm(embed_dim)
        nn.init.trunc_normal_(self.pos_embed, std=0.02)
        nn.init.trunc_normal_(self.cls_token, std=0.02)

    def forward(self, x):
        x = self.patch_embed(x)
        position = self.pos_embed
        if x.shape[-2:] != position.shape[-2:]:
            position = F.interpolate(position, size=x.shape[-2:], mode="bicubic")
        x = (x + position).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls_token.expand(x.shape[0], -1, -1), x), dim=1)
        for blk in self.blocks:
            x = blk(x)
        return self.norm(x)[:, 0]


class DINOHead(nn.Module):
    def __init__(self, in_dim, out_dim, norm_last_layer=True, hidden_dim=64, bottleneck_dim=16):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(in_dim, hidden_dim), nn.GELU(), nn.Linear(hidden_dim, bottleneck_dim))
        self.last_layer = nn.utils.weight_norm(nn.Linear(bottleneck_dim, out_dim, bias=False))
        self.last_layer.weight_g.data.fill_(1)
        if norm_last_layer:
            self.last_layer.weight_g.requires_grad = False

    def forward(self, x):
        return self.last_layer(F.normalize(self.mlp(x), dim=-1, p=2))


vit_tiny = VisionTransformer
