"""A kernel that is not trusted: where it runs, what it may use, and what is read of what it
says.
"""
