"""The classroom's server: trial accounts, and a JupyterHub on this machine.

Each attendee has a sandbox.
"""
