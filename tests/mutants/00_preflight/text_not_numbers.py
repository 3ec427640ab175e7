"""The environment's text is returned as it is.

fails: place/here, place/elsewhere
shows: Make numbers of them with int
points: 8
"""
# %% grade_id="place"
# %%px --setup
def where_am_i():
    return os.environ["RANK"], os.environ["GROUP_RANK"], os.environ["LOCAL_RANK"]
