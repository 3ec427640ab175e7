import math

import torch
from torch import nn


class PositionalEncoding(nn.Module):
    def __init__(self, emb_size, dropout, maxlen=64):
        super().__init__()
        den = torch.exp(-torch.arange(0, emb_size, 2) * math.log(10000) / emb_size)
        pos = torch.arange(0, maxlen).reshape(maxlen, 1)
        pos_embedding = torch.zeros((maxlen, emb_size))
        pos_embedding[:, 0::2] = torch.sin(pos * den)
        pos_embedding[:, 1::2] = torch.cos(pos * den)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("pos_embedding", pos_embedding.unsqueeze(-2))

    def forward(self, token_embedding):
        return self.dropout(token_embedding + self.pos_embedding[:token_embedding.size(0), :])


class Translator(nn.Module):
    """A transformer whose tensors are (position, sentence, embedding)."""

    def __init__(self, num_layers, embed_size, num_heads, src_vocab_size, tgt_vocab_size, dropout):
        super().__init__()
        self.embed_size = embed_size
        self.pos_enc = PositionalEncoding(embed_size, dropout)
        self.src_embedding = nn.Embedding(src_vocab_size, embed_size)
        self.tgt_embedding = nn.Embedding(tgt_vocab_size, embed_size)
        self.transformer = nn.Transformer(embed_size, num_heads, num_layers, num_layers, 2 * embed_size, dropout)
        self.ff = nn.Linear(embed_size, tgt_vocab_size)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)

    def forward(self, src, trg, src_mask, tgt_mask, src_padding_mask, tgt_padding_mask, memory_key_padding_mask):
        src_emb = self.pos_enc(self.src_embedding(src) * math.sqrt(self.embed_size))
        tgt_emb = self.pos_enc(self.tgt_embedding(trg) * math.sqrt(self.embed_size))
        outs = self.transformer(src_emb, tgt_emb, src_mask, tgt_mask, None, src_padding_mask, tgt_padding_mask,
                                memory_key_padding_mask)
        return self.ff(outs)
