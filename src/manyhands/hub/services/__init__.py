"""Programs that the hub starts beside itself: ending what has ended, the queue of checks,
formgrader, the proxy.
"""
