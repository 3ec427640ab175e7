"""An attendee's Jupyter server: where it runs, what it may use, and how it and the hub reach each
other.
"""
