"""Trainings that survive: a small one with every kind of state, and processes that really die."""
