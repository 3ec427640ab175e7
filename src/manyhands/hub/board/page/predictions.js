// Draws the room's predictions of a question. What came, and names, are asked of the service only where their button is pressed.
"use strict";

const LOST_MS = 5000;
const get = id => document.getElementById(id);
let source = null, lost = 0, current = "";

function make(tag, kind, text = "") {
  const made = document.createElement(tag);
  made.className = kind;
  made.textContent = text;
  return made;
}

const pressed = id => get(id).getAttribute("aria-pressed") === "true";

function connect() {
  const asked = new URLSearchParams({question: get("asked").value, reveal: pressed("reveal") ? 1 : 0, names: pressed("names") ? 1 : 0,
    _xsrf: document.querySelector("[name=_xsrf]").value});
  source?.close();
  source = new EventSource("predictions/events?" + asked);
  source.addEventListener("clock", () => { lost = 0; });
  source.addEventListener("room", event => draw(JSON.parse(event.data)));
  source.onerror = () => {
    lost ||= Date.now();
    if (source.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 2 * LOST_MS);
  };
}

function draw({questions, units, shown}) {
  listQuestions(questions, units);
  if (!shown) return;
  current = shown.name;
  get("question").textContent = shown.question;
  get("numbers").textContent = `${shown.predicted} of ${shown.people} have predicted`;
  const most = Math.max(1, ...shown.bars.map(bar => bar.count));
  get("bars").style.setProperty("--bars", Math.max(shown.bars.length, 3));  // the letters follow the room of a bar
  get("bars").replaceChildren(...shown.bars.map(bar => drawBar(bar, most)));
  get("came").hidden = !pressed("reveal");
  get("came").textContent = shown.came === null ? "No one has run it yet."
    : `The run: ${shown.came} · ${shown.right} of ${shown.predicted} right`;
}

function drawBar(bar, most) {
  const line = make("li", bar.came ? "came" : ""), room = make("div", "room"), inside = make("div", "bar");
  inside.style.width = `${100 * bar.count / most}%`;
  room.append(inside);
  line.append(make("span", "label", (bar.came ? "✓ " : "") + bar.label), room, make("span", "count", bar.count));
  if (bar.names?.length) line.append(make("span", "names", bar.names.join(", ")));
  return line;
}

function listQuestions(questions, units) {
  const select = get("asked"), known = new Map(Array.from(select.options, option => [option.value, option]));
  for (const [name, text, count] of questions) {
    let option = known.get(name);
    if (!option) {
      let group = select.querySelector(`optgroup[data-unit="${name.slice(0, 2)}"]`);
      if (!group) {
        select.append(group = make("optgroup", ""));
        group.dataset.unit = name.slice(0, 2);
        group.label = units[name.slice(0, 2)] ?? name.slice(0, 2);
      }
      group.append(option = make("option", ""));
      option.value = name;
    }
    const label = (count ? `(${count}) ` : "") + text;
    if (option.textContent !== label) option.textContent = label;
  }
}

function toggle(event) {
  event.target.setAttribute("aria-pressed", String(!pressed(event.target.id)));
  connect();
}

function ask(name) {  // another question is not revealed yet
  get("asked").value = name;
  get("reveal").setAttribute("aria-pressed", "false");
  connect();
}

function move(by) {  // in the course's order
  const all = Array.from(get("asked").options, option => option.value).slice(1), place = all.indexOf(current);
  const next = place < 0 ? 0 : place + by;
  if (next in all) ask(all[next]);
}

const KEYS = {ArrowLeft: "previous", ArrowRight: "next", r: "reveal", n: "names"};
document.addEventListener("keydown", event => {
  const id = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (id && event.target.tagName !== "SELECT" && !event.ctrlKey && !event.altKey && !event.metaKey) get(id).click();
});
get("previous").addEventListener("click", () => move(-1));
get("next").addEventListener("click", () => move(1));
get("reveal").addEventListener("click", toggle);
get("names").addEventListener("click", toggle);
get("asked").addEventListener("change", event => ask(event.target.value));
document.addEventListener("visibilitychange", () => document.hidden ? source.close() : connect());
setInterval(() => { get("lost").hidden = !(lost && Date.now() - lost > LOST_MS); }, 1000);
connect();
