"""All stages are as dear as the dearest.

fails: pipeline/pipeline
shows: All stages are as slow as the slowest here
points: 17
"""
# %% grade_id="pipeline"
def pipeline_s(forward_s, backward_s, micro_batches):
    turns = micro_batches + len(forward_s) - 1
    return turns * (max(forward_s) + max(backward_s))
