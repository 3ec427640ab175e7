"""Parameter servers are counted as workers.

fails: role/workers
shows: Parameter servers keep variables and do not train
points: 15
"""
# %% grade_id="role"
def role(config):
    config = json.loads(config)
    chiefs, others = (len(config["cluster"].get(kind, [])) for kind in ("chief", "worker"))
    kind, index = config["task"]["type"], config["task"]["index"]
    worker = index if kind == "chief" else chiefs + index if kind == "worker" else None
    return {"workers": sum(map(len, config["cluster"].values())), "worker": worker, "chief": worker == 0}
