"""data: the same samples in the same order everywhere, and loaders that say what to fetch."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

from manyhands.data import cifar10, digits, dog_photos, shard, stanford_dogs


def test_digits_are_scikit_learns():
    from sklearn.datasets import load_digits

    whole = load_digits()
    x = np.concatenate([digits("train")[0], digits("test")[0]])
    y = np.concatenate([digits("train")[1], digits("test")[1]])
    assert np.array_equal(x * 16, whole.data)
    assert np.array_equal(y, whole.target)


@pytest.mark.parametrize("split, n", [("train", 1500), ("test", 297)])
def test_digits_interface(split, n):
    x, y = digits(split)
    assert x.shape == (n, 64) and x.dtype == np.float32 and x.min() == 0 and x.max() == 1
    assert y.shape == (n,) and y.dtype == np.int64 and set(y) == set(range(10))
    assert np.bincount(y).min() >= 0.8 * n / 10, "each class has its share of the split"


def test_digits_do_not_import_scikit_learn():
    code = (
        "import sys; from manyhands.data import digits; digits(); print('sklearn' in sys.modules, "
        "'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["False", "False"], done.stderr


@pytest.mark.parametrize(
    "loader", [digits, lambda s: cifar10(".", s), lambda s: stanford_dogs(".", s)]
)
def test_an_unknown_split_is_refused(loader):
    with pytest.raises(ValueError, match="use 'train' or 'test'"):
        loader("valid")


@pytest.mark.parametrize("n", [0, 1, 3, 10, 1500])
@pytest.mark.parametrize("world_size", [1, 2, 3, 4, 7])
def test_shards_cover_everything_once_and_evenly(n, world_size):
    pieces = [list(range(n))[shard(n, rank, world_size)] for rank in range(world_size)]
    assert sum(pieces, []) == list(range(n))
    sizes = [len(piece) for piece in pieces]
    assert max(sizes) - min(sizes) <= 1 and sizes == sorted(sizes, reverse=True)


def test_shard_refuses_swapped_arguments():
    with pytest.raises(ValueError, match="rank first"):
        shard(10, 4, 1)


def _write_batch(path, data, labels):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(pickle.dumps({b"data": data, b"labels": labels}, protocol=2))


def test_cifar10_reads_the_python_version(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 256, (10, 3072), dtype=np.uint8)
    for i in range(5):
        _write_batch(
            tmp_path / "cifar-10-batches-py" / f"data_batch_{i + 1}",
            rows[2 * i : 2 * i + 2],
            [i, 9 - i],
        )
    x, y = cifar10(tmp_path)
    assert x.shape == (10, 3, 32, 32) and x.dtype == np.float32 and y.dtype == np.int64
    assert np.array_equal(np.rint(x * 255).reshape(10, -1), rows)
    assert list(y) == [0, 9, 1, 8, 2, 7, 3, 6, 4, 5]


def test_cifar10_says_what_to_fetch(tmp_path):
    with pytest.raises(
        FileNotFoundError,
        match=r"(?s)test_batch does not exist.*cifar-10-python.tar.gz.*tar xzf .* -C ",
    ):
        cifar10(tmp_path, "test")


def test_cifar10_runs_no_foreign_code(tmp_path):
    class Trap:
        def __reduce__(self):
            return print, ("trapped",)

    _write_batch(tmp_path / "cifar-10-batches-py" / "test_batch", Trap(), [0])
    with pytest.raises(pickle.UnpicklingError, match="not a CIFAR-10 batch"):
        cifar10(tmp_path, "test")


def _write_dogs(root, names, labels):
    from PIL import Image
    from scipy.io import savemat

    for shade, name in enumerate(names):
        path = root / "Images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (40, 30), (255, 0, 20 * shade)).save(path)
    table = np.empty((len(names), 1), object)
    table[:, 0] = names
    savemat(
        root / "train_list.mat",
        {"file_list": table, "labels": np.array(labels, float).reshape(-1, 1)},
    )


def test_stanford_dogs_reads_images_and_lists(tmp_path):
    _write_dogs(tmp_path, ["n1-a/1.png", "n2-b/2.png", "n2-b/3.png"], [1, 2, 120])
    x, y = stanford_dogs(tmp_path, size=8)
    assert (
        x.shape == (3, 3, 8, 8)
        and x.dtype == np.float32
        and list(y) == [0, 1, 119]
        and y.dtype == np.int64
    )
    assert (
        np.allclose(x[:, 0], 1)
        and np.allclose(x[:, 1], 0)
        and np.allclose(x[:, 2, 0, 0] * 255, [0, 20, 40])
    )


def test_stanford_dogs_says_what_to_fetch(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"(?s)lists.tar"):
        stanford_dogs(tmp_path)
    _write_dogs(tmp_path, ["n1-a/1.png", "n2-b/2.png"], [1, 2])
    (tmp_path / "Images" / "n2-b" / "2.png").unlink()
    with pytest.raises(FileNotFoundError, match=r"(?s)1 of 2 files are missing.*images.tar"):
        stanford_dogs(tmp_path)


def test_dog_photos_follow_the_lists_or_take_every_fifth_for_testing(tmp_path):
    for breed in ("n2-b", "n1-a"):
        (tmp_path / "Images" / breed).mkdir(parents=True)
        for i in range(6):
            (tmp_path / "Images" / breed / f"{i}.jpg").touch()
    train, test = dog_photos(tmp_path), dog_photos(tmp_path, "test")
    assert [path.parent.name + path.stem for path in test[0]] == ["n1-a4", "n2-b4"] and test[
        1:
    ] == ([0, 1], 2)
    assert (
        len(train[0]) == 10 and train[1] == [0] * 5 + [1] * 5 and not set(train[0]) & set(test[0])
    )
    _write_dogs(tmp_path, ["n2-b/1.jpg", "n1-a/2.jpg"], [2, 1])
    assert dog_photos(tmp_path) == (
        [tmp_path / "Images" / name for name in ("n2-b/1.jpg", "n1-a/2.jpg")],
        [1, 0],
        2,
    )
    with pytest.raises(FileNotFoundError, match=r"(?s)no folders of breeds.*images.tar"):
        dog_photos(tmp_path / "elsewhere")


def test_cifar10_reads_a_pickle_as_python_2_wrote_it(tmp_path):
    def text(value):
        return b"T" + len(value).to_bytes(4, "little") + value

    pixels = bytes(range(256)) * 12
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n"
        + b"cnumpy\nndarray\n"
        + b"K\x00\x85"
        + text(b"b")
        + b"\x87R"
        + b"(K\x01K\x01M\x00\x0c\x86"
        + b"cnumpy\ndtype\n"
        + text(b"u1")
        + b"K\x00K\x01\x87R"
        + b"(K\x03"
        + text(b"|")
        + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        + b"I00\n"
        + text(pixels)
        + b"tb"
    )
    batch = b"\x80\x02}" + b"(" + text(b"data") + array + text(b"labels") + b"]K\x06a" + b"u."
    path = tmp_path / "cifar-10-batches-py" / "test_batch"
    path.parent.mkdir()
    path.write_bytes(batch)
    x, y = cifar10(tmp_path, "test")
    assert x.shape == (1, 3, 32, 32) and list(y) == [6]
    assert bytes(np.rint(x * 255).astype(np.uint8)) == pixels
