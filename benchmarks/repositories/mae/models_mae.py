"""A masked autoencoder: the encoder sees a quarter of the patches, a small decoder draws the others."""

import torch
import torch.nn as nn


class MaskedAutoencoderViT(nn.Module):
    def __init__(self, img_size=16, patch_size=4, embed_dim=32, depth=2, num_heads=2, decoder_embed_dim=16,
                 decoder_depth=1, norm_pix_loss=False):
        super().__init__()
        self.patch_size, self.norm_pix_loss = patch_size, norm_pix_loss
        num_patches = (img_size // patch_size) ** 2
        self.patch_embed = nn.Conv2d(3, embed_dim, patch_size, patch_size)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, embed_dim))
        self.pos_embed = nn.Parameter(torch.zeros(1, num_patches + 1, embed_dim), requires_grad=False)
        self.blocks = nn.Sequential(*(self._layer(embed_dim, num_heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(embed_dim)
        self.decoder_embed = nn.Linear(embed_dim, decoder_embed_dim)
        self.mask_token = nn.Parameter(torch.zeros(1, 1, decoder_embed_dim))
        self.decoder_pos_embed = nn.Parameter(torch.zeros(1, num_patches + 1, decoder_embed_dim), requires_grad=False)
        self.decoder_blocks = nn.Sequential(*(self._layer(decoder_embed_dim, num_heads) for _ in range(decoder_depth)))
        self.decoder_pred = nn.Linear(decoder_embed_dim, patch_size**2 * 3)
        self.initialize_weights()

    @staticmethod
    def _layer(dim, num_heads):
        return nn.TransformerEncoderLayer(dim, num_heads, 2 * dim, dropout=0.0, batch_first=True, norm_first=True)

    def initialize_weights(self):
        for embed in (self.pos_embed, self.decoder_pos_embed):
            place = torch.arange(embed.shape[1])[:, None] / 10 ** (torch.arange(embed.shape[2]) / embed.shape[2])
            embed.data.copy_(torch.sin(place)[None])
        nn.init.normal_(self.cls_token, std=0.02)
        nn.init.normal_(self.mask_token, std=0.02)
        self.apply(self._init_weights)

    def _init_weights(self, m):
        if isinstance(m, nn.Linear):
            nn.init.xavier_uniform_(m.weight)
            nn.init.zeros_(m.bias)

    def patchify(self, imgs):
        p, h = self.patch_size, imgs.shape[2] // self.patch_size
        x = imgs.reshape(imgs.shape[0], 3, h, p, h, p)
        return torch.einsum("nchpwq->nhwpqc", x).reshape(imgs.shape[0], h * h, p**2 * 3)

    def random_masking(self, x, mask_ratio):
        N, L, D = x.shape
        len_keep = int(L * (1 - mask_ratio))
        noise = torch.rand(N, L, device=x.device)
        ids_shuffle = torch.argsort(noise, dim=1)
        ids_restore = torch.argsort(ids_shuffle, dim=1)
        x_masked = torch.gather(x, 1, ids_shuffle[:, :len_keep].unsqueeze(-1).repeat(1, 1, D))
        mask = torch.ones([N, L], device=x.device)
        mask[:, :len_keep] = 0
        return x_masked, torch.gather(mask, 1, ids_restore), ids_restore

    def forward_encoder(self, x, mask_ratio):
        x = self.patch_embed(x).flatten(2).transpose(1, 2) + self.pos_embed[:, 1:]
        x, mask, ids_restore = self.random_masking(x, mask_ratio)
        cls_tokens = (self.cls_token + self.pos_embed[:, :1]).expand(x.shape[0], -1, -1)
        return self.norm(self.blocks(torch.cat((cls_tokens, x), dim=1))), mask, ids_restore

    def forward_decoder(self, x, ids_restore):
        x = self.decoder_embed(x)
        mask_tokens = self.mask_token.repeat(x.shape[0], ids_restore.shape[1] + 1 - x.shape[1], 1)
        x_ = torch.cat([x[:, 1:], mask_tokens.to(x.dtype)], dim=1)
        x_ = torch.gather(x_, 1, ids_restore.unsqueeze(-1).repeat(1, 1, x.shape[2]))
        x = torch.cat([x[:, :1], x_], dim=1) + self.decoder_pos_embed
        return self.decoder_pred(self.decoder_blocks(x))[:, 1:]

    def forward_loss(self, imgs, pred, mask):
        target = self.patchify(imgs)
        if self.norm_pix_loss:
            target = (target - target.mean(-1, keepdim=True)) / (target.var(-1, keepdim=True) + 1.0e-6) ** 0.5
        loss = ((pred - target) ** 2).mean(dim=-1)
        return (loss * mask).sum() / mask.sum()

    def forward(self, imgs, mask_ratio=0.75):
        latent, mask, ids_restore = self.forward_encoder(imgs, mask_ratio)
        pred = self.forward_decoder(latent, ids_restore)
        return self.forward_loss(imgs, pred, mask), pred, mask


mae_vit_tiny = MaskedAutoencoderViT
