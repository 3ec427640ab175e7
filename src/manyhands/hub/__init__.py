"""The classroom's server: trial accounts, a JupyterHub on this machine, and a closed sandbox for each
attendee.
"""
