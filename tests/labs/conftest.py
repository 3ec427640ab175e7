"""What the tests of the course's own labs share."""

from sandboxed import own_cache, works_in_sandbox  # noqa: F401 (fixtures)
