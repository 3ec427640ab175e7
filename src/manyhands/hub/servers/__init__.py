"""An attendee's Jupyter server: where it runs, and what it may use.

It also says how the server and the hub reach each other.
"""
