import torch
from torch.utils.data import Dataset


class MyTrainDataset(Dataset):
    def __init__(self, size):
        torch.manual_seed(0)
        self.size = size
        self.data = [(torch.rand(20), torch.randint(4, ())) for _ in range(size)]

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return self.data[index]
