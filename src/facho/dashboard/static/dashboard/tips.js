// Shows the value behind a mark of a drawing: what `data-tip` says, beside the pointer or the focused mark.
"use strict";

(() => {
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.setAttribute("role", "tooltip");
  tip.hidden = true;
  document.body.append(tip);
  const pointer = { x: -1, y: -1 };
  let shown = null;

  const place = (x, y) => {
    const { offsetWidth: width, offsetHeight: height } = tip;
    const left = Math.min(Math.max(x - width / 2, 4), document.documentElement.clientWidth - width - 4);
    const top = y - height - 12 < 0 ? y + 18 : y - height - 12;
    tip.style.left = `${Math.max(left, 4)}px`;
    tip.style.top = `${top}px`;
  };

  const show = (mark, x, y) => {
    shown = mark;
    tip.textContent = mark.dataset.tip;
    tip.hidden = false;
    place(x, y);
  };

  const hide = () => {
    shown = null;
    tip.hidden = true;
  };

  document.addEventListener("pointerover", (event) => {
    const mark = event.target.closest("[data-tip]");
    if (mark) {
      show(mark, event.clientX, event.clientY);
    } else if (shown) {
      hide();
    }
  });
  document.addEventListener("pointermove", (event) => {
    [pointer.x, pointer.y] = [event.clientX, event.clientY];
    if (shown) {
      place(event.clientX, event.clientY);
    }
  });
  document.addEventListener("focusin", (event) => {
    const mark = event.target.closest("[data-tip]");
    if (mark) {
      const box = mark.getBoundingClientRect();
      show(mark, box.left + box.width / 2, box.top);
    }
  });
  document.addEventListener("focusout", hide);
  document.addEventListener("scroll", hide, { passive: true });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      hide();
    }
  });
  // A part that was replaced took its mark along; the pointer is still where it was.
  document.addEventListener("htmx:afterSwap", () => {
    if (shown && !shown.isConnected) {
      const mark = document.elementFromPoint(pointer.x, pointer.y)?.closest("[data-tip]");
      if (mark) {
        show(mark, pointer.x, pointer.y);
      } else {
        hide();
      }
    }
  });
})();
