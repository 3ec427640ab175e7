import torch


class FakeImages(torch.utils.data.Dataset):
    """Images of ten classes, as an ImageFolder gives them: cut out at random and flipped."""

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        image = torch.randn(3, 20, 20, generator=torch.Generator().manual_seed(index)) + index % 10 / 10
        top, left = torch.randint(5, (2,)).tolist()
        image = image[:, top:top + 16, left:left + 16]
        return (image.flip(-1) if torch.rand(()) < 0.5 else image), index % 10
