// Shows work/Start_Here.md anew when it has changed on disk: JupyterLab itself reads a file once.
// Written by hand as JupyterLab's loader wants it (a module-federation container), so that nothing needs to be compiled.
"use strict";

(() => {
  const EVERY_MS = 1000;
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

  const plugin = {id: "manyhands-start-here:plugin", autoStart: true, activate: app => { setInterval(renew, EVERY_MS, app); }};
  (window._JUPYTERLAB ??= {})["manyhands-start-here"] = {
    init: () => undefined,
    get: async () => () => ({__esModule: true, default: plugin}),
  };
})();
