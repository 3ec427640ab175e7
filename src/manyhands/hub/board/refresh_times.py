"""How often the class board is refreshed, in seconds."""

REFRESH_S = 1  # between two events of a page, if something has changed
BEAT_S = 15  # between two signs of life, if nothing has
STREAM_S = 600  # then the browser connects anew
