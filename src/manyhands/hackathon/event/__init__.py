"""An event: teams hand in entries, one judge takes them in a fair order, and a board shows them.

An event is a folder with two files. `event.toml` people write: when, which challenges, which teams
(`event_settings.py`). `event.jsonl` only grows: what was handed in, taken, judged and withdrawn
(`event_log.py`); queue (`fair_queue.py`) and board (`standings.py`, `board_page.py`) follow from
these two and from nothing else. So what is copied with the folder is the whole event.

Nothing here imports torch: a hub takes entries without it.
"""
