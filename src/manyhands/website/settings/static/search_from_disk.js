/* Sphinx's search fetches the pages that it found, for their excerpts; from the disk a browser forbids that. The texts
   are in search_texts.js then. */
if (location.protocol === "file:") {
  const root = new URL(document.documentElement.dataset.content_root, location).href;
  window.fetch = async (address) => {
    const name = decodeURI(new URL(address, location).href.slice(root.length)).replace(/[?#].*/, "");
    const main = document.createElement("div");
    main.setAttribute("role", "main");
    main.textContent = COURSE_TEXTS[name] ?? "";
    return { text: async () => main.outerHTML };
  };
  window.addEventListener("DOMContentLoaded", () => {
    const read = Search.htmlToText;
    Search.htmlToText = (text) => read(text);  // the texts have no anchors
  });
}
