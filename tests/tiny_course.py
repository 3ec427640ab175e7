"""A course of one unit, small enough to build in a second, for the tests of the authoring chain."""

from manyhands.authoring import layout

TUTORIAL = """\
# %% [markdown] unit={"minutes": 10, "ranks": 1, "framework": "none", "title": "A tiny unit"}
# # A tiny unit
#
# You will be able to count to two.

# %% tags=["setup"]
import time

# %%
numbers = [1, 2]
print("count:", len(numbers))
sum(numbers)

# %% tags=["measured"]
# %time sum(numbers)
print(f"{time.perf_counter_ns()} ns")

# %% [markdown]
# An error that is taught:

# %% tags=["raises-exception"]
numbers[2]
"""

LAB = '''\
# %% [markdown] unit={"minutes": 20, "ranks": 1, "framework": "none", "title": "A tiny lab"}
# # Lab: double it

# %% tags=["solution"] grade_id="double"
def double(number: int) -> int:
    """Twice `number`."""
    ### BEGIN SOLUTION
    twice = number + number
    return twice
    ### END SOLUTION

# %% tags=["check"] grade_id="double-check" points=2
print("PASS 2/2" if double(21) == 42 else "FAIL 0/2")
'''


def make(root, tutorial=TUTORIAL, lab=LAB):
    """Write the sources of the course below `root`; its pieces, the tutorial first."""
    for kind, text in (("tutorial", tutorial), ("labs", lab)):
        folder = root / "sources" / kind
        folder.mkdir(parents=True, exist_ok=True)
        if text:
            (folder / "90_tiny.py").write_text(text)
    return layout.pieces(root)


def replace(path, old, new):
    """Change a file; the old text must be in it once."""
    text = path.read_text()
    assert text.count(old) == 1, (old, text.count(old))
    path.write_text(text.replace(old, new))
