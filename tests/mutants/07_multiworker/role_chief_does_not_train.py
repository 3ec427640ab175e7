"""The chief is not counted as a worker.

fails: role/workers
shows: The chief trains too
points: 15
"""
# %% grade_id="role"
def role(config):
    config = json.loads(config)
    chiefs, others = (len(config["cluster"].get(kind, [])) for kind in ("chief", "worker"))
    kind, index = config["task"]["type"], config["task"]["index"]
    worker = index if kind == "chief" else chiefs + index if kind == "worker" else None
    return {"workers": others, "worker": worker, "chief": worker == 0}
