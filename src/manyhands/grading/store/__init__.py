"""What grading reads and writes: hand-ins, grades, references;
files that are never half written, and reading where nobody is trusted.
"""
