// Keeps the parts of a page that refresh themselves honest and out of the way: a lost connection is said,
// nothing is replaced while nobody looks or while someone selects text or holds a button in it, and what was typed early
// is heard.
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

  // A click is a press and a release on the same button: one that is replaced in between hears none.
  let held = null;
  for (const press of ["pointerdown", "keydown"]) {
    document.addEventListener(press, (event) => { held = event.target; }, true);
  }
  for (const release of ["pointerup", "pointercancel", "keyup"]) {
    document.addEventListener(release, () => { held = null; }, true);
  }
  window.addEventListener("blur", () => { held = null; });

  document.addEventListener("htmx:beforeRequest", (event) => {
    const part = event.target;
    if (part.hasAttribute("data-live") && (document.hidden || isSelectingIn(part) || part.contains(held))) {
      event.preventDefault();
    }
  });

  document.addEventListener("htmx:beforeSwap", (event) => {
    const part = event.detail.requestConfig.elt;
    if (part.hasAttribute("data-live") && part.contains(held)) {
      event.detail.shouldSwap = false;
    }
  });

  for (const failure of ["htmx:sendError", "htmx:timeout", "htmx:responseError"]) {
    document.addEventListener(failure, () => setLost(true));
  }
  document.addEventListener("htmx:afterSwap", () => setLost(false));

  const isChanged = (field) => {
    if (field.options) {
      const preset = [...field.options].find((option) => option.defaultSelected) || field.options[0];
      return preset && !preset.selected;
    }
    const isTick = field.type === "checkbox" || field.type === "radio";
    return isTick ? field.checked !== field.defaultChecked : field.value !== field.defaultValue;
  };

  // On a slow line people type before htmx listens: without this the page would wait for what is already there.
  document.addEventListener("htmx:load", () => {
    for (const form of document.forms) {
      const field = [...form.querySelectorAll("input, select")].find(isChanged);
      field?.dispatchEvent(new Event("input", {bubbles: true}));
      field?.dispatchEvent(new Event("change", {bubbles: true}));
    }
  }, {once: true});
})();
