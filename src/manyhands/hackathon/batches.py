"""Batches as an entry sees them: numbers. What they hold only the judge knows."""


class Batch:
    """A batch that was handed out: what it holds only the accelerator knows."""

    def __init__(self, number):
        self.number = number

    def __repr__(self):
        return f"<batch {self.number}>"


class Batches:
    """This rank's batches, until there are no more. Taking one costs nothing; a gradient does."""

    def __init__(self, connection):
        self._connection = connection

    def __iter__(self):
        return self

    def __next__(self):
        number = self._connection.ask({"do": "take"})[0]["batch"]
        if number is None:
            raise StopIteration
        return Batch(number)
