"""A single stage is thought to wait, too.

fails: bubble/stages, bubble/chunks
shows: expected
points: 19
runs: bubble
"""
# %% grade_id="bubble"
def bubble(stages: int, micro_batches: int, chunks: int = 1) -> float:
    """The part of a step, 0 to 1, in which a rank waits.

    stages: of one chunk, so as many as there are ranks.
    """
    return max(stages - 1, 1) / (chunks * micro_batches + max(stages - 1, 1))
