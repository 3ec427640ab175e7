/* Shows a term's entry of the glossary over the page, on hover and on focus; Escape closes it. */
window.addEventListener("DOMContentLoaded", () => {
  const box = Object.assign(document.createElement("div"), { className: "glossary-entry", id: "glossary-entry", hidden: true });
  box.setAttribute("role", "tooltip");
  (document.querySelector("main") ?? document.body).append(box);
  let shown = null, closing = 0;

  function close() {
    clearTimeout(closing);
    box.hidden = true;
    shown?.removeAttribute("aria-describedby");
    shown = null;
  }

  function show(link) {
    const entry = GLOSSARY[link.hash.slice(1)];
    clearTimeout(closing);
    if (!entry || shown === link) return;
    close();
    box.replaceChildren(Object.assign(document.createElement("strong"), { textContent: entry[0] }), `: ${entry[1]}`);
    box.hidden = false;
    link.setAttribute("aria-describedby", box.id);
    shown = link;
    const at = link.getBoundingClientRect(), size = box.getBoundingClientRect(), frame = box.offsetParent.getBoundingClientRect();
    const above = at.bottom + size.height + 8 > innerHeight && at.top > size.height + 8;
    box.style.left = `${Math.max(8, Math.min(at.left, innerWidth - size.width - 8)) - frame.left}px`;
    box.style.top = `${(above ? at.top - size.height - 6 : at.bottom + 6) - frame.top}px`;
  }

  const later = () => { clearTimeout(closing); closing = setTimeout(close, 250); };  // time to move the mouse into the box
  for (const link of document.querySelectorAll("article a.term")) {
    link.addEventListener("mouseenter", () => show(link));
    link.addEventListener("focus", () => show(link));
    link.addEventListener("mouseleave", later);
    link.addEventListener("blur", later);
  }
  box.addEventListener("mouseenter", () => clearTimeout(closing));
  box.addEventListener("mouseleave", later);
  document.addEventListener("keydown", event => { if (event.key === "Escape") close(); });
});
