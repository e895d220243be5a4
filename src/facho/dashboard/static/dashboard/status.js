// Renews the page for customers in place, so that whoever has it read aloud, or has scrolled, stays where they are.
"use strict";

(() => {
  const main = document.querySelector("main");

  const renew = async () => {
    if (document.hidden) {
      return;
    }
    try {
      const answer = await fetch(location.href, {cache: "no-cache"});
      if (answer.ok) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        main.replaceChildren(...page.querySelector("main").childNodes);
      }
    } catch {
      // No connection: the time on the page says how old it is.
    }
  };

  setInterval(renew, Number(main.dataset.seconds) * 1000);
})();
