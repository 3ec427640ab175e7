"""Plan: the steps are counted in a replica's batches.

fails: plan/plan
shows: steps are counted in global batches
points: 9
"""
# %% grade_id="plan"
def make_plan(examples, per_replica_batch, replicas, base_rate):
    global_batch = per_replica_batch * replicas
    last = examples % global_batch or global_batch
    share = -(-last // replicas)
    return {
        "global_batch": global_batch,
        "steps": -(-examples // per_replica_batch),
        "last_shards": [max(0, min(share, last - i * share)) for i in range(replicas)],
        "learning_rate": base_rate * replicas,
    }
