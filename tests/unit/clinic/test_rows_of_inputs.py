"""What counts as a row of a model's input, how rows are put together, which indices are read."""

from types import SimpleNamespace

import torch

from manyhands.clinic.data_rules import find_data_mistakes
from manyhands.clinic.one_process_run import _join_inputs
from manyhands.clinic.recorded_values import rows_of


def images(*numbers):
    return [torch.full((3, 4 + number, 5), float(number)) for number in numbers]


def targets(*numbers):
    return [{"boxes": torch.full((1, 4), float(number)), "image_id": number} for number in numbers]


def test_a_detectors_images_are_rows_and_crops_of_a_batch_are_not():
    first, second = ((images(*numbers), targets(*numbers)) for numbers in ((0, 1, 2), (3, 0)))
    rows = [rows_of(of_rank, {})[0] for of_rank in (first, second)]
    assert [*map(len, rows)] == [3, 2] and set(rows[0]) & set(rows[1]) == {rows[0][0]}
    (together, wanted), _ = _join_inputs([(first, {}), (second, {})], [3, 2])
    assert [image.shape[1] for image in together] == [4, 5, 6, 7, 4] and [
        target["image_id"] for target in wanted
    ] == [0, 1, 2, 3, 0]
    # texts of different lengths
    assert len(rows_of(([torch.zeros(5), torch.zeros(7)],), {})[0]) == 2
    assert len(rows_of(([{"image": image} for image in images(0, 1)],), {})[0]) == 2

    crops = [torch.rand(6, 3, size, size) for size in (8, 8, 4)]
    assert len(rows_of((crops,), {})[0]) == 6
    (joined,), _ = _join_inputs([((crops,), {}), ((crops,), {})], [6, 6])
    assert [len(crop) for crop in joined] == [12, 12, 12]
    state = torch.zeros(1, 6, 2), torch.zeros(1, 6, 2)  # of an LSTM
    assert (
        len(rows_of((torch.rand(6, 4), state), {})[0]) == 6
        and len(rows_of((torch.rand(6, 4),), {"state": state})[0]) == 6
    )


def batches(first_epochs, samplers=("RandomSampler", "GroupedBatchSampler")):
    """Find the mistakes of two ranks whose loaders have read these indices of 48 rows.

    They read in batches of four.
    """
    seen = [
        {
            "loader": {
                "samplers": list(samplers),
                "batch_size": 4,
                "length": 48,
                "rows": ["a"],
                "random": True,
                "indices": places,
                "first_epoch": [places],
            },
            "steps": [{"calls": [{"rows": [f"{rank}.{place}" for place in range(4)]}]}],
        }
        for rank, places in enumerate(first_epochs)
    ]
    step = SimpleNamespace(rows=[record["steps"][0]["calls"][0]["rows"] for record in seen])
    evidence = SimpleNamespace(
        ranks=2,
        seen=seen,
        first=seen[0],
        steps=[step],
        cost={rank: {"orders": []} for rank in range(2)},
    )
    return [finding.key for finding in find_data_mistakes(evidence)]


def test_a_sampler_of_batches_is_known_by_what_it_reads():
    drawn = [[(5 * place + 3 * rank) % 24 for place in range(12)] for rank in range(2)]
    assert batches(drawn) == ["whole data"]
    # it deals the batches out itself
    assert batches([list(range(rank, 24, 2)) for rank in range(2)]) == []
    assert batches(
        [list(range(rank, 24, 2)) for rank in range(2)], ["RandomSampler", "BatchSampler"]
    ) == ["whole data"]
