// Chooses the browser's own time zone where nobody has chosen one yet.
"use strict";

(() => {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  for (const field of document.querySelectorAll("select[data-own-zone]")) {
    if (!field.value && [...field.options].some((option) => option.value === own)) {
      field.value = own;
    }
  }
})();
