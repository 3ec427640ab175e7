"""Backward is forgotten.

fails: pipeline/pipeline
shows: The backward pass is missing
points: 17
"""
# %% grade_id="pipeline"
def pipeline_s(forward_s, backward_s, micro_batches):
    return sum(forward_s) + (micro_batches - 1) * max(forward_s)
