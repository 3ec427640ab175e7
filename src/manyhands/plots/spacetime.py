"""Messages in space and time: one line per rank, time from left to right.

An arrow goes from where a message was sent to where it was received.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from manyhands.plots import GREY, INK, RANK_COLOURS, figure, styled, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from manyhands.plots import Svg, Words


class Message(NamedTuple):
    """Both ends of a message; times are None where no ledger has seen that end."""

    round: int
    source: int
    dest: int
    bytes: int
    call: str
    how: str
    sent_ms: float | None
    received_ms: float | None


class Call(NamedTuple):
    """A collective call of one rank."""

    rank: int
    call: str
    how: str
    start_ms: float
    stop_ms: float | None


# of each rank, as a ledger's `Merged.events`
Events = Mapping[int, Sequence[Any]] | Sequence[Sequence[Any]]

COLOURS = RANK_COLOURS[:7]  # the eighth is too pale for a thin line
STYLES = (
    "-",
    (0, (5, 1.5)),
    (0, (1, 1)),
    (0, (6, 1.5, 1, 1.5)),
    (0, (3, 1, 1, 1, 1, 1)),
    (0, (8, 2)),
    (0, (2, 2)),
    (0, (1, 3)),
)
WORDS = {
    "rank": "rank {i}",
    "rounds": "round (a message of a round waits for none of the same round)",
    "ms": "time (ms)",
    "model": "{call} (model: {how})",
}
COUNTED = "counted"  # what an event says of a message that was seen; else the name of a model


@styled
def spacetime(
    events_per_rank: Events,
    title: str = "messages between ranks",
    clock: str = "rounds",
    words: Words = WORDS,
) -> Svg:
    """Draw the messages between ranks: arrows; colours and line styles tell the calls apart.

    `events_per_rank` is `Merged.events` of a ledger: for each rank a list of (kind, peer, bytes,
    call, round, seconds, stop_s, key, how); a dict {rank: list} will do too. With clock="rounds"
    time is counted in rounds, and the picture is the same in each run. With clock="ms" time is that
    of the ranks' clocks, in ms from the first event: so the ranks must be on one host, and the
    numbers are measured. What a model says (a collective of torch.distributed) has no times: there
    the call is a bar on each rank, from its start to the end of its work. Returns an `Svg`.
    """
    if clock not in ("rounds", "ms"):
        raise ValueError(f"clock is 'rounds' or 'ms', not {clock!r}.")
    lanes, messages, calls = _read(events_per_rank)
    names = list(dict.fromkeys([m.call for m in messages] + [c.call for c in calls]))
    fig, ax = figure(height=0.9 + 0.5 * len(lanes))
    for lane in range(len(lanes)):
        ax.axhline(lane, color=GREY, linewidth=0.8, zorder=1)
    draw = _in_rounds if clock == "rounds" else _in_ms
    end = draw(ax, lanes, messages, calls, names)
    ax.set(
        yticks=range(len(lanes)),
        yticklabels=[words["rank"].format(i=i) for i in lanes],
        ylim=(len(lanes) - 0.6, -0.4),
        xlim=(0, end),
        xlabel=words[clock],
    )
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    _legend(fig, names, messages, calls, words)
    return svg(fig, title)


def table(events_per_rank: Events, clock: str = "rounds") -> str:
    """The numbers of the picture as text: one line per message.

    With clock="ms" there is also one per collective call of each rank.
    """
    _, messages, calls = _read(events_per_rank)
    if clock == "rounds":
        return "\n".join(
            [
                f"{'round':>5}  {'call':<18} from   to {'bytes':>10}",
                *(
                    f"{m.round:>5}  {m.call:<18} {m.source:>4} {m.dest:>4} {m.bytes:>10}"
                    for m in messages
                ),
            ]
        )
    lines = [f"{'sent ms':>9} {'received ms':>12}  {'call':<18} from   to {'bytes':>10}"]
    lines += [
        f"{_ms(m.sent_ms):>9} {_ms(m.received_ms):>12}  {m.call:<18} {m.source:>4} {m.dest:>4} "
        f"{m.bytes:>10}"
        for m in sorted(messages, key=_when)
        if m.how == COUNTED
    ]
    if calls:
        lines += [f"{'from ms':>9} {'to ms':>12}  {'call':<18} rank"]
        lines += [
            f"{_ms(c.start_ms):>9} {_ms(c.stop_ms):>12}  {c.call:<18} {c.rank:>4}" for c in calls
        ]
    return "\n".join(lines)


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _when(message: Message) -> float:
    return (
        message.sent_ms
        if message.sent_ms is not None
        else message.received_ms
        if message.received_ms is not None
        else 0.0
    )


def _read(events_per_rank: Any) -> tuple[dict[int, int], list[Message], list[Call]]:
    """The ranks; the messages, both ends of each put together, by rounds; the collective calls."""
    lanes = (
        dict(events_per_rank)
        if hasattr(events_per_rank, "keys")
        else dict(enumerate(events_per_rank))
    )
    times = [event[5] for events in lanes.values() for event in events if event[5] is not None]
    start_s = min(times, default=0.0)
    ends: dict[Any, dict[str, Any]] = {}
    calls: list[Call] = []
    for rank, events in lanes.items():
        for kind, peer, nbytes, call, round_number, seconds, stop_s, key, how in events:
            # of a call it is known
            ms: Any = None if seconds is None else (seconds - start_s) * 1e3
            if kind == "call":
                calls.append(
                    Call(rank, call, how, ms, None if stop_s is None else (stop_s - start_s) * 1e3)
                )
                continue
            ends.setdefault(key, {})[kind] = (rank, peer, nbytes, call, round_number, ms, how)
    messages = []
    for both in ends.values():
        rank, peer, nbytes, call, round_number, _, how = both.get("sent") or both["received"]
        source, dest = (rank, peer) if "sent" in both else (peer, rank)
        messages.append(
            Message(
                round_number,
                source,
                dest,
                nbytes,
                call,
                how,
                *(both[kind][5] if kind in both else None for kind in ("sent", "received")),
            )
        )
    # those of one round between the same ranks stay in the order of sending
    messages.sort(key=lambda m: (m.round, m.source, m.dest))
    ranks = sorted({*lanes, *(m.source for m in messages), *(m.dest for m in messages)})
    return {rank: lane for lane, rank in enumerate(ranks)}, messages, calls


def _in_rounds(
    ax: Axes, lanes: Mapping[int, int], messages: list[Message], calls: list[Call], names: list[str]
) -> float:
    """A message leaves at the beginning of its round and comes at the end of it.

    Several between the same two ranks stand beside each other.
    """
    alike: dict[tuple[int, int, int], list[Message]] = {}
    for m in messages:
        alike.setdefault((m.round, m.source, m.dest), []).append(m)
    for (round_number, source, dest), group in alike.items():
        for i, m in enumerate(group):
            shift = 0.3 * (i / len(group))
            _arrow(
                ax,
                round_number - 0.9 + shift,
                lanes[source],
                round_number - 0.4 + shift,
                lanes[dest],
                m,
                names,
            )
    end = max([m.round for m in messages], default=1)
    for border in range(1, end):
        ax.axvline(border, color=GREY, linestyle=":", linewidth=0.6, zorder=0)
    every = 1 + (end - 1) // 20
    ax.set(xticks=[r - 0.5 for r in range(1, end + 1, every)], xticklabels=range(1, end + 1, every))
    return end


def _in_ms(
    ax: Axes, lanes: Mapping[int, int], messages: list[Message], calls: list[Call], names: list[str]
) -> float:
    """Measured times.

    An end that no ledger has seen is put at the other end, marked with a cross.
    """
    end = max(
        [ms for m in messages for ms in (m.sent_ms, m.received_ms) if ms is not None]
        + [ms for c in calls for ms in (c.start_ms, c.stop_ms) if ms is not None],
        default=1.0,
    )
    for m in messages:
        if m.how != COUNTED or (m.sent_ms is None and m.received_ms is None):
            continue
        if m.sent_ms is None or m.received_ms is None:
            here, when = (m.source, _when(m)) if m.received_ms is None else (m.dest, m.received_ms)
            ax.plot([when], [lanes[here]], marker="x", color=_look(m.call, names)[0], zorder=3)
        else:
            _arrow(ax, m.sent_ms, lanes[m.source], m.received_ms, lanes[m.dest], m, names)
    for c in calls:
        colour, style = _look(c.call, names)
        stop_ms = end if c.stop_ms is None else c.stop_ms
        ax.barh(
            lanes[c.rank],
            stop_ms - c.start_ms,
            left=c.start_ms,
            height=0.16,
            facecolor="white",
            edgecolor=colour,
            linestyle=style,
            linewidth=1.2,
            zorder=2,
        )
    return end * 1.02 or 1.0


def _look(call: str, names: list[str]) -> tuple[str, Any]:
    """Colour and line style of a call."""
    i = names.index(call)
    return COLOURS[i % len(COLOURS)], STYLES[i % len(STYLES)]


def _arrow(
    ax: Axes, x0: float, y0: float, x1: float, y1: float, message: Message, names: list[str]
) -> None:
    colour, style = _look(message.call, names)
    seen = message.how == COUNTED
    ax.annotate(
        "",
        (x1, y1),
        (x0, y0),
        zorder=3,
        annotation_clip=False,
        arrowprops={
            "arrowstyle": "-|>" if seen else "->",
            "color": colour,
            "linestyle": style,
            "linewidth": 1.3 if seen else 0.9,
            "shrinkA": 0,
            "shrinkB": 0,
            "mutation_scale": 9,
        },
    )
    ax.plot([x0], [y0], marker="o", markersize=2.5, color=colour, zorder=3)


def _legend(
    fig: Figure, names: list[str], messages: list[Message], calls: list[Call], words: Words
) -> None:
    from matplotlib.lines import Line2D

    how = {message.call: message.how for message in messages} | {
        call.call: call.how for call in calls
    }
    handles = [
        Line2D(
            [],
            [],
            color=_look(call, names)[0],
            linestyle=_look(call, names)[1],
            label=call if how[call] == COUNTED else words["model"].format(call=call, how=how[call]),
        )
        for call in names
    ]
    if handles:
        fig.legend(
            handles=handles,
            loc="outside upper left",
            ncols=min(3, len(handles)),
            handlelength=3.2,
            labelcolor=INK,
        )
