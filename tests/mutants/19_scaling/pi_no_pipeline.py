"""One micro-batch after the other.

fails: pipeline/pipeline
shows: before the next begins
points: 17
"""
# %% grade_id="pipeline"
def pipeline_s(forward_s, backward_s, micro_batches):
    return micro_batches * (sum(forward_s) + sum(backward_s))
