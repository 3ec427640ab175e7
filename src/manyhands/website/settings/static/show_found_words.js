/* Marks the words that were searched for on the page that was found, and opens the folds that contain one. The theme loads
   Sphinx's search on every page, and for this reason Sphinx takes every page for the search page and marks nothing itself. */
window.addEventListener("load", () => {
  if (document.getElementById("search-results")) return;
  SphinxHighlight.highlightSearchWords();
  setTimeout(() => {  // Sphinx marks them 10 ms later
    for (const found of document.querySelectorAll("details .highlighted"))
      for (let fold = found.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    for (const found of document.querySelectorAll(".until-predicted .highlighted"))
      found.closest(".until-predicted").classList.remove("until-predicted");
    document.querySelector("article .highlighted")?.scrollIntoView({ block: "center" });
  }, 100);
});
