"""The idle time is divided by the busy time: the other bubble of the literature.

fails: bubble/stages, bubble/chunks
shows: divided by the busy time
points: 19
"""
# %% grade_id="bubble"
def bubble(stages: int, micro_batches: int, chunks: int = 1) -> float:
    """The part of a step, 0 to 1, in which a rank waits. `stages`: of one chunk, so as many as there are ranks."""
    return (stages - 1) / (chunks * micro_batches)
