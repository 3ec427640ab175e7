// Shows work/Start_Here.md anew when it has changed on disk: JupyterLab itself reads a file once. And gives each figure
// the title that stands in its SVG as words for those who cannot see it: JupyterLab shows an SVG as an <img> without any.
// And lets the page's table of units fit beside the file browser on a small screen.
// Written by hand as JupyterLab's loader wants it (a module-federation container), so that nothing needs to be compiled.
"use strict";

(() => {
  const EVERY_MS = 1000;
  const NARROW = "@media (max-width: 1100px) { .jp-MarkdownViewer .jp-RenderedHTMLCommon :is(th, td) { padding-inline: 0.2em; } }";
  let busy = false;

  function shown(app) {  // the page's views that somebody looks at
    const pages = [...app.shell.widgets("main")].filter(widget => /(^|\/)Start_Here\.md$/.test(widget.context?.path || ""));
    return document.hidden ? [] : pages.filter(page => page.isVisible && page.context.isReady && !page.context.model.dirty);
  }

  async function renew(app) {
    if (busy) return;
    busy = true;
    try {
      for (const {context} of shown(app)) {
        const onDisk = await app.serviceManager.contents.get(context.path, {content: false});
        if (onDisk.last_modified !== context.contentsModel?.last_modified) await context.revert();
      }
    } catch (problem) {  // the server is away, or the file is: JupyterLab tells of that itself
    } finally {
      busy = false;
    }
  }

  function title(image) {
    const text = decodeURIComponent(image.src.slice(image.src.indexOf(",") + 1));
    return new DOMParser().parseFromString(text, "image/svg+xml").querySelector("title")?.textContent.trim() || "figure";
  }

  function words() {
    for (const image of document.querySelectorAll(".jp-RenderedSVG img:not([alt])")) image.alt = title(image);
  }

  function often(app) {
    words();
    renew(app);
  }

  function activate(app) {
    document.head.append(Object.assign(document.createElement("style"), {textContent: NARROW}));
    setInterval(often, EVERY_MS, app);
  }

  const plugin = {id: "manyhands-lab:plugin", autoStart: true, activate};
  (window._JUPYTERLAB ??= {})["manyhands-lab"] = {
    init: () => undefined,
    get: async () => () => ({__esModule: true, default: plugin}),
  };
})();
