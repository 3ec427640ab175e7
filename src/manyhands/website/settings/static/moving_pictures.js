/* A picture that moves gets a button that stops it; it does not move at all for a reader who wants less motion. */
window.addEventListener("load", () => {
  for (const picture of document.querySelectorAll("article img[src$='.gif']")) {
    const still = Object.assign(document.createElement("canvas"), { width: picture.naturalWidth, height: picture.naturalHeight, hidden: true });
    const button = Object.assign(document.createElement("button"), { type: "button", className: "button quiet stop" });
    still.setAttribute("role", "img");
    still.setAttribute("aria-label", picture.alt);
    const show = moves => {
      if (!moves) still.getContext("2d").drawImage(picture, 0, 0);
      picture.hidden = !moves;
      still.hidden = moves;
      button.textContent = moves ? "Stop the picture" : "Let the picture move";
    };
    button.addEventListener("click", () => show(picture.hidden));
    picture.after(still, button);
    show(!matchMedia("(prefers-reduced-motion: reduce)").matches);
  }
});
