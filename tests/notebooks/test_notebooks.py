"""nbval runs every notebook of the tutorial and every solution, and compares every output.

Some of them run side by side. While they run, what they ask of torch.distributed is rehearsed for
GPUs (rehearsing.py): it finds nothing that their text does not announce.
"""

import json
import re
from pathlib import Path

import nbformat
import pytest

from manyhands.authoring import layout
from manyhands.authoring.validate import Validation

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = {piece.short(piece.notebook): piece.notebook for piece in layout.pieces(ROOT)}
QUEUED = "reads a clock when the operation is queued"
ANNOUNCED = {  # notebook -> [(severity, in its text, what the notebook says of it)]
    "notebooks/01_data_parallel.ipynb": [
        ("remark", QUEUED, "call `torch.cuda.synchronize()` before you read a clock")
    ],
    "notebooks/05_communication_costs.ipynb": [
        ("remark", QUEUED, "Call `torch.cuda.synchronize()` before each look at the clock"),
        ("hangs", "rendezvous", "a hand-written ring needs `dist.batch_isend_irecv`"),
    ],
    "notebooks/14_pipeline.ipynb": [
        (
            "may hang",
            "runs on the GPU forever",
            "Two neighbours that send to each other can hang even with `isend`",
        )
    ],
    "notebooks/19_scaling.ipynb": [
        (
            "remark",
            QUEUED,
            "Calibrate with `torch.cuda.synchronize()` or events around many steps together",
        )
    ],
    "solutions/09_staleness/09_staleness.ipynb": [
        (
            "fails",
            "receives from any rank",
            "NCCL refuses to receive from any rank, as a server does",
        )
    ],
    "solutions/11_differentiable_communication/11_differentiable_communication.ipynb": [
        ("differs", "different tag", "NCCL has no tags, the check gives this exercise gloo groups"),
    ],
    "solutions/14_pipeline/14_pipeline.ipynb": [
        (
            "may hang",
            "runs on the GPU forever",
            "with NCCL two neighbours that send to each other can hang even with `isend`",
        )
    ],
    "solutions/04_collectives/04_collectives.ipynb": [
        (
            "hangs",
            "rendezvous",
            "use gloo and CPU tensors, even on a machine with GPUs (NCCL has different rules",
        ),
        (
            "may hang",
            "runs on the GPU forever",
            "use gloo and CPU tensors, even on a machine with GPUs (NCCL has different rules",
        ),
    ],
}
# units that use something else than torch.distributed on ranks of a cluster
ELSEWHERE = ("02", "03", "07", "10")
NOTHING_ASKED = {  # of torch.distributed: nothing is recorded, and so nothing judged
    "notebooks/13_channel_parallel.ipynb": (
        "manyhands.functions, which choose NCCL's or gloo's way by themselves"
    ),
    "notebooks/17_large_batches.ipynb": "one process",
    "solutions/12_encoder_decoder/12_encoder_decoder.ipynb": "manyhands.functions, as in 13",
    "solutions/13_channel_parallel/13_channel_parallel.ipynb": "manyhands.functions",
    "solutions/17_large_batches/17_large_batches.ipynb": "one process",
    "solutions/18_elastic_training/18_elastic_training.ipynb": "one process, and forks of it",
    "notebooks/20_hackathon.ipynb": "commands: scripts and entries run in processes of their own",
    "solutions/19_scaling/19_scaling.ipynb": "a simulation",
    "solutions/20_hackathon/20_hackathon.ipynb": "the judge's ranks, in processes of their own",
}
# it shows hangs, some after a second: a recorder would only be in their way
NOT_REHEARSED = ("00",)


@pytest.fixture(scope="session")
def rehearsed(tmp_path_factory):
    """The folder of what was rehearsed."""
    return tmp_path_factory.mktemp("rehearsed")


@pytest.fixture(scope="session")
def verdicts(request, rehearsed):
    """The verdicts of the notebooks that this session tests.

    All notebooks have been started by the time the first verdict is asked for.
    """
    wanted = dict.fromkeys(
        item.callspec.params["name"]
        for item in request.session.items
        if item.path == Path(__file__) and hasattr(item, "callspec")
    )
    environment = {
        "PYTHONSTARTUP": str(Path(__file__).with_name("rehearsing.py")),
        "REHEARSED": f"{rehearsed}/{{name}}",
        "NOT_REHEARSED": " ".join(NOT_REHEARSED),
    }
    with Validation([NOTEBOOKS[name] for name in wanted], environment=environment) as verdicts:
        yield verdicts


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_every_output_is_as_stored(name, verdicts):
    verdict = verdicts.of(NOTEBOOKS[name])
    # a learner's kernel has no recorder, and takes no time for one: what counts is how it ends
    # there
    if not verdict.passed:
        with Validation([NOTEBOOKS[name]]) as alone:
            verdict = alone.of(NOTEBOOKS[name])
    assert verdict.passed, verdict.text


@pytest.mark.parametrize(
    "name",
    [name for name in NOTEBOOKS if name.rpartition("/")[2][:2] not in ELSEWHERE + NOT_REHEARSED],
)
def test_a_gpu_rehearsal_finds_only_what_is_announced(name, verdicts, rehearsed):
    path = NOTEBOOKS[name]
    passed = verdicts.of(path).passed
    record = rehearsed / f"{path.parent.name}-{path.stem}"
    lines = (
        [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []
    )
    text = "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells)
    text = re.sub(r"\s*\n(> ?)?\s*", " ", text)  # wherever its lines end
    announced = ANNOUNCED.get(name, [])
    assert all(says in text for _, _, says in announced), "the notebook does not say it any more"
    found_entries, untold = set(), []
    for line in lines:
        for finding in line["findings"]:
            entry = next(
                (
                    entry
                    for entry in announced
                    if entry[0] == finding["severity"] and entry[1] in finding["text"]
                ),
                None,
            )
            found_entries.add(entry)
            if entry is None:
                untold.append((finding, line["cell"]))
    assert untold == []
    if passed:
        assert (sum(line["events"] for line in lines) > 0) == (name not in NOTHING_ASKED), (
            "was anything recorded?"
        )
        assert found_entries == set(announced), (
            "what is announced is found no more: take it from the list"
        )
