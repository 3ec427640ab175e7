/* A wait-for graph to play with: the reader chooses what each rank calls, and sees who finishes and who waits for whom.
   The words are those of the report that a cluster prints (`manyhands/cluster/faults/fault_messages.py`). */
(() => {
  const RANKS = [0, 1, 2, 3];
  const COLLECTIVES = ["barrier", "all_reduce"];
  const EXAMPLES = {
    "Rank 2 skips the barrier": [["barrier"], ["barrier"], [], ["barrier"]],
    "Every rank receives first": RANKS.map(rank => [`recv ${(rank + 3) % 4}`, `send ${(rank + 1) % 4}`]),
    "Two collectives in a different order": RANKS.map(rank => rank === 3 ? ["all_reduce", "barrier"] : ["barrier", "all_reduce"]),
    "A message to a rank that has finished": [["send 1", "barrier"], [], ["barrier"], ["barrier"]],
  };
  const PLACES = [[150, 62], [238, 150], [150, 238], [62, 150]], RADIUS = 25;

  /** Run the programs, a list of calls for each rank: at which call each rank is in the end, and for whom it waits there. */
  function run(programs) {
    const at = RANKS.map(() => 0);
    const call = rank => programs[rank][at[rank]];
    const peer = rank => Number(call(rank).split(" ")[1]);
    for (let moved = true; moved;) {
      moved = false;
      if (COLLECTIVES.includes(call(0)) && RANKS.every(rank => call(rank) === call(0))) {
        RANKS.forEach(rank => at[rank]++);
        moved = true;
      }
      for (const rank of RANKS)
        if (call(rank)?.startsWith("send") && call(peer(rank)) === `recv ${rank}`) {
          at[peer(rank)]++;
          at[rank]++;
          moved = true;
        }
    }
    const waitsFor = RANKS.map(rank => !call(rank) ? [] : COLLECTIVES.includes(call(rank)) ? RANKS.filter(other => call(other) !== call(rank)) : [peer(rank)]);
    return { calls: RANKS.map(rank => call(rank) ?? null), waitsFor };
  }

  const list = ranks => `${ranks.length === 1 ? "rank" : "ranks"} ${ranks.join(", ")}`;
  const words = text => text.replace(/^recv (\d)$/, "recv(from rank $1)").replace(/^send (\d)$/, "send(to rank $1)");

  function cycle(waitsFor) {  // the first one that a walk along the arrows of messages finds
    for (const start of RANKS) {
      const way = [start];
      while (waitsFor[way.at(-1)].length === 1) {
        const next = waitsFor[way.at(-1)][0];
        if (way.includes(next)) return [...way.slice(way.indexOf(next)), next];
        way.push(next);
      }
    }
    return null;
  }

  function cause({ calls, waitsFor }) {
    const collectives = COLLECTIVES.filter(name => calls.includes(name));
    if (collectives.length > 1)
      return `the ranks call collectives in different orders: ${collectives.map(name => `${name} on ${list(RANKS.filter(rank => calls[rank] === name))}`).join(", ")}. All ranks must call the same collectives in the same order.`;
    const circle = cycle(waitsFor);
    if (circle) {
      const received = circle.every(rank => calls[rank].startsWith("recv")), sent = circle.every(rank => calls[rank].startsWith("send"));
      return (received ? "every rank of the circle waits to receive before it sends" : sent ? "every rank of the circle waits to send before it receives" :
        "the ranks wait for each other in a circle") + `: ${circle.join(" -> ")}. Change the order of the calls on one of them.`;
    }
    const finished = RANKS.filter(rank => calls[rank] === null);
    const alone = RANKS.find(rank => waitsFor[rank].length && !COLLECTIVES.includes(calls[rank]) && finished.includes(waitsFor[rank][0]));
    if (alone !== undefined)
      return calls[alone].startsWith("recv") ? `rank ${alone} waits for a message from rank ${waitsFor[alone][0]}, which never sent it.` :
        `rank ${alone} sends to rank ${waitsFor[alone][0]}, which never received it.`;
    const message = RANKS.find(rank => waitsFor[rank].length && !COLLECTIVES.includes(calls[rank]));
    if (message !== undefined)
      return `rank ${message} waits in ${words(calls[message])}, but rank ${waitsFor[message][0]} is in ${words(calls[waitsFor[message][0]])}.`;
    return `${list(finished)} did not join the ${collectives[0]}. Every rank of the group must call it.`;
  }

  function report(outcome) {
    const waiting = RANKS.filter(rank => outcome.calls[rank] !== null);
    if (!waiting.length) return "Every rank has finished.";
    return [
      waiting.length === 1 ? `HANG: rank ${waiting[0]} is waiting for a rank that never arrives.` : `HANG: ${list(waiting)} wait, and none of them can continue.`,
      ...RANKS.map(rank => `  rank ${rank}  ${outcome.calls[rank] === null ? "has finished" : `waits in ${words(outcome.calls[rank])}`}`),
      `Who waits for whom: ${waiting.map(rank => outcome.waitsFor[rank].map(other => `${rank} -> ${other}`).join(", ")).join(", ")}`,
      `Likely cause: ${cause(outcome)}`,
    ].join("\n");
  }

  function draw({ calls, waitsFor }) {
    const arrows = RANKS.flatMap(rank => waitsFor[rank].map(other => {
      const [x, y] = PLACES[rank], [toX, toY] = PLACES[other], length = Math.hypot(toX - x, toY - y);
      const [dx, dy] = [(toX - x) / length, (toY - y) / length];
      const aside = waitsFor[other].includes(rank) ? 6 : 0;  // two ranks that wait for each other have two arrows
      const [a, b] = [RADIUS + 3, length - RADIUS - 6];
      const at = way => `${(x + dx * way - dy * aside).toFixed(1)} ${(y + dy * way + dx * aside).toFixed(1)}`;
      return `<path class="arrow" d="M${at(a)} L${at(b)}" marker-end="url(#waits-for)"/>`;
    }));
    const discs = RANKS.map(rank => {
      const [x, y] = PLACES[rank], below = rank === 2 ? 44 : rank === 0 ? -34 : 44;
      return `<circle class="${calls[rank] === null ? "finished" : "waits"}" cx="${x}" cy="${y}" r="${RADIUS}"/>` +
        `<text class="disc" x="${x}" y="${y + 6}">${rank}</text><text x="${x}" y="${y + below}">${calls[rank] === null ? "finished" : calls[rank]}</text>`;
    });
    return `<defs><marker id="waits-for" markerWidth="9" markerHeight="9" refX="7" refY="3.5" orient="auto"><path d="M0,0 L8,3.5 L0,7 z"/></marker></defs>` +
      arrows.join("") + discs.join("");
  }

  function options() {
    const messages = peers => peers.map(other => `<option value="recv ${other}">recv from ${other}</option><option value="send ${other}">send to ${other}</option>`);
    return rank => `<option value="">no call</option>${COLLECTIVES.map(name => `<option>${name}</option>`).join("")}${messages(RANKS.filter(other => other !== rank)).join("")}`;
  }

  function begin(figure) {
    const chosen = options();
    figure.innerHTML = `<p class="examples">Begin with: ${Object.keys(EXAMPLES).map(name => `<button type="button" class="button quiet">${name}</button>`).join(" ")}</p>
      <div class="programs"><div>${RANKS.map(rank => `<fieldset><legend>rank ${rank}</legend>${["first", "second"].map(which =>
        `<select aria-label="${which} call of rank ${rank}">${chosen(rank)}</select>`).join("")}</fieldset>`).join("")}</div>
      <svg viewBox="0 0 300 300" role="img"></svg></div><pre role="status"></pre>`;
    const selects = RANKS.map(rank => [...figure.querySelectorAll("fieldset")[rank].querySelectorAll("select")]);
    const picture = figure.querySelector("svg");

    function show() {
      const outcome = run(selects.map(pair => pair.map(select => select.value).filter(Boolean)));
      picture.innerHTML = draw(outcome);
      picture.setAttribute("aria-label", `Wait-for graph. ${RANKS.map(rank => outcome.waitsFor[rank].length ?
        `Rank ${rank} waits for ${list(outcome.waitsFor[rank])}` : `Rank ${rank} has finished`).join(". ")}.`);
      figure.querySelector("pre").textContent = report(outcome);
    }

    function load(programs) {
      selects.forEach((pair, rank) => pair.forEach((select, which) => { select.value = programs[rank][which] ?? ""; }));
      show();
    }

    figure.addEventListener("change", show);
    figure.querySelectorAll(".examples button").forEach(button => button.addEventListener("click", () => load(EXAMPLES[button.textContent])));
    load(Object.values(EXAMPLES)[0]);
  }

  window.addEventListener("DOMContentLoaded", () => document.querySelectorAll(".wait-for-graph").forEach(begin));
})();
