// Copies the text of a field; where the browser forbids it, the text is selected to be copied by hand.
"use strict";

(() => {
  for (const button of document.querySelectorAll("button[data-copy]")) {
    button.addEventListener("click", async () => {
      const field = document.getElementById(button.dataset.copy);
      field.focus();
      field.select();
      let isCopied = true;
      try {
        await navigator.clipboard.writeText(field.value);
      } catch {
        // Without HTTPS there is no clipboard; the old command still copies what is selected.
        isCopied = document.execCommand("copy");
      }
      button.textContent = isCopied ? button.dataset.copied : button.textContent;
    });
  }
})();
