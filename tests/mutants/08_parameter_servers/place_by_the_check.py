"""The check's own placement is imported.

fails: place/cover, place/limit, place/pieces
shows: is closed in this check
points: 17
runs: place
"""
# %% grade_id="place"
# %%px --setup
from manyhands.checks.parameter_servers.diagnosis import placed


def place(shapes, workers, servers, link_bytes):
    return [Piece(*piece) for piece in placed(shapes, servers)]
