"""A kernel that is not trusted.

Here is where it runs, what it may use, and what is read of what it says.
"""
