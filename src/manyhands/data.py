"""Small real data sets as plain arrays, and how to cut them into one piece per rank.

Every loader returns `(x, y)`: x float32 between 0 and 1, y int64 class numbers. The order of the
samples is the same in every process and on every machine, because ranks agree on who takes which
sample only if they count in the same order. Nothing is downloaded: a loader whose files are missing
says what to fetch and where to put it.
"""

import gzip
import pickle
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

Arrays = tuple["np.ndarray", "np.ndarray"]
DIGITS_TRAIN = 1500
SPLITS = ("train", "test")
DOGS = "http://vision.stanford.edu/aditya86/ImageNetDogs/"


def digits(split: str = "train") -> Arrays:
    """Load scikit-learn's 1797 handwritten digits, 8 x 8 pixels.

    The first 1500 are for training, the last 297 for testing.

    Returns x of shape [n, 64] and y of shape [n], classes 0 to 9. The split never changes and needs
    no seed.
    """
    _known(split)
    # Read the file that scikit-learn brings: importing the whole library costs a rank a second.
    spec = find_spec("sklearn")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("No module named 'sklearn'", name="sklearn")
    home = spec.submodule_search_locations[0]
    with gzip.open(Path(home, "datasets", "data", "digits.csv.gz"), "rt") as lines:
        table = np.loadtxt(lines, delimiter=",", dtype=np.float32)
    part = slice(None, DIGITS_TRAIN) if split == "train" else slice(DIGITS_TRAIN, None)
    return table[part, :64] / np.float32(16), table[part, 64].astype(np.int64)


def shard(n: int, rank: int, world_size: int) -> slice:
    """Return the slice of n samples that belongs to `rank`.

    It is contiguous, and the first `n % world_size` ranks take one more.
    """
    if not 0 <= rank < world_size:
        raise ValueError(
            f"rank {rank} is not one of 0 to {world_size - 1}: give the rank first, then the world "
            "size"
        )
    share, extra = divmod(n, world_size)
    start = rank * share + min(rank, extra)
    return slice(start, start + share + (rank < extra))


def cifar10(root: str | Path, split: str = "train") -> Arrays:
    """CIFAR-10 from files on disk: 50,000 images for training, 10,000 for testing, 10 classes.

    Returns x of shape [n, 3, 32, 32] and y of shape [n]. `root` is the folder that holds
    `cifar-10-batches-py`.
    """
    _known(split)
    names = [f"data_batch_{i}" for i in range(1, 6)] if split == "train" else ["test_batch"]
    folder = Path(root, "cifar-10-batches-py")
    _present(
        [folder / name for name in names],
        "CIFAR-10 (python version), 163 MB",
        "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
        f"tar xzf cifar-10-python.tar.gz -C {root}",
    )
    batches = [_unpickle(folder / name) for name in names]
    x = np.concatenate([batch[b"data"] for batch in batches]).reshape(-1, 3, 32, 32)
    y = np.concatenate([np.asarray(batch[b"labels"], dtype=np.int64) for batch in batches])
    return x.astype(np.float32) / np.float32(255), y


def stanford_dogs(root: str | Path, split: str = "train", size: int = 64) -> Arrays:
    """Stanford Dogs from files on disk: 12,000 images for training, 8,580 for testing, 120 breeds.

    Each image is cut to its middle square and scaled to `size` x `size`. Returns x of shape [n, 3,
    size, size] and y of shape [n]. x takes 12 * size * size bytes per image: 0.6 GB for training at
    size 64, 9.7 GB at size 260 (EfficientNet-B2). `root` is the folder that holds `Images`,
    `train_list.mat` and `test_list.mat`.
    """
    _known(split)
    from PIL import Image, ImageOps
    from scipy.io import loadmat

    root = Path(root)
    _present(
        [root / f"{split}_list.mat"],
        "Stanford Dogs (lists), 0.5 MB",
        DOGS + "lists.tar",
        f"tar xf lists.tar -C {root}",
    )
    table = loadmat(root / f"{split}_list.mat")
    files = [root / "Images" / str(row[0]) for row in table["file_list"].ravel()]
    _present(
        files, "Stanford Dogs (images), 757 MB", DOGS + "images.tar", f"tar xf images.tar -C {root}"
    )
    x = np.empty((len(files), 3, size, size), np.float32)
    for pixels, path in zip(x, files, strict=True):
        with Image.open(path) as image:
            square = ImageOps.fit(image.convert("RGB"), (size, size))
        pixels[:] = np.asarray(square, np.float32).transpose(2, 0, 1) / 255
    return x, table["labels"].ravel().astype(np.int64) - 1


def dog_photos(root: str | Path, split: str = "train") -> tuple[list[Path], list[int], int]:
    """List the files of Stanford Dogs, for a program that reads them one by one.

    Returns their paths, their class numbers, and the number of breeds.

    `root` is the folder that holds `Images/<breed>/*.jpg`. Its lists divide the images, where they
    are (`train_list.mat`, `test_list.mat`); else every fifth image of a breed is for testing.
    """
    _known(split)
    root = Path(root)
    breeds = sorted(folder.name for folder in (root / "Images").glob("*") if folder.is_dir())
    if not breeds:
        raise FileNotFoundError(
            f"{root / 'Images'} has no folders of breeds. "
            f"Fetch Stanford Dogs (images), 757 MB:\n  {DOGS}images.tar\n"
            f"and unpack it:\n  tar xf images.tar -C {root}"
        )
    if (root / f"{split}_list.mat").is_file():
        from scipy.io import loadmat

        names = [str(row[0]) for row in loadmat(root / f"{split}_list.mat")["file_list"].ravel()]
    else:
        every = [
            [f"{breed}/{path.name}" for path in sorted((root / "Images" / breed).glob("*.jpg"))]
            for breed in breeds
        ]
        names = [
            name
            for files in every
            for i, name in enumerate(files)
            if (i % 5 == 4) == (split == "test")
        ]
    return (
        [root / "Images" / name for name in names],
        [breeds.index(name.split("/")[0]) for name in names],
        len(breeds),
    )


def _known(split: str) -> None:
    if split not in SPLITS:
        raise ValueError(f"there is no split {split!r}: use 'train' or 'test'")


def _present(paths: Sequence[Path], what: str, url: str, unpack: str) -> None:
    missing = [path for path in paths if not path.is_file()]
    if missing:
        raise FileNotFoundError(
            f"{missing[0]} does not exist ({len(missing)} of {len(paths)} files are missing). "
            f"Fetch {what}:\n  {url}\nand unpack it:\n  {unpack}"
        )


class _ArraysOnly(pickle.Unpickler):
    """A pickle can run any program when it is read.

    This reader knows arrays, and refuses the rest.
    """

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("numpy", "ndarray"):
            return np.ndarray
        if (module, name) == ("numpy", "dtype"):
            return np.dtype
        if module in ("numpy.core.multiarray", "numpy._core.multiarray") and name == "_reconstruct":
            # numpy does not declare it
            return np._core.multiarray._reconstruct  # type: ignore[attr-defined]
        if (module, name) == ("_codecs", "encode"):
            import _codecs

            return _codecs.encode
        raise pickle.UnpicklingError(
            f"this file asks for {module}.{name}, so it is not a CIFAR-10 batch. Fetch it again"
        )


def _unpickle(path: Path) -> dict[bytes, Any]:
    with path.open("rb") as file:
        return _ArraysOnly(file, encoding="bytes").load()
