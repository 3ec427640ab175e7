"""Two random crops of an image: a query and a key."""

import torch


class TwoCropsTransform:
    def __init__(self, base_transform):
        self.base_transform = base_transform

    def __call__(self, x):
        return [self.base_transform(x), self.base_transform(x)]


def random_crop(image, size=16):
    top, left = torch.randint(0, image.shape[1] - size + 1, (2,)).tolist()
    image = image[:, top:top + size, left:left + size] + 0.1 * torch.randn(())
    return image.flip(-1) if torch.rand(()) < 0.5 else image


class Images(torch.utils.data.Dataset):
    """Images that are made here, of a few textures."""

    def __init__(self, length, transform):
        generator = torch.Generator().manual_seed(13)
        self.labels = torch.arange(length) % 6
        self.images = torch.randn(6, 3, 20, 20, generator=generator)[self.labels]
        self.images += 0.3 * torch.randn(length, 3, 20, 20, generator=generator)
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.transform(self.images[index]), int(self.labels[index])
