// Shows one picture of the wall view after the other. A press on pause, a link or a key takes over.
"use strict";

(() => {
  const SECONDS_PER_PICTURE = 12;
  const links = [...document.querySelectorAll("#wall-slides a")];
  const pause = document.getElementById("wall-pause");
  const clock = document.getElementById("wall-clock");
  const full = document.getElementById("wall-full");
  const timeForm = {hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone: clock.dataset.zone};
  let shown = Math.max(links.findIndex((link) => link.hash === location.hash), 0);
  let left = SECONDS_PER_PICTURE;

  const isPaused = () => pause.getAttribute("aria-pressed") === "true";

  const show = (number) => {
    shown = (number + links.length) % links.length;
    left = SECONDS_PER_PICTURE;
    refresh();
  };

  const refresh = () => {
    for (const [number, link] of links.entries()) {
      const slide = document.querySelector(link.hash);
      slide.classList.toggle("shown", number === shown);
      if (number === shown) {
        link.setAttribute("aria-current", "true");
      } else {
        link.removeAttribute("aria-current");
      }
    }
  };

  const tick = () => {
    clock.textContent = new Date().toLocaleTimeString(document.documentElement.lang, timeForm);
    if (!isPaused()) {
      left -= 1;
      if (left <= 0) {
        show(shown + 1);
      }
    }
  };

  const togglePause = () => pause.setAttribute("aria-pressed", String(!isPaused()));

  const toggleFull = () => {
    if (document.fullscreenElement) {
      document.exitFullscreen();
    } else {
      document.documentElement.requestFullscreen();
    }
  };

  for (const [number, link] of links.entries()) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      history.replaceState(null, "", link.hash);
      show(number);
    });
  }
  pause.addEventListener("click", togglePause);
  full.addEventListener("click", toggleFull);
  full.hidden = !document.fullscreenEnabled;
  document.addEventListener("keydown", (event) => {
    const acts = {ArrowRight: () => show(shown + 1), ArrowLeft: () => show(shown - 1), f: toggleFull};
    if (!event.ctrlKey && !event.metaKey && !event.altKey && acts[event.key]) {
      acts[event.key]();
    }
  });
  document.addEventListener("htmx:afterSwap", refresh);
  document.body.classList.add("wall");
  refresh();
  tick();
  setInterval(tick, 1000);
})();
