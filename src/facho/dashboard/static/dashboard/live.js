// Keeps the parts of a page that refresh themselves honest and out of the way: a lost connection is said,
// and nothing is replaced while nobody looks or while someone selects text in it.
"use strict";

(() => {
  const banner = document.getElementById("connection-lost");

  const setLost = (isLost) => {
    document.body.classList.toggle("stale", isLost);
    if (banner.hidden === isLost) {
      banner.hidden = !isLost;
    }
  };

  const isSelectingIn = (part) => {
    const selection = window.getSelection();
    return !selection.isCollapsed && part.contains(selection.anchorNode);
  };

  document.addEventListener("htmx:beforeRequest", (event) => {
    const part = event.target;
    if (part.hasAttribute("data-live") && (document.hidden || isSelectingIn(part))) {
      event.preventDefault();
    }
  });

  for (const failure of ["htmx:sendError", "htmx:timeout", "htmx:responseError"]) {
    document.addEventListener(failure, () => setLost(true));
  }
  document.addEventListener("htmx:afterSwap", () => setLost(false));
})();
