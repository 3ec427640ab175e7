// Shows work/Start_Here.md anew when it has changed on disk: JupyterLab itself reads a file once. And gives each figure
// the title that stands in its SVG as words for those who cannot see it: JupyterLab shows an SVG as an <img> without any.
// And lets the page's table of units fit beside the file browser on a small screen.
// And has a document that was changed while it was being saved stay marked as unsaved, and its saves follow each other:
// JupyterLab takes it for saved (jupyterlab#17365), and of two saves at once it says that the file has changed on disk.
// And lists the folder work/ in the order of the course, where JupyterLab would put all folders, the labs, before Start_Here.md.
// And has the button of `manyhands.learner.fresh_kernel` run the cells above its cell, and then the cell.
// And begins without the file browser on a phone, where it would leave the page a strip of a few letters.
// And says how to see a prediction's form again: after a restart its model is gone, and JupyterLab shows an error.
// Written by hand as JupyterLab's loader wants it (a module-federation container), so that nothing needs to be compiled.
"use strict";

(() => {
  const EVERY_MS = 1000, PHONE_PX = 600, NO_MODEL = "Error displaying widget: model not found";
  const NARROW = "@media (max-width: 1100px) { .jp-MarkdownViewer .jp-RenderedHTMLCommon { :is(th, td) { padding-inline: 0.2em; } td:nth-child(2) { min-width: 8em; overflow-wrap: anywhere; } } }";
  const RUN_ABOVE = "manyhands-run-above", SEEN = `button.${RUN_ABOVE} { display: inline-block !important; }`;
  const careful = new WeakSet();  // the documents whose saves are seen to here
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

  function forms() {
    for (const output of document.querySelectorAll(".jp-OutputArea-output.jupyter-widgets"))
      if (output.textContent === NO_MODEL) output.textContent = "To see this question and your prediction again, run this cell.";
  }

  function markWhatIsUnsaved(context) {
    let saved;  // undefined where this came in the middle of a save
    context.saveState.connect((_, state) => {
      if (state === "started") saved = context.model.toString();  // what goes to the server is read right after this
      else if (state === "completed" && saved !== undefined && context.model.toString() !== saved) context.model.dirty = true;
    });
  }

  function saveInTurn(context) {  // a save that waits saves what is there at its turn, so one is enough
    const save = context.save.bind(context);
    let running, waiting;
    const start = () => (running = save().finally(() => { running = undefined; }));
    const next = () => { waiting = undefined; return context.save(); };  // somebody may have been told before, and saves already
    context.save = () => running ? (waiting ??= running.then(next, next)) : start();
  }

  function seeToSaves(app) {
    for (const {context} of app.shell.widgets("main")) {
      if (!context?.saveState || careful.has(context)) continue;
      careful.add(context);
      markWhatIsUnsaved(context);
      saveInTurn(context);
    }
  }

  async function runAbove(app, event) {  // the click has made its cell the active one
    if (!event.target.closest?.(`.jp-OutputArea-output button.${RUN_ABOVE}`)) return;
    const notebook = app.shell.currentWidget?.content, cell = notebook?.activeCell;
    if (!cell?.model.trusted || !cell.node.contains(event.target)) return;  // a notebook of somebody else may show such a button
    const ran = await app.commands.execute("notebook:run-all-above");
    const stayed = app.shell.currentWidget?.content === notebook && notebook.activeCell === cell;
    if (ran && stayed) await app.commands.execute("notebook:run-cell");
  }

  function inOrder(items) {  // Start_Here.md, then each unit's tutorial and lab, then everything else as before
    const place = ({name, type}) => name === "Start_Here.md" ? [-1, 0] : /^\d\d_/.test(name) ? [Number(name.slice(0, 2)), type === "directory" ? 1 : 0] : [100, 0];
    return items.map(item => [place(item), item]).sort(([a], [b]) => a[0] - b[0] || a[1] - b[1]).map(([, item]) => item);
  }

  function listInOrder(app) {
    const listing = [...app.shell.widgets("left")].find(widget => widget.id === "filebrowser")?.listing;
    if (!listing?.sort || !Array.isArray(listing._sortedItems)) return;  // a different JupyterLab, which keeps its own order
    const sort = listing.sort.bind(listing);
    listing.sort = state => {  // it draws the list afterwards
      sort(state);
      const byName = state.key === "name" && state.direction === "ascending";
      if (byName && listing.model.path.split(":").pop() === "work") listing._sortedItems = inOrder(listing._sortedItems);
    };
    listing.sort(listing.sortState);
  }

  function often(app) {
    words();
    forms();
    seeToSaves(app);
    renew(app);
  }

  function activate(app) {
    document.head.append(Object.assign(document.createElement("style"), {textContent: NARROW + SEEN}));
    document.addEventListener("click", event => runAbove(app, event));
    app.restored.then(() => {
      listInOrder(app);
      if (innerWidth < PHONE_PX) app.shell.collapseLeft?.();
    });
    setInterval(often, EVERY_MS, app);
  }

  const plugin = {id: "manyhands-lab:plugin", autoStart: true, activate};
  (window._JUPYTERLAB ??= {})["manyhands-lab"] = {
    init: () => undefined,
    get: async () => () => ({__esModule: true, default: plugin}),
  };
})();
