// What is wrong with each slide of a deck of Marp's that is shown for print, as it is seen on a page of 1280 x 720: one list of sentences a slide.
// Only what a person sees is asked: places, sizes, colours. Words of a drawing are measured as those of the text.
() => {
  const SMALLEST_PX = 20, EDGE_PX = 1, GAP_PX = 8;  // 8 px above the footer, or it looks like a part of it

  const drawn = document.createElement("style");
  drawn.textContent = "svg[data-marpit-svg] { position: static !important; display: block !important; width: 1280px !important; height: 720px !important }" +
    " svg[data-marpit-svg] * { content-visibility: visible !important }";
  document.head.append(drawn);

  // A picture that is an <img> hides its words: it is put in as SVG, in a tree of its own.
  for (const image of document.querySelectorAll("section img[src^='data:image/svg']")) {
    const box = image.getBoundingClientRect();
    const host = document.createElement("div");
    host.style.cssText = `display: block; width: ${box.width}px; height: ${box.height}px; margin: 0 auto`;
    host.dataset.alt = image.getAttribute("alt") || "";
    host.attachShadow({ mode: "open" }).innerHTML = new TextDecoder().decode(Uint8Array.from(atob(image.src.split(",")[1]), c => c.charCodeAt(0)));
    const svg = host.shadowRoot.querySelector("svg");
    svg.setAttribute("width", box.width);
    svg.setAttribute("height", box.height);
    image.replaceWith(host);
  }

  const rgba = text => { const n = text.match(/[\d.]+/g).map(Number); return n.length === 4 ? n : [...n.slice(0, 3), 1]; };
  const over = (top, ground) => [0, 1, 2].map(i => top[i] * top[3] + ground[i] * (1 - top[3])).concat(1);
  const light = c => c.slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (a, b) => { const [low, high] = [light(a), light(b)].sort((x, y) => x - y); return (high + 0.05) / (low + 0.05); };

  const groundOf = element => {  // the colour behind a text of the page
    const layers = [];
    for (let at = element; at; at = at.parentElement || (at.getRootNode().host ?? null)) {
      if (at.namespaceURI.endsWith("svg")) continue;
      const colour = rgba(getComputedStyle(at).backgroundColor);
      layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reverse().reduce((ground, colour) => over(colour, ground), [255, 255, 255, 1]);
  };
  const inDrawing = (text, svg) => {  // the colour behind a word of a drawing: what was painted there before it
    const box = text.getBoundingClientRect();
    let ground = groundOf(svg);
    for (const shape of svg.querySelectorAll("rect, circle, ellipse, polygon, path")) {
      if (!(shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING) || shape.closest("clipPath, defs")) continue;
      const style = getComputedStyle(shape), matrix = shape.getScreenCTM();
      if (style.fill === "none" || style.fill.startsWith("url") || !matrix) continue;
      const middle = new DOMPoint((box.left + box.right) / 2, (box.top + box.bottom) / 2).matrixTransform(matrix.inverse());
      if (!shape.isPointInFill(middle)) continue;
      const colour = rgba(style.fill);
      ground = over([...colour.slice(0, 3), colour[3] * style.fillOpacity * style.opacity], ground);
    }
    return ground;
  };

  const wordsOf = function* (root) {  // every text that is seen: [its words, its element, the drawing it stands in]
    const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {
      if (node.shadowRoot) yield* wordsOf(node.shadowRoot);
      const element = node.parentElement;
      if (node.nodeType !== Node.TEXT_NODE || !node.data.trim() || !element || element.closest("style, script, title, desc, metadata, mjx-container")) continue;
      yield [node, element, element.closest("svg:not([data-marpit-svg])")];
    }
  };

  const problemsOf = section => {
    const found = [], page = section.getBoundingClientRect();
    const footer = section.querySelector("footer");
    const floor = footer ? footer.getBoundingClientRect().top - GAP_PX : page.bottom;
    const say = (what, words) => found.push(`${what}: ${words.trim().replace(/\s+/g, " ").slice(0, 50)}`);
    const place = (box, name) => {
      if (!box.width || !box.height) return;
      if (box.bottom > floor + EDGE_PX) say(`${Math.round(box.bottom - floor)} px into the footer`, name);
      if (box.left < page.left - EDGE_PX || box.right > page.right + EDGE_PX || box.top < page.top - EDGE_PX) say("outside the page", name);
    };

    for (const [node, element, drawing] of wordsOf(section)) {
      const range = document.createRange();
      range.selectNodeContents(node);
      const box = drawing ? element.getBoundingClientRect() : range.getBoundingClientRect();
      if (!element.closest("footer")) place(box, node.data);
      const style = getComputedStyle(element), matrix = drawing && element.getScreenCTM();
      const size = parseFloat(style.fontSize) * (matrix ? Math.hypot(matrix.a, matrix.b) : 1);
      if (size < SMALLEST_PX - 0.05) say(`letters of ${size.toFixed(1)} px`, node.data);
      const ground = drawing ? inDrawing(element, drawing) : groundOf(element);
      const ratio = contrast(over(rgba(drawing ? style.fill : style.color), ground), ground);
      if (ratio < (size >= 24 ? 3 : 4.5)) say(`a contrast of ${ratio.toFixed(1)}`, node.data);
      if (drawing) {
        const frame = drawing.getBoundingClientRect();
        if (box.left < frame.left - EDGE_PX || box.right > frame.right + EDGE_PX || box.top < frame.top - EDGE_PX || box.bottom > frame.bottom + EDGE_PX)
          say("cut off at the edge of its picture", node.data);
      }
    }
    for (const box of section.querySelectorAll("p, ul, ol, pre, table, mjx-container, svg, [data-alt], img, blockquote, div")) {
      if (box.closest("svg svg, mjx-container svg")) continue;
      place(box.getBoundingClientRect(), `<${box.tagName.toLowerCase()}> ${box.closest("svg") ? "" : box.textContent}`);
      if (box.scrollWidth > box.clientWidth + EDGE_PX && getComputedStyle(box).overflowX !== "visible") say("wider than its frame", box.textContent);
    }
    for (const formula of section.querySelectorAll("mjx-container")) {
      const size = parseFloat(getComputedStyle(formula).fontSize);
      if (size < SMALLEST_PX) say(`mathematics of ${size} px`, formula.parentElement.textContent);
      if (!formula.closest("[aria-label]")) say("no words for those who cannot see it", "mathematics");
    }
    const named = picture => picture.getAttribute("alt") || picture.dataset.alt || (picture.getAttribute("role") === "img" && picture.getAttribute("aria-label"));
    for (const picture of section.querySelectorAll("img, [data-alt], svg"))
      if (!picture.closest("mjx-container") && !picture.parentElement.closest("svg:not([data-marpit-svg])") && !named(picture)) say("no words for those who cannot see it", "a picture");
    return found;
  };

  const sections = [...document.querySelectorAll("svg[data-marpit-svg] > foreignObject > section")];
  const wide = sections.filter(s => s.getBoundingClientRect().width !== 1280).length;
  return {
    lang: document.documentElement.lang,
    titled: sections.every(s => s.querySelector("h1, h2")),
    headings: sections.flatMap(s => [...s.querySelectorAll("h1, h2, h3, h4, h5, h6")].map(h => h.textContent.trim().replace(/\s+/g, " "))),
    notes: document.querySelectorAll(".bespoke-marp-note").length,
    slides: sections.map(s => [...new Set(problemsOf(s))]),
    wide,
  };
}
