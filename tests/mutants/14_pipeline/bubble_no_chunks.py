"""Chunks change nothing.

fails: bubble/chunks
shows: With more chunks
points: 20
"""
# %% grade_id="bubble"
def bubble(stages: int, micro_batches: int, chunks: int = 1) -> float:
    """The part of a step, 0 to 1, in which a rank waits. `stages`: of one chunk, so as many as there are ranks."""
    return (stages - 1) / (micro_batches + stages - 1)
