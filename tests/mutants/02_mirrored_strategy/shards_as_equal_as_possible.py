"""Plan: the last batch is cut as evenly as possible, which is not how TensorFlow cuts it.

fails: plan/plan
shows: TensorFlow gives each replica ceil(examples left / replicas)
points: 9
"""
# %% grade_id="plan"
def make_plan(examples, per_replica_batch, replicas, base_rate):
    global_batch = per_replica_batch * replicas
    last = examples % global_batch or global_batch
    return {
        "global_batch": global_batch,
        "steps": -(-examples // global_batch),
        "last_shards": [last // replicas + (i < last % replicas) for i in range(replicas)],
        "learning_rate": base_rate * replicas,
    }
