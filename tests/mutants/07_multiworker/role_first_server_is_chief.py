"""The first parameter server takes itself for the chief.

fails: role/chief
shows: Only one process is the chief
points: 15
"""
# %% grade_id="role"
def role(config):
    config = json.loads(config)
    chiefs, others = (len(config["cluster"].get(kind, [])) for kind in ("chief", "worker"))
    kind, index = config["task"]["type"], config["task"]["index"]
    worker = index if kind == "chief" else chiefs + index if kind == "worker" else None
    return {"workers": chiefs + others, "worker": worker, "chief": worker == 0 or kind == "ps" and index == 0}
