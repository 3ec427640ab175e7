// Draws what the board sends. Text of other people gets into the page as text only (textContent, title), never as HTML.
"use strict";

const SIGN = {p: "✓", f: "✗", o: "○", b: "–", "-": "·"};
const WORD = {p: "passed", f: "failed", o: "not begun", b: "this machine cannot check it", "-": "not checked yet"};
const SLOW_S = 5 * 60, LATE_S = 15 * 60, LOST_MS = 5000;
const SMALLEST_PX = 11, READ_FROM_THE_BACK = 36, PHONE = matchMedia("(max-width: 700px)");
const staff = document.body.classList.contains("staff");
const get = id => document.getElementById(id);
const lines = new Map();  // of the room: name -> its <tr>
let room = null, source = null, ahead_s = 0, lost = 0, layout = "";

function make(tag, kind, text = "", title = "") {
  const made = document.createElement(tag);
  if (kind) made.className = kind;
  made.textContent = text;
  if (title) made.title = title;
  return made;
}

function opens(line, name) {  // a click, or Enter or the space bar, shows the person
  line.tabIndex = 0;
  line.addEventListener("click", () => show(name));
  line.addEventListener("keydown", event => {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); show(name); }
  });
}

function connect() {
  const asked = new URLSearchParams({unit: get("unit").value, _xsrf: document.querySelector("[name=_xsrf]").value});
  source?.close();
  source = new EventSource("events?" + asked);
  source.addEventListener("clock", event => { ahead_s = Date.now() / 1000 - JSON.parse(event.data); lost = 0; });
  source.addEventListener("room", event => { room = JSON.parse(event.data); draw(); });
  source.onerror = () => {
    lost ||= Date.now();
    if (source.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 2 * LOST_MS);
  };
}

const since = when => Date.now() / 1000 - ahead_s - when;

