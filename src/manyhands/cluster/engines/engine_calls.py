"""Calls sent to engines, and their answers.

ipyparallel's views do the same in three times the processor time, because they pickle the function
and its arguments anew for every engine, and because their `AsyncResult` keeps three futures and
reads dates that this package never asks for. An empty cell consists of little else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    import ipyparallel as ipp


def send(
    client: ipp.Client, engines: Sequence[int], function: Callable[..., Any], args: Iterable[Any]
) -> dict[int, Answer]:
    """Call `function(*args)` on each of the engines: {engine: Answer}.

    What cannot be pickled raises an error before anything is sent.
    """
    from ipyparallel.serialize import PrePickled

    pickled, pickled_args = PrePickled(function), [PrePickled(argument) for argument in args]
    identities, _ = client._build_targets(list(engines))
    return {
        engine: Answer(
            client.send_apply_request(client._mux_stream, pickled, pickled_args, ident=identity)
        )
        for engine, identity in zip(engines, identities, strict=True)
    }


class Answer:
    """What one engine answers to a call, once it has arrived."""

    def __init__(self, future: Any) -> None:
        self._future = future

    def ready(self) -> bool:
        """Whether the answer has arrived."""
        return self._future.done()

    def wait(self, timeout: float | None) -> bool:
        """Whether the answer arrives within so many seconds."""
        return self._future.wait(timeout)

    def get(self, timeout: float | None = None) -> Any:
        """The value; an error of the call, or of its engine, is raised.

        TimeoutError if the answer does not arrive.
        """
        if not self.wait(timeout):
            raise TimeoutError("The engine has not answered yet.")
        value = self._future.result()
        if isinstance(value, Exception):
            raise value
        return value

    def wait_for_output(self, timeout: float) -> None:
        """Wait until all that was printed has arrived, which may be later than the answer."""
        self._future.output.wait(timeout)

    @property
    def metadata(self) -> dict[str, Any]:
        """What was printed and shown until now: "stdout", "stderr", "outputs"."""
        return self._future.output.metadata
