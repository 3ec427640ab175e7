"""Programs that the hub starts next to itself.

They end what has ended, and are the queue of checks, formgrader, and the proxy.
"""
