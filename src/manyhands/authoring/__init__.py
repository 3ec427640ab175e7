"""From the text that people edit to the notebooks that learners open.

    sources/tutorial/NN_topic.py -> notebooks/NN_topic.ipynb
    sources/labs/NN_topic.py     -> solutions/NN_topic/NN_topic.ipynb -> labs/NN_topic/NN_topic.ipynb
    sources/scripts/NN_name.py   -> notebooks/scripts/, solutions/NN_topic/, labs/NN_topic/

One file per step: `layout` knows the folders, `text` reads and writes sources, `canonical` gives
notebooks their one form, `execute` runs them, `labs` takes the solutions out, `drift` compares,
`adopt` goes the way back, `validate` runs nbval side by side, `slides` makes the decks. No
framework is imported here.
"""


class BuildError(Exception):
    """Something that the author has to mend; the message says what, where and how."""


class UnknownNameError(BuildError):
    """What was typed names no unit, or a file that cannot be used; the message says what can."""
