"""The error of everything that is asked of accounts."""


class AccountError(ValueError):
    """What was asked for cannot be done; the message says why and what to do."""
