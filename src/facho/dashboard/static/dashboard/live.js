// Keeps the parts of a page that refresh themselves honest and out of the way: a lost connection is said,
// nothing is replaced while nobody looks or while someone selects text or holds a button in it, and what was typed early
// is heard. A part that has not changed is not sent again: each request names the version that is shown, the times
// in it are counted on here, and the badge of the menu comes with every answer.
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

  // What someone opened to read stays open.
  let opened = [];
  document.addEventListener("htmx:beforeSwap", () => {
    opened = [...document.querySelectorAll("[data-live] details[open][id]")].map((details) => details.id);
  });
  document.addEventListener("htmx:afterSwap", () => {
    for (const details of opened.map((id) => document.getElementById(id)).filter(Boolean)) {
      details.open = true;
    }
  });

  // By id, because a part may be replaced as a whole.
  const shown = new Map();
  const versionOf = (part, path) => {
    const version = shown.get(part.id);
    return version?.path === path && version.etag ? version.etag : '"none"';
  };

  document.addEventListener("htmx:configRequest", (event) => {
    const part = event.detail.elt;
    if (part.hasAttribute("data-live")) {
      event.detail.headers["If-None-Match"] = versionOf(part, event.detail.path);
    }
  });

  document.addEventListener("htmx:beforeSwap", (event) => {
    const {xhr, requestConfig} = event.detail;
    const part = requestConfig.elt;
    if (!part.hasAttribute("data-live")) {
      shown.clear();
      return;
    }
    if (xhr.status === 304 || part.contains(held)) {
      event.detail.shouldSwap = false;
    } else {
      shown.set(part.id, {path: requestConfig.path, etag: xhr.getResponseHeader("ETag")});
    }
  });

  document.addEventListener("unseen-outages", (event) => {
    const badge = document.getElementById("unseen-outages");
    badge.hidden = event.detail.value === 0;
    badge.classList.toggle("badge", event.detail.value > 0);
    badge.firstElementChild.textContent = event.detail.value;
  });

  const serverAhead = Number(document.querySelector('meta[name="server-time"]').content) * 1000 - Date.now();

  const lengthOf = (seconds) => {
    const [size, unit] = [[86400, "d"], [3600, "h"], [60, "min"]].find(([each]) => seconds >= 2 * each) || [1, "s"];
    return `${Math.floor(seconds / size)} ${unit}`;
  };

  const wordsOf = ({dateTime, dataset}, now) => {
    const seconds = Math.floor((now - Date.parse(dateTime)) / 1000);
    if (dataset.before === undefined) {
      return dataset.tick.replace("{}", lengthOf(Math.max(seconds, 0)));
    }
    const words = seconds <= -1 ? dataset.before : seconds < 2 ? dataset.now : dataset.tick;
    return words.replace("{}", lengthOf(Math.abs(seconds)));
  };

  setInterval(() => {
    if (document.hidden || !window.getSelection().isCollapsed || document.body.classList.contains("stale")) {
      return;
    }
    for (const time of document.querySelectorAll("time[data-tick]")) {
      const words = wordsOf(time, Date.now() + serverAhead);
      if (time.textContent !== words) {
        time.textContent = words;
      }
    }
  }, 1000);

  for (const failure of ["htmx:sendError", "htmx:timeout", "htmx:responseError"]) {
    document.addEventListener(failure, () => setLost(true));
  }
  document.addEventListener("htmx:afterRequest", (event) => event.detail.successful && setLost(false));

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
