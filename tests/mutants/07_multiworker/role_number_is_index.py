"""The number of a worker is its index, also beside a chief.

fails: role/workers
shows: so worker i is number i + 1
points: 15
"""
# %% grade_id="role"
def role(config):
    config = json.loads(config)
    chiefs, others = (len(config["cluster"].get(kind, [])) for kind in ("chief", "worker"))
    kind, index = config["task"]["type"], config["task"]["index"]
    worker = index if kind == "chief" else index if kind == "worker" else None
    return {"workers": chiefs + others, "worker": worker, "chief": kind == "chief" or kind == "worker" and index == 0 and not chiefs}
