"""Each chunk counts as a rank more.

fails: bubble/chunks
shows: not of all chunks of them
points: 20
"""
# %% grade_id="bubble"
def bubble(stages: int, micro_batches: int, chunks: int = 1) -> float:
    """The part of a step, 0 to 1, in which a rank waits. `stages`: of one chunk, so as many as there are ranks."""
    return (chunks * stages - 1) / (chunks * micro_batches + chunks * stages - 1)
