"""What grading reads and writes: hand-ins, grades, references.

Its files are never half written, and it reads where nobody is trusted.
"""