function time(seconds) {
  const minutes = Math.max(0, Math.floor(seconds / 60));
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

const round = points => Math.round(points * 100) / 100;
const hints = row => row.hints ? `${row.hints} hint${row.hints > 1 ? "s" : ""}` : "";

function draw() {
  units();
  get("announcement").hidden = !room.announcement;
  get("announcement").textContent = room.announcement ? room.announcement.text : "";
  if (!room.unit) return;
  get("title").textContent = room.units.find(([name]) => name === room.unit)[1];
  staff ? drawRoom() : drawOwn();
  tick();
}

function units() {
  const select = get("unit"), known = new Set(Array.from(select.options, option => option.value));
  for (const [name, title] of room.units)
    if (!known.has(name)) { const option = make("option", "", title); option.value = name; select.append(option); }
  if (staff) get("table").href = "results.csv?" + new URLSearchParams({unit: room.unit || ""});
}

function numbers(parts) {  // [[number, words], ...]
  get("numbers").replaceChildren(...parts.flatMap(([number, words], place) => [place ? " · " : "", make("b", "", number), " " + words]));
}

// ---- the room

function drawRoom() {
  numbers([[round(room.median), `of ${room.max}: the median`], [room.checked, `of ${room.people} have checked`], [room.full, "with full marks"]]);
  const names = new Set(room.rows.map(row => row.name));
  for (const name of lines.keys()) if (!names.has(name)) lines.delete(name);
  room.rows.forEach(drawRow);
  get("criteria").replaceChildren(...room.criteria.map((one, place) => {
    const line = make("li"), bar = make("progress");
    bar.max = room.people;
    bar.value = one.passed;
    line.append(make("span", "number", place + 1), make("span", "text", `${one.check}: ${one.text}`, one.text), bar,
      make("span", "count", `${one.passed}/${room.people}`, `${one.failing} fail`));
    return line;
  }));
  arrange();
}

function drawRow(row) {
  const key = room.unit + JSON.stringify(row);
  let line = lines.get(row.name);
  if (line?.key === key) return;
  if (!line) {
    lines.set(row.name, line = make("tr"));
    opens(line, row.name);
  }
  Object.assign(line, {key, row});
  line.replaceChildren(make("td", "", row.name, row.full_name), ...cells(row), make("td", "points", row.checked ? round(row.points) : ""),
    make("td", "hints", row.hints || ""));
}

const cells = row => Array.from(row.cells, (cell, place) => sign("td", row, cell, place));

function sign(tag, row, cell, place) {
  const made = make(tag, `cell ${cell}`, SIGN[cell], [`${place + 1}. ${room.criteria[place].text}: ${WORD[cell]}`, row.messages[place]].filter(Boolean).join("\n"));
  made.setAttribute("aria-label", WORD[cell]);
  if (tag === "span") made.setAttribute("role", "img");
  return made;
}

function largest(count, wide, width, height) {  // how many tables of how many rows, and the size of their letters
  let best = {size: 0};
  for (let tables = 1; tables <= 8; tables++) {
    const rows = Math.ceil(count / tables);
    const size = Math.min(Math.max(40, innerHeight / 15), (height - 4) / (rows * 1.52 + 1.1), width / (tables * (wide + 1.5) - 1.5));
    if (size > best.size) best = {size, tables, rows};
  }
  return best;
}

// As many tables side by side as let the letters be largest; beside them, or below a short room, what is next to it.
function arrange() {
  const main = document.querySelector("main"), place = get("people"), count = lines.size, columns = room.criteria.length;
  const letters = Math.min(15, Math.max(4, ...Array.from(lines.keys(), name => name.length)));
  const wide = letters * .62 + columns * 1.34 + 5.2;  // of one table, in letters' sizes
  const shares = PHONE.matches ? [["below", 1, 9]] : [["beside", .66, 1], ["below", 1, .42]];
  let best = {size: 0};
  for (const [where, across, down] of shares) {
    const found = largest(count, wide, main.clientWidth * across, main.clientHeight * down);
    if (found.size > best.size || where === "below" && found.size > innerHeight / READ_FROM_THE_BACK) best = {...found, where};
  }
  main.className = best.where;
  place.style.fontSize = `${Math.max(SMALLEST_PX, best.size)}px`;
  lay(place, best, columns);
  fit();
  fill();
}

function fit() {  // letters and cells may be wider than was thought, and the names of those who wait long are bold
  const place = get("people"), over = place.scrollWidth / place.clientWidth;
  if (over > 1) place.style.fontSize = `${Math.max(SMALLEST_PX, Math.floor(parseFloat(place.style.fontSize) / over))}px`;
}

function lay(place, best, columns) {  // the rows into so many tables
  const wanted = JSON.stringify([best.tables, columns, [...lines.keys()]]);
  if (wanted === layout) return;
  layout = wanted;
  const all = room.rows.map(row => lines.get(row.name));
  place.replaceChildren(...Array.from({length: best.tables}, (_, number) => {
    const table = make("table"), head = make("tr"), body = make("tbody");
    head.append(make("th", "", "name"), ...room.criteria.map((one, column) => make("th", "", column + 1, one.text)), make("th", "", "points"), make("th", "", "hints"));
    body.append(...all.slice(number * best.rows, (number + 1) * best.rows));
    const top = make("thead");
    top.append(head);
    table.append(top, body);
    return table;
  }));
}

// The criteria's letters as large as lets all of them be read; where none does, a line of each.
function fill() {
  const list = get("criteria");
  for (const [kind, sizes] of [["", [2, 1.8, 1.6, 1.4, 1.3, 1.2, 1.1, 1, .9, .85]], ["short", [1, .9, .85]]])
    for (const size of sizes) {
      list.className = kind;
      list.style.fontSize = `${PHONE.matches ? 1 : size}rem`;
      if (list.scrollHeight <= list.clientHeight) return;
    }
}

function drawStuck() {
  if (get("stuck").contains(document.activeElement)) return;  // somebody is choosing with the keyboard
  const waiting = room.rows.filter(row => row.stuck).sort((a, b) => a.stuck.since - b.stuck.since);
  const place = get("stuck");
  place.replaceChildren();
  for (const row of waiting) {
    const line = make("li", pace(row)), head = make("div", "who", `${row.name}  ${time(since(row.stuck.since))} `), on = row.stuck.criterion;
    head.append(make("small", "", [`checked ${time(since(row.checked))} ago`, hints(row)].filter(Boolean).join(", ")));
    line.append(head, make("div", "on", on === null ? "the notebook itself" : `${on + 1}. ${room.criteria[on].text}`),
      make("div", "message", row.stuck.message));
    opens(line, row.name);
    place.append(line);
    if (place.scrollHeight > place.clientHeight) { line.remove(); break; }  // those who have waited longest, as many as there is room for
  }
  if (!waiting.length) place.append(make("li", "nobody", room.checked ? "No one is stuck." : "No one has checked this unit yet."));
  for (const line of lines.values()) line.classList.toggle("late", pace(line.row) === "late");
  fit();
}

function pace(row) {
  const waited_s = row.stuck ? since(row.stuck.since) : 0;
  return waited_s >= LATE_S ? "late" : waited_s >= SLOW_S ? "slow" : "";
}

function show(name) {
  const row = lines.get(name).row, dialog = get("person");
  dialog.querySelector("h2").textContent = [row.name, row.full_name].filter(Boolean).join(", ");
  dialog.querySelector("p").textContent = row.checked
    ? [`${round(row.points)} of ${room.max}`, hints(row), `last check ${time(since(row.checked))} ago`].filter(Boolean).join(" · ")
    : "has not checked this unit yet";
  dialog.querySelector("ol").replaceChildren(...listed(row));
  dialog.showModal();
}

function listed(row) {
  const lines = Array.from(row.cells, (cell, place) => {
    const line = make("li"), text = make("span", "text", `${room.criteria[place].check}: ${room.criteria[place].text}`);
    if (row.messages[place]) text.append(make("span", "message", row.messages[place]));
    line.append(sign("span", row, cell, place), text);
    return line;
  });
  return row.stuck && row.stuck.criterion === null ? [make("li", "message", row.stuck.message), ...lines] : lines;
}

// ---- an attendee

function drawOwn() {
  const [row] = room.rows;
  numbers([[round(row.points), [`of ${room.max}: yours`, hints(row)].filter(Boolean).join(", ")],
    ...(room.median === null ? [] : [[round(room.median), "the median of the class"]])]);
  get("own").replaceChildren(...listed(row));
}

// ---- what goes on without a message

function tick() {
  get("lost").hidden = !(lost && Date.now() - lost > LOST_MS);
  if (staff && room?.unit) drawStuck();
}

get("unit").addEventListener("change", connect);
window.addEventListener("resize", () => staff && room?.unit && arrange());
document.addEventListener("visibilitychange", () => document.hidden ? source.close() : connect());  // a browser has few connections
setInterval(tick, 5000);
connect();
