"""What counts as a row of a model's input, and how the rows of all ranks are put together."""

import torch

from manyhands.clinic.replay_rows import _joined
from manyhands.clinic.values_seen import rows_of


def images(*numbers):
    return [torch.full((3, 4 + number, 5), float(number)) for number in numbers]


def targets(*numbers):
    return [{"boxes": torch.full((1, 4), float(number)), "image_id": number} for number in numbers]


def test_a_detectors_images_are_rows_and_crops_of_a_batch_are_not():
    first, second = ((images(*numbers), targets(*numbers)) for numbers in ((0, 1, 2), (3, 0)))
    rows = [rows_of(of_rank, {}) for of_rank in (first, second)]
    assert [*map(len, rows)] == [3, 2] and set(rows[0]) & set(rows[1]) == {rows[0][0]}
    (together, wanted), _ = _joined([(first, {}), (second, {})], [3, 2])
    assert [image.shape[1] for image in together] == [4, 5, 6, 7, 4] and [one["image_id"] for one in wanted] == [0, 1, 2, 3, 0]
    assert len(rows_of(([torch.zeros(5), torch.zeros(7)],), {})) == 2  # texts of different lengths
    assert len(rows_of(([{"image": image} for image in images(0, 1)],), {})) == 2

    crops = [torch.rand(6, 3, size, size) for size in (8, 8, 4)]
    assert len(rows_of((crops,), {})) == 6
    (joined,), _ = _joined([((crops,), {}), ((crops,), {})], [6, 6])
    assert [len(crop) for crop in joined] == [12, 12, 12]
    state = torch.zeros(1, 6, 2), torch.zeros(1, 6, 2)  # of an LSTM
    assert len(rows_of((torch.rand(6, 4), state), {})) == 6 and len(rows_of((torch.rand(6, 4),), {"state": state})) == 6
