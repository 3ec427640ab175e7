import torch
from torch.utils.data import Dataset


class CharDataset(Dataset):
    """Every piece of `block_size` characters of a text, and the same piece one character later."""

    def __init__(self, path, block_size, truncate=1.0):
        with open(path) as file:
            data = file.read()
        data = data[:int(len(data) * truncate)]
        chars = sorted(set(data))
        print(f"Data has {len(data)} characters, {len(chars)} unique.")
        self.stoi = {ch: i for i, ch in enumerate(chars)}
        self.block_size, self.vocab_size, self.data = block_size, len(chars), data

    def __len__(self):
        return len(self.data) - self.block_size

    def __getitem__(self, idx):
        dix = torch.tensor([self.stoi[ch] for ch in self.data[idx:idx + self.block_size + 1]])
        return dix[:-1], dix[1:]
