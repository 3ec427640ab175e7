"""Without a process of kind chief, there is no chief.

fails: role/chief
shows: worker 0 does the chief's work
points: 15
"""
# %% grade_id="role"
def role(config):
    config = json.loads(config)
    chiefs, others = (len(config["cluster"].get(kind, [])) for kind in ("chief", "worker"))
    kind, index = config["task"]["type"], config["task"]["index"]
    worker = index if kind == "chief" else chiefs + index if kind == "worker" else None
    return {"workers": chiefs + others, "worker": worker, "chief": kind == "chief"}
