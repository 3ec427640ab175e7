import torch
import torch.nn as nn
import torch.nn.functional as F


class MultiheadAttentionLayer(nn.Module):
    def __init__(self, n_embd, n_head, block_size, pdrop):
        super().__init__()
        self.resid_drop = nn.Dropout(pdrop)
        self.c_proj = nn.Linear(n_embd, n_embd)
        self.register_buffer("mask", torch.tril(torch.ones(block_size, block_size)).view(1, 1, block_size, block_size))
        self.attn = nn.MultiheadAttention(n_embd, n_head, dropout=pdrop, batch_first=True)

    def forward(self, x):
        size = x.size(1)
        y = self.attn(x, x, x, attn_mask=self.mask[0, 0, :size, :size] == 0, need_weights=False)[0]
        return self.resid_drop(self.c_proj(y))


class Block(nn.Module):
    def __init__(self, n_embd, n_head, block_size, pdrop):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.attn = MultiheadAttentionLayer(n_embd, n_head, block_size, pdrop)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.GELU(),
                                 nn.Linear(4 * n_embd, n_embd), nn.Dropout(pdrop))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, vocab_size, block_size, n_layer, n_head, n_embd, pdrop):
        super().__init__()
        self.tok_emb = nn.Embedding(vocab_size, n_embd)
        self.pos_emb = nn.Parameter(torch.zeros(1, block_size, n_embd))
        self.drop = nn.Dropout(pdrop)
        self.blocks = nn.ModuleList([Block(n_embd, n_head, block_size, pdrop) for _ in range(n_layer)])
        self.ln_f = nn.LayerNorm(n_embd)
        self.head = nn.Linear(n_embd, vocab_size, bias=False)
        self.apply(self._init_weights)

    def _init_weights(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            module.weight.data.normal_(mean=0.0, std=0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                module.bias.data.zero_()

    def forward(self, idx, targets=None):
        x = self.drop(self.tok_emb(idx) + self.pos_emb[:, :idx.size(1)])
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.ln_f(x))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        return logits, loss


def create_optimizer(model, learning_rate, weight_decay):
    decay = {f"{name}.weight" for name, module in model.named_modules() if isinstance(module, nn.Linear)}
    params = dict(model.named_parameters())
    return torch.optim.AdamW([
        {"params": [p for name, p in params.items() if name in decay], "weight_decay": weight_decay},
        {"params": [p for name, p in params.items() if name not in decay], "weight_decay": 0.0},
    ], lr=learning_rate, betas=(0.9, 0.95))
