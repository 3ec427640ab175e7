"use strict";
// Who works now: the hub's own list, and those of the course's attendees whom it does not know yet, because they have never logged in.
(() => {
  const EVERY_MS = 10000, place = document.getElementById("who"), get = id => document.getElementById(id), may = place.dataset;
  const lines = new Map();  // name -> its row, which stays the same element

  async function ask(path, method = "GET") {
    const headers = {"X-XSRFToken": window.jhdata.xsrf_token, Accept: "application/jupyterhub-pagination+json"};
    const answer = await fetch(may.api + path, {method, headers});
    if (!answer.ok) throw new Error(answer.status === 403 ? "You may not do this, or your session has ended. Log in again." : `The hub answers with status ${answer.status}.`);
    return answer.status === 204 || answer.status === 202 || answer.status === 201 ? null : answer.json();
  }

  async function known() {  // all whom the hub knows, page by page
    const found = [];
    for (let offset = 0; offset !== null;) {
      const {items, _pagination} = await ask(`users?offset=${offset}`);
      found.push(...items);
      offset = _pagination.next?.offset ?? null;
    }
    return found;
  }

  function since(when) {
    if (!when) return "";
    const minutes = Math.floor((Date.now() - Date.parse(when)) / 60000);
    return minutes < 1 ? "now" : minutes < 60 ? `${minutes} min ago` : minutes < 24 * 60 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min ago` : new Date(when).toLocaleString();
  }

  const serverOf = user => user?.servers?.[""];  // a person has one here

  function state(user) {
    const server = serverOf(user);
    if (!user) return ["absent", "has not arrived yet"];
    if (server?.pending) return ["", {spawn: "server is starting", stop: "server is stopping"}[server.pending] ?? server.pending];
    return server?.ready ? ["works", "server is running"] : ["", "has logged in, no server"];
  }

  function button(words, name, does) {
    const made = document.createElement("button");
    made.className = "btn btn-sm btn-outline-secondary";
    made.textContent = words;
    made.setAttribute("aria-label", `${words} the server of ${name}`);
    made.addEventListener("click", async () => { made.disabled = true; await told(does); await look(); });
    return made;
  }

  function actions(user, name) {  // only what this role may do
    const server = serverOf(user);
    if (!user || server?.pending) return [];
    if (!server?.ready) return may.start === "True" ? [button("Start", name, () => ask(`users/${encodeURIComponent(name)}/server`, "POST"))] : [];
    const open = document.createElement("a");
    open.href = server.url;
    open.className = "btn btn-sm btn-outline-secondary";
    open.textContent = "Open";
    open.setAttribute("aria-label", `Open the server of ${name}`);
    return [...may.open === "True" ? [open] : [], ...may.stop === "True" ? [button("Stop", name, () => ask(`users/${encodeURIComponent(name)}/server`, "DELETE"))] : []];
  }

  function draw(users) {
    const people = new Map(JSON.parse(get("expected").textContent).map(([name, fullName]) => [name, {fullName, expected: true}]));
    for (const user of users) people.set(user.name, {...people.get(user.name), user});
    const names = [...people.keys()].sort(), expected = names.filter(name => people.get(name).expected), absent = expected.filter(name => !people.get(name).user);
    const working = expected.filter(name => serverOf(people.get(name).user)?.ready);
    get("numbers").textContent = `Running servers: ${working.length} of ${expected.length} participants. Logged in so far: ${expected.length - absent.length}.`;
    get("missing").textContent = absent.length ? `Not arrived yet (${absent.length}): ${absent.join(", ")}` : "";
    for (const [name, line] of lines) if (!people.has(name)) { line.remove(); lines.delete(name); }
    names.forEach((name, number) => {
      const {user, fullName, expected} = people.get(name), body = place.querySelector("tbody");
      const [kind, words] = state(user), key = words + (serverOf(user)?.url ?? "");
      let line = lines.get(name);
      if (!line) {
        lines.set(name, line = document.createElement("tr"));
        for (let cell = 0; cell < 4; cell++) line.insertCell();
        line.cells[0].textContent = [name, fullName].filter(Boolean).join(", ") + (expected ? "" : " (staff)");
        body.insertBefore(line, body.rows[number] ?? null);
      }
      line.cells[2].textContent = since(user?.last_activity);
      if (line.dataset.key === key) return;  // a button that somebody is about to press stays
      line.dataset.key = key;
      line.cells[1].className = `state ${kind}`;
      line.cells[1].textContent = words;
      line.cells[3].replaceChildren(...actions(user, name));
    });
  }

  async function told(does) {
    try {
      await does();
      get("problem").textContent = "";
    } catch (problem) { get("problem").textContent = problem.message; }
  }

  const look = () => told(async () => draw(await known()));
  setInterval(() => document.hidden || look(), EVERY_MS);
  look();
})();
