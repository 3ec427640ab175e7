"""How large a hand-in may be: its folder, its notebook, and how many of them are kept.

What a kernel may use while it runs is in `manyhands.isolation.kernel_limits`.
"""

FOLDER_BYTES = 50 * 2**20  # more is not taken along
FILE_AT_LEAST_BYTES = 2**14  # what a file in it counts for, however small
MOST_FILES = 2000  # that are collected
DEPTH, ENTRIES = 20, 10_000  # folders in folders, and all that is looked at
# of a folder inside: with what it is copied to before it, and a name after it, this is far from the
# system's limit
PATH_BYTES = 750
NOTEBOOK_BYTES, NOTEBOOK_PIECES = (
    20 * 2**20,
    1_000_000,
)  # of its JSON text (`json_weight.count_pieces`)
MOST_CELLS = 2000  # a lab has some fifty
MOST_KEPT = 100  # hand-ins of one attendee and lab
