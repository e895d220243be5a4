// Asks the browser for a passkey, or to make one, and sends what it says with the form around the button.
"use strict";

(() => {
  const read = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (sign) => sign.charCodeAt(0));
  const write = (buffer) =>
    btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  const withId = (named) => ({ ...named, id: read(named.id) });

  const ask = async (button) => {
    if (button.dataset.passkeyOptions) {
      const options = JSON.parse(button.dataset.passkeyOptions);
      const publicKey = { ...options, challenge: read(options.challenge), user: withId(options.user) };
      publicKey.excludeCredentials = options.excludeCredentials.map(withId);
      return navigator.credentials.create({ publicKey });
    }
    const answer = await fetch(button.dataset.passkey, { headers: { Accept: "application/json" } });
    const options = await answer.json();
    const publicKey = { ...options, challenge: read(options.challenge) };
    publicKey.allowCredentials = options.allowCredentials.map(withId);
    return navigator.credentials.get({ publicKey });
  };

  const shape = (credential) => {
    const response = {};
    for (const name of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) {
      if (credential.response[name]) response[name] = write(credential.response[name]);
    }
    return JSON.stringify({ id: credential.id, rawId: credential.id, type: credential.type, response });
  };

  for (const button of document.querySelectorAll("button[data-passkey], button[data-passkey-options]")) {
    // Without TLS, or under a bare address, browsers have none.
    button.hidden = !window.PublicKeyCredential;
    button.addEventListener("click", async () => {
      const form = button.closest("form");
      const problem = form.querySelector("[role=alert][hidden], [role=alert].no-passkey");
      // What the passkey stands for need not be filled in.
      const needed = [...form.elements].filter((field) => field.required && !field.closest("[data-instead]"));
      if (!needed.every((field) => field.reportValidity())) return;
      problem.hidden = true;
      problem.classList.add("no-passkey");
      button.disabled = true;
      try {
        form.elements.answer.value = shape(await ask(button));
        form.submit();
      } catch {
        problem.hidden = button.disabled = false;
      }
    });
  }
})();
