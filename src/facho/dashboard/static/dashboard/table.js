// Tables by the keyboard, and what is selected: both outlive the refresh of the list. Without this script the boxes,
// links and forms of the page do the same.
"use strict";

(() => {
  const keys = document.getElementById("keys");
  const opener = document.getElementById("keys-open");
  const bulk = document.getElementById("bulk");
  const bulkBox = document.getElementById("bulk-box");
  const picked = new Set();
  let currentId = null;

  const rows = () => [...document.querySelectorAll("[data-rows] tbody tr")];
  const boxes = () => [...document.querySelectorAll('[data-rows] input[name="id"]')];
  const isTyping = (target) => target.closest("input:not([type=checkbox]), textarea, select, dialog, [contenteditable]");

  const tell = () => {
    const counter = document.getElementById("picked");
    if (counter) {
      counter.textContent = picked.size ? String(picked.size) : "";
    }
    const all = document.querySelector("[data-pick-all]");
    if (all) {
      const shown = boxes();
      all.hidden = false;
      all.checked = shown.length > 0 && shown.every((box) => box.checked);
    }
  };

  // Rows of other pages stay selected: they go with the form as hidden fields.
  const carry = () => {
    for (const old of bulk.querySelectorAll("input[data-carried]")) {
      old.remove();
    }
    const shown = new Set(boxes().map((box) => box.value));
    for (const id of picked) {
      if (!shown.has(id)) {
        const field = document.createElement("input");
        field.type = "hidden";
        field.name = "id";
        field.value = id;
        field.dataset.carried = "";
        bulk.append(field);
      }
    }
  };

  const setCurrent = (row) => {
    for (const each of rows()) {
      each.classList.toggle("current", each === row);
    }
    currentId = row ? row.dataset.row : null;
    row?.scrollIntoView({block: "nearest"});
  };

  const restore = () => {
    for (const box of boxes()) {
      box.checked = picked.has(box.value);
    }
    for (const row of rows()) {
      row.classList.toggle("current", currentId !== null && row.dataset.row === currentId);
    }
    tell();
  };

  const pick = (box, isPicked) => {
    box.checked = isPicked;
    if (isPicked) {
      picked.add(box.value);
    } else {
      picked.delete(box.value);
    }
  };

  document.addEventListener("change", (event) => {
    const target = event.target;
    if (target.matches("[data-pick-all]")) {
      boxes().forEach((box) => pick(box, target.checked));
    } else if (target.matches('[data-rows] input[name="id"]')) {
      pick(target, target.checked);
    } else {
      return;
    }
    if (picked.size && bulkBox) {
      bulkBox.open = true;
    }
    tell();
  });

  bulk?.addEventListener("submit", carry);

  const step = (by) => {
    const shown = rows();
    if (!shown.length) {
      return;
    }
    const at = shown.findIndex((row) => row.dataset.row === currentId);
    setCurrent(shown[Math.min(Math.max(at + by, 0), shown.length - 1)]);
  };

  const acts = {
    j: () => step(1),
    k: () => step(-1),
    x: () => {
      const box = rows().find((row) => row.dataset.row === currentId)?.querySelector('input[name="id"]');
      if (box) {
        box.click();
      }
    },
    Enter: () => rows().find((row) => row.dataset.row === currentId)?.querySelector("th a, td a")?.click(),
    "?": () => keys?.showModal(),
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) {
      return;
    }
    // On a link or a button Enter means that one.
    const isOwn = event.key === "Enter" && event.target.closest("a, button, summary");
    if (acts[event.key] && !isOwn) {
      event.preventDefault();
      acts[event.key]();
    }
  });

  if (opener && keys) {
    opener.hidden = false;
    opener.addEventListener("click", () => keys.showModal());
  }
  // A click elsewhere closes what hangs over the list.
  document.addEventListener("pointerdown", (event) => {
    for (const tool of document.querySelectorAll(".tools .tool[open]")) {
      if (!tool.contains(event.target)) {
        tool.open = false;
      }
    }
  });
  document.addEventListener("htmx:afterSwap", restore);
  restore();
})();
