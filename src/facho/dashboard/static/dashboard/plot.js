// Moves and zooms plots by dragging, the wheel, keys and fingers, and shows the values under the pointer above the plot.
// What is seen while it moves is the old drawing, stretched; when it rests, the server draws the period that was chosen.
// The address follows, so that it can be shared. Without this script the links above a plot do the same.
"use strict";

(() => {
  const WIDTH = 1000;
  const SHORTEST_SECONDS = 300;
  const REST_MS = 250;
  const DRAG_PIXELS = 4;
  const areaOf = (event) => (event.target.closest ? event.target.closest(".plot-area[data-from]") : null);
  const pointers = new Map();
  let moved = null; // {area, from, to}: the period that is seen, until the server has drawn it
  let timer = 0;
  let dragged = null; // {area, from, to, x, isDrag}
  let isAsking = false;

  const periodOf = (area) => (moved && moved.area === area
    ? moved
    : { area, from: Number(area.dataset.from), to: Number(area.dataset.to) });

  const queryOf = (panel, from, to) => {
    const query = new URLSearchParams(panel.getAttribute("hx-get").split("?")[1]);
    query.delete("span");
    const text = (seconds) => `${new Date(Math.round(seconds) * 1000).toISOString().slice(0, 19)}Z`;
    query.set("from", text(from));
    query.set("to", text(to));
    return query.toString().replaceAll("%3A", ":").replaceAll("%2C", ",");
  };

  const load = (panel, query) => {
    const focused = panel.contains(document.activeElement) ? document.activeElement.id : "";
    window.history.replaceState(null, "", `?${query}`);
    isAsking = true;
    window.htmx.ajax("GET", `${panel.getAttribute("hx-get").split("?")[0]}?${query}`, { target: panel, swap: "outerHTML" })
      .then(() => {
        moved = null;
        if (focused) {
          document.getElementById(focused)?.focus({ preventScroll: true });
        }
      });
    isAsking = false;
  };

  const show = (area, from, to) => {
    const now = Number(area.dataset.now);
    const length = Math.max(to - from, SHORTEST_SECONDS);
    const end = Math.min(from + length, now);
    moved = { area, from: end - length, to: end };
    const [from0, to0] = [Number(area.dataset.from), Number(area.dataset.to)];
    const scale = (to0 - from0) / length;
    const shift = (from0 - moved.from) / length * WIDTH;
    const panel = area.closest("[data-plot]");
    for (const drawing of panel.querySelectorAll(".plot .moves")) {
      drawing.setAttribute("transform", `translate(${shift} 0) scale(${scale} 1)`);
    }
    panel.classList.add("moving");
    clearTimeout(timer);
    timer = setTimeout(() => load(panel, queryOf(panel, moved.from, moved.to)), REST_MS);
  };

  const zoom = (area, factor, x) => {
    const { from, to } = periodOf(area);
    const box = area.getBoundingClientRect();
    const share = x === undefined ? 0.5 : Math.min(Math.max((x - box.left) / box.width, 0), 1);
    const length = Math.max((to - from) * factor, SHORTEST_SECONDS);
    const middle = from + (to - from) * share;
    show(area, middle - length * share, middle + length * (1 - share));
  };

  const pan = (area, share) => {
    const { from, to } = periodOf(area);
    show(area, from + (to - from) * share, to + (to - from) * share);
  };

  const showValues = (area, column) => {
    const line = area.closest(".plot").querySelector(".plot-values");
    const hint = window.matchMedia("(pointer: coarse)").matches ? line.dataset.touch : line.dataset.hint;
    const text = column ? column.dataset.values.split("\n").join(" · ") : hint;
    if (line.textContent !== text) {
      line.textContent = text;
      line.classList.toggle("hint", !column);
    }
  };

  const distance = () => {
    const [one, two] = [...pointers.values()];
    return Math.max(Math.abs(one.x - two.x), 20);
  };

  document.addEventListener("pointerdown", (event) => {
    const area = areaOf(event);
    if (!area || event.button) {
      return;
    }
    pointers.set(event.pointerId, { x: event.clientX });
    const { from, to } = periodOf(area);
    dragged = { area, from, to, x: event.clientX, isDrag: false, apart: pointers.size > 1 ? distance() : 0 };
    showValues(area, event.target.closest(".column"));
  });

  document.addEventListener("pointermove", (event) => {
    const area = areaOf(event);
    if (area && event.pointerType !== "touch") {
      showValues(area, dragged?.isDrag ? null : event.target.closest(".column"));
    }
    if (!dragged || !pointers.has(event.pointerId)) {
      return;
    }
    pointers.set(event.pointerId, { x: event.clientX });
    const box = dragged.area.getBoundingClientRect();
    const length = dragged.to - dragged.from;
    if (pointers.size > 1 && dragged.apart) {
      dragged.isDrag = true;
      const [one, two] = [...pointers.values()];
      const share = Math.min(Math.max(((one.x + two.x) / 2 - box.left) / box.width, 0), 1);
      const wanted = Math.max(length * dragged.apart / distance(), SHORTEST_SECONDS);
      const middle = dragged.from + length * share;
      show(dragged.area, middle - wanted * share, middle + wanted * (1 - share));
      return;
    }
    const by = event.clientX - dragged.x;
    if (dragged.isDrag || Math.abs(by) > DRAG_PIXELS) {
      dragged.isDrag = true;
      const seconds = by / box.width * length;
      show(dragged.area, dragged.from - seconds, dragged.to - seconds);
    }
  });

  for (const release of ["pointerup", "pointercancel"]) {
    document.addEventListener(release, (event) => {
      pointers.delete(event.pointerId);
      if (!pointers.size) {
        // A mark under the finger is not followed after a drag.
        setTimeout(() => { dragged = null; }, 0);
      }
    });
  }

  document.addEventListener("click", (event) => {
    if (dragged?.isDrag && areaOf(event)) {
      event.preventDefault();
      return;
    }
    const link = event.target.closest("[data-plot-link]");
    const panel = link?.closest("[data-plot]");
    if (panel && window.htmx && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      load(panel, link.getAttribute("href").slice(1).split("#")[0]);
    }
  });

  document.addEventListener("dragstart", (event) => {
    if (areaOf(event)) {
      event.preventDefault();
    }
  });

  document.addEventListener("dblclick", (event) => {
    const area = areaOf(event);
    if (area) {
      event.preventDefault();
      zoom(area, 0.5, event.clientX);
    }
  });

  // A plain wheel scrolls the page, unless the plot was clicked or has the focus.
  document.addEventListener("wheel", (event) => {
    const area = areaOf(event);
    if (!area || !(event.ctrlKey || document.activeElement === area)) {
      return;
    }
    event.preventDefault();
    const across = event.shiftKey ? event.deltaX || event.deltaY : event.deltaX;
    if (Math.abs(across) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
      pan(area, across / 1000);
    } else {
      zoom(area, Math.min(Math.max(1.002 ** event.deltaY, 0.5), 2), event.clientX);
    }
  }, { passive: false });

  const KEYS = {
    ArrowLeft: (area) => pan(area, -0.2),
    ArrowRight: (area) => pan(area, 0.2),
    "+": (area) => zoom(area, 0.5),
    "=": (area) => zoom(area, 0.5),
    "-": (area) => zoom(area, 2),
    End: (area) => {
      const { from, to } = periodOf(area);
      const now = Number(area.dataset.now);
      show(area, now - (to - from), now);
    },
  };
  document.addEventListener("keydown", (event) => {
    const area = areaOf(event);
    if (area && event.target === area && KEYS[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      KEYS[event.key](area);
    }
  });

  document.addEventListener("pointerout", (event) => {
    const area = areaOf(event);
    if (area && !(event.relatedTarget && area.contains(event.relatedTarget))) {
      showValues(area, null);
    }
  });

  const hint = () => {
    for (const area of document.querySelectorAll(".plot-area[data-from]")) {
      showValues(area, null);
    }
  };
  hint();
  document.addEventListener("htmx:afterSwap", hint);

  // A refresh would throw away what is being chosen.
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (moved && !isAsking && event.target.hasAttribute("data-plot")) {
      event.preventDefault();
    }
  });
})();
