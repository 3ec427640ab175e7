/* Counts down, looks for a newer page and changes only what differs, and shows the day again when the event is over.
   Nothing is loaded but the page itself. What stands on the page stays where it is: focus, scroll, a reader's place. */
"use strict";

const LOOK_MS = 15000, OLD_MS = 90000, DAY_MS = 60000;
const PARTS = ["head", "board", "queue", "day"];
const get = id => document.getElementById(id);
const inFile = location.protocol === "file:", asked = inFile && parent !== window;
let ahead_ms = 0, heard = Date.now(), newest = document.cloneNode(true), shown = null, frame = null;

const now_s = () => (Date.now() + ahead_ms) / 1000;

function span(seconds) {
  const whole = Math.max(0, Math.ceil(seconds)), two = number => String(number).padStart(2, "0");
  const days = Math.floor(whole / 86400), hours = Math.floor(whole / 3600) % 24;
  return `${days ? `${days} d ` : ""}${hours}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
}

function clock(now) {
  const {begins, ends, frozen} = get("clock").dataset;
  if (now < begins) return [`Begins in ${span(begins - now)}`];
  if (now >= ends) return ["The event is over"];
  const freeze = frozen === undefined ? [] : now < frozen ? [`freezes in ${span(frozen - now)}`] : ["frozen"];
  return [`Ends in ${span(ends - now)}`, ...freeze];
}

function tick() {
  const lost = Date.now() - heard > OLD_MS ? "Not connected, so this may be out of date." : "";
  if (get("lost").textContent !== lost) get("lost").textContent = lost;
  if (get("clock") && !shown) get("clock").firstElementChild.textContent = clock(now_s()).join(", ");
}

/* Make `old` like `fresh`, and keep every element that is the same kind of element in the same place. */
function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) { old.replaceWith(document.importNode(fresh, true)); return; }
  if (old.nodeType !== Node.ELEMENT_NODE) { old.nodeValue = fresh.nodeValue; return; }
  for (const {name} of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const {name, value} of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  const before = [...old.childNodes], after = [...fresh.childNodes];
  after.forEach((node, place) => place < before.length ? morph(before[place], node) : old.append(document.importNode(node, true)));
  before.slice(after.length).forEach(node => node.remove());
}

function show() {
  document.documentElement.className = newest.documentElement.className;
  document.title = newest.title;
  const controls = get("play") ? PARTS.slice(0, -1) : PARTS;  /* buttons that someone may be using stay */
  for (const id of controls) morph(get(id), newest.getElementById(id));
  if (get("play") && newest.getElementById("data")) get("data").textContent = newest.getElementById("data").textContent;
  else if (get("play")) get("day").replaceChildren();  /* the organisers have moved the end */
  offer();
  tick();
}

function take(text) {
  const found = new DOMParser().parseFromString(text, "text/html");
  if (!PARTS.every(id => found.getElementById(id))) return;  /* a log-in page, or a file that is being copied */
  heard = Date.now();
  newest = found;
  if (!shown) show();
}

async function look() {
  if (document.hidden) return;
  if (inFile) {  /* a script may not read a file, but a file may tell what it is */
    frame?.remove();
    frame = Object.assign(document.createElement("iframe"), {hidden: true, src: `${location.href.split(/[?#]/)[0]}?told`});
    document.body.append(frame);
    return;
  }
  try {
    const answer = await fetch(location.href, {cache: "no-store"});
    ahead_ms = Date.parse(answer.headers.get("Date")) - Date.now() || 0;
    if (answer.ok) take(await answer.text());
  } catch { /* `heard` is old then */ }
}

/* ---- the day again */

const text = (tag, kind, words) => Object.assign(document.createElement(tag), {className: kind, textContent: words});
const time = at => new Date(1000 * at).toTimeString().slice(0, 5);
const gain = (score, baseline) => score > 0 && baseline ? `${(baseline / score).toFixed(1)} ×` : "";

function offer() {
  const button = get("play");
  if (!button || button.onclick) return;
  button.hidden = false;
  button.onclick = play;
  get("pause").onclick = () => { shown.runs = !shown.runs; get("pause").textContent = shown.runs ? "Pause" : "Continue"; };
  get("close").onclick = close;
  get("at").oninput = event => { shown.part = event.target.value / 1000; draw(); };
}

function play() {
  shown = {day: JSON.parse(get("data").textContent), part: 0, runs: true, then: performance.now()};
  get("play").hidden = true;
  get("replaying").hidden = false;
  get("pause").textContent = "Pause";
  get("pause").focus();
  document.documentElement.classList.add("replays");
  requestAnimationFrame(step);
}

function close() {
  shown = null;
  get("replaying").hidden = true;
  show();
  get("play").hidden = false;
  get("play").focus();
  document.querySelectorAll(".curves").forEach(one => { one.style.clipPath = ""; });
}

function step(when) {
  if (!shown) return;
  if (shown.runs) {
    shown.part = Math.min(1, shown.part + (when - shown.then) / DAY_MS);
    draw();
  }
  shown.then = when;
  requestAnimationFrame(step);
}

function draw() {
  const {day, part} = shown, at = day.begins + part * (day.until - day.begins);
  get("at").value = Math.round(1000 * part);
  get("at").setAttribute("aria-valuetext", time(at));
  if (get("clock")) get("clock").firstElementChild.textContent = `Replay: ${time(at)}`;
  let latest = null;
  for (const section of day.sections) {
    const ways = section.teams.map(([team, way], place) => ({team, place, now: way.filter(([when]) => when <= at).at(-1)}));
    const listed = ways.filter(one => one.now && one.now[1] !== null).sort((a, b) => a.now[1] - b.now[1] || a.now[0] - b.now[0]);
    for (const one of listed) if (!latest || one.now[0] > latest.now[0]) latest = {...one, section};
    drawSection(section, listed.slice(0, day.most));
  }
  const news = document.querySelector(".news"), words = latest === null ? "No entry has a score yet."
    : `${time(latest.now[0])}: ${latest.team}, ${latest.section.title}: ${Number(latest.now[1].toPrecision(4))} ${latest.section.unit}`;
  if (news && news.textContent !== words) news.textContent = words;
}

function drawSection(section, rows) {
  const place = [...document.querySelectorAll("main section")].find(one => one.dataset.name === section.name), {day, part} = shown;
  if (!place) return;
  const picture = place.querySelector("svg"), curves = place.querySelector(".curves");
  if (picture) {
    const width = picture.viewBox.baseVal.width, right = width - day.right;
    curves.style.clipPath = `inset(0 ${width - day.left - part * (right - day.left)}px 0 0) view-box`;
  }
  const scores = rows.map(one => one.now[1]), key = JSON.stringify(rows), body = place.querySelector("tbody");
  if (body.dataset.key === key) return;
  body.dataset.key = key;
  body.replaceChildren(...rows.map(({team, place: colour, now: [at, score]}) => {
    const line = document.createElement("tr");
    line.append(text("td", "number", 1 + scores.indexOf(score)), text("td", `team t${colour}`, team), text("td", "number", Number(score.toPrecision(4))),
      text("td", "number", gain(score, section.baseline)), text("td", "number size", ""), text("td", "when", time(at)));
    return line;
  }));
}

if (asked) parent.postMessage(document.documentElement.outerHTML, "*");
else {
  offer();
  tick();
  setInterval(tick, 1000);
  setInterval(look, LOOK_MS);
  addEventListener("message", event => {
    if (!frame || event.source !== frame.contentWindow) return;
    frame.remove();
    frame = null;
    take(String(event.data));
  });
  document.addEventListener("visibilitychange", () => { heard = Date.now(); look(); });
}
