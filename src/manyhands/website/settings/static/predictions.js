/* Predictions on the pages of the tutorials. A form asks, and the outputs between it and its outcome are hidden until the
   reader has locked a guess or has skipped it. Guesses are kept in this browser, and nothing is sent anywhere. */
window.addEventListener("DOMContentLoaded", () => {
  const KEY = "manyhands-predictions", EQUAL = 1e-9;
  const forms = [...document.querySelectorAll("form.prediction")];
  const cards = [...document.querySelectorAll(".unit-card")];
  const skipped = new Set();
  let kept = read() ?? {};

  function read() {  // null where this browser keeps nothing, or something that is not ours
    try {
      const found = JSON.parse(localStorage.getItem(KEY) ?? "{}");
      return found && typeof found === "object" && !Array.isArray(found) ? found : null;
    } catch { return null; }
  }

  const keep = () => { try { localStorage.setItem(KEY, JSON.stringify(kept)); } catch { /* it lasts until the page is closed */ } };
  const known = name => Object.hasOwn(kept, name) && kept[name] && Object.hasOwn(kept[name], "guess");

  function number(text) {  // as in the notebooks: 1,000 or 2/3 or 1e6
    const [above, below = "1", ...rest] = text.replace(/[,_\s]/g, "").split("/");
    const value = Number(above) / Number(below);
    return above === "" || below === "" || rest.length || !Number.isFinite(value) ? null : value;
  }

  function right(form, guess) {
    const came = JSON.parse(form.dataset.came);
    return typeof came === "number" ? Math.abs(guess - came) <= Math.max(Number(form.dataset.within), EQUAL) * Math.abs(came) : guess === came;
  }

  const words = (form, guess) => typeof guess === "number" ? `${guess.toLocaleString("en")} ${form.dataset.unit}`.trim() : String(guess);
  const settles = form => document.querySelector(`.settled[data-settles="${CSS.escape(form.dataset.name)}"]`);

  function line(...parts) {  // texts, and [text] in bold
    const made = document.createDocumentFragment();
    for (const part of parts) made.append(Array.isArray(part) ? Object.assign(document.createElement("strong"), { textContent: part[0] }) : part);
    return made;
  }

  function show(form) {
    const name = form.dataset.name, told = form.querySelector(".prediction-told"), outcome = settles(form);
    form.querySelector(".prediction-buttons").hidden = known(name) || skipped.has(name);
    form.querySelector("fieldset").disabled = known(name);
    if (!known(name)) return;
    const guess = kept[name].guess;
    for (const input of form.querySelectorAll("input")) {
      if (input.type === "radio") input.checked = input.value === guess;
      else input.value = guess;
    }
    told.replaceChildren(line("You predicted: ", [words(form, guess)], ". It is locked. Now read on, and compare it with the output."));
    if (!outcome || form.dataset.came === undefined) return;
    const good = right(form, guess);
    outcome.open = true;
    outcome.classList.add(good ? "right" : "different");
    outcome.querySelector(".settled-told").replaceChildren(line("You predicted: ", [words(form, guess)], ". The run: ", [form.dataset.words], ". ",
      [good ? "✓ Right." : "✗ The outcome differs from your prediction."]));
  }

  function hide() {  // the outputs that answer a question which is still open
    for (const element of document.querySelectorAll(".until-predicted")) element.classList.remove("until-predicted");
    for (const form of forms) {
      const outcome = settles(form);
      if (!outcome || known(form.dataset.name) || skipped.has(form.dataset.name)) continue;
      const after = (a, b) => a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING;
      for (const element of document.querySelectorAll("article .cell_output, article details:not(.hide)"))
        if (after(form, element) && after(element, outcome) && !element.contains(outcome) && !element.querySelector("form.prediction"))
          element.classList.add("until-predicted");
    }
  }

  const made = unit => Object.keys(kept).filter(name => known(name) && name.startsWith(`${unit}-`));
  const count = names => `${names.length} ${names.length === 1 ? "prediction" : "predictions"}, ${names.filter(name => kept[name].right).length} right`;

  function tell() {
    const links = document.querySelector(".unit-links");
    if (forms.length && links) {
      const mine = forms.map(form => form.dataset.name).filter(known);
      const place = links.querySelector(".prediction-count") ?? links.appendChild(Object.assign(document.createElement("span"), { className: "prediction-count" }));
      place.textContent = `Predictions: ${mine.length} of ${forms.length} made, ${mine.filter(name => kept[name].right).length} right`;
    }
    for (const card of cards) {
      card.querySelector(".prediction-count")?.remove();
      if (made(card.dataset.unit).length)
        card.append(Object.assign(document.createElement("p"), { className: "facts prediction-count", textContent: count(made(card.dataset.unit)) }));
    }
    const total = document.querySelector(".prediction-total");
    if (!total) return;
    const all = Object.keys(kept).filter(known);
    total.hidden = !all.length;
    const forget = Object.assign(document.createElement("button"), { type: "button", className: "button quiet", textContent: "Forget them" });
    forget.addEventListener("click", () => { kept = {}; keep(); tell(); });
    total.replaceChildren(`You have made ${count(all)}. They are kept in this browser only. `, forget);
  }

  const refresh = () => { forms.forEach(show); hide(); tell(); };

  for (const form of forms) {
    const name = form.dataset.name, told = form.querySelector(".prediction-told");
    form.addEventListener("submit", event => {
      event.preventDefault();
      const typed = form.querySelector("input[type=text]");
      const guess = typed ? number(typed.value) : form.querySelector("input:checked")?.value ?? null;
      if (guess === null) {
        told.textContent = typed ? "Type a number, for example 8, 0.5, 2/3 or 1e6." : "Choose one of the answers first.";
        return;
      }
      kept = read() ?? kept;  // another tab may have kept a guess in the meantime, also for this question
      if (!known(name)) kept[name] = { guess, ...(form.dataset.came === undefined ? {} : { right: right(form, guess) }) };
      keep();
      refresh();
    });
    form.querySelector("button[type=button]").addEventListener("click", () => { skipped.add(name); told.textContent = ""; refresh(); });
  }
  window.addEventListener("storage", event => { if (event.key === KEY) { kept = read() ?? {}; refresh(); } });
  refresh();
});
