// The search in the head of every page: "/" goes there, the arrows go through what was found, Escape closes it.
"use strict";

(() => {
  const field = document.getElementById("search-text");
  const found = document.getElementById("search-found");
  if (!field || !found) {
    return;
  }
  const form = field.closest("form");

  const links = () => [...found.querySelectorAll("a")];

  const isTyping = (target) => target.closest("input, textarea, select, [contenteditable]");

  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey && !isTyping(event.target)) {
      event.preventDefault();
      field.focus();
      field.select();
    }
  });

  form.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      found.replaceChildren();
      field.focus();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const stops = [field, ...links()];
      const step = event.key === "ArrowDown" ? 1 : -1;
      const next = stops[stops.indexOf(document.activeElement) + step];
      if (next) {
        event.preventDefault();
        next.focus();
      }
    }
  });

  document.addEventListener("pointerdown", (event) => {
    if (!form.contains(event.target)) {
      found.replaceChildren();
    }
  });
  form.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !form.contains(event.relatedTarget)) {
      found.replaceChildren();
    }
  });
})();
