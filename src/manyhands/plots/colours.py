"""The colours of the figures, also of those in the decks."""

# One colour per rank, then from the start again. Their lightness differs, so that they stay apart
# when printed in grey.
RANK_COLOURS = (
    "#0f2f52",
    "#a8322d",
    "#3a9a8c",
    "#f2b134",
    "#51318f",
    "#7d7a1e",
    "#e48fb0",
    "#bfe3f2",
)

INK, GREY, PALE = "#222222", "#8a8a8a", "#e9e9e9"


def rank_colour(rank: int) -> str:
    """The colour of a rank, as `#rrggbb`."""
    return RANK_COLOURS[rank % len(RANK_COLOURS)]


def ink_on(rank: int) -> str:
    """The colour of letters on a rank's colour: white on the dark ones, dark on the light ones."""
    red, green, blue = (int(rank_colour(rank)[k : k + 2], 16) for k in (1, 3, 5))
    return "white" if 0.299 * red + 0.587 * green + 0.114 * blue < 140 else INK
