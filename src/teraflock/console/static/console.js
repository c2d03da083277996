// Small helpers for all pages: live updates, copying, and the menu. No page needs it to work.
"use strict";

// Follow the project's events while the page is visible. A browser allows six connections to one server over all
// of its tabs, so hidden tabs close theirs.
(function live() {
  const target = document.querySelector("[data-live]");
  if (!target) return;
  let address = target.dataset.live; // the first time with the events since the page was read
  let stop = null;
  let timer = 0;
  function changed() {
    clearTimeout(timer);
    timer = setTimeout(() => htmx.trigger(document.body, "tera:change"), 150);
  }
  async function follow(signal) {
    const response = await fetch(address, { signal });
    if (!response.ok) throw new Error(response.status);
    const start = address.split("?")[0];
    if (address === start) changed(); // something may have happened in between
    address = start;
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      if (/^data:/m.test(value)) changed();
    }
  }
  async function open() {
    if (stop || document.hidden) return;
    const mine = (stop = new AbortController());
    while (!mine.signal.aborted) {
      try {
        await follow(mine.signal);
      } catch {
        if (mine.signal.aborted) return;
      }
      await new Promise((resolve) => setTimeout(resolve, 2000));
      changed();
    }
  }
  function close() {
    if (stop) stop.abort();
    stop = null;
  }
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      close();
    } else {
      open();
      changed();
    }
  });
  addEventListener("pagehide", close);
  open();
})();

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const text = document.getElementById(button.dataset.copy).textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    getSelection().selectAllChildren(document.getElementById(button.dataset.copy));
    return;
  }
  const before = button.textContent;
  button.textContent = button.dataset.done;
  setTimeout(() => (button.textContent = before), 1500);
});

// A second click does not send a form again. htmx sends its own forms, and handles their events first.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.method !== "post") return;
  if (form.dataset.sent) return event.preventDefault();
  form.dataset.sent = "yes";
  setTimeout(() => delete form.dataset.sent, 5000); // it was stopped, or it leads to a file
});
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
});

// When the session has expired, a form that is sent leads to the sign-in, and then back to its page: fill it in again.
// So does a part of the page that renews itself while somebody types, such as a quote. Only for the same member, and
// never with passwords, codes and private keys. Any other page forgets what was typed.
(function keepTyped() {
  const KEY = "tera:typed";
  const SECRET = "[type=password], [type=hidden], [type=file], [autocomplete=one-time-code], [data-secret]";
  const TYPED = `:is(input, select, textarea):not(${SECRET})`;
  const who = document.querySelector(".who")?.textContent;
  const fieldsOf = (form) => [...form.querySelectorAll(TYPED)].filter((field) => field.name);
  const isTick = (field) => field.type === "checkbox" || field.type === "radio";

  let typedIn = null; // the form that was changed last

  function keep(form) {
    if (!who || form?.method !== "post") return;
    const fields = fieldsOf(form).map((field) => [field.name, field.value, field.checked]);
    const page = { who, path: location.pathname, action: form.action, fields };
    sessionStorage.setItem(KEY, JSON.stringify(page));
  }

  document.addEventListener("submit", (event) => keep(event.target));
  document.addEventListener("input", (event) => (typedIn = event.target.form));
  document.addEventListener("htmx:beforeOnLoad", (event) => {
    if (event.detail.xhr.status === 401 && typedIn?.isConnected) keep(typedIn);
  });

  function fill(field, [, value, checked]) {
    if (isTick(field) ? field.checked === checked : field.value === value) return;
    if (isTick(field)) field.checked = checked;
    else field.value = value;
    const folded = field.closest("details");
    if (folded) folded.open = true;
    for (const kind of ["input", "change"]) field.dispatchEvent(new Event(kind, { bubbles: true }));
  }

  const sent = JSON.parse(sessionStorage.getItem(KEY));
  if (!sent) return;
  if (!who) return sessionStorage.setItem(KEY, JSON.stringify({ ...sent, isSignedOut: true }));
  sessionStorage.removeItem(KEY);
  if (!sent.isSignedOut || sent.who !== who || sent.path !== location.pathname) return;
  const form = [...document.forms].find((each) => each.action === sent.action);
  for (const field of form ? fieldsOf(form) : []) {
    const same = ([name, value]) => name === field.name && (!isTick(field) || value === field.value);
    const found = sent.fields.find(same);
    if (found) fill(field, found);
  }
})();

// On wide screens the menu is always open; on narrow ones it starts closed.
(function menu() {
  const found = document.getElementById("menu");
  if (!found) return;
  const wide = matchMedia("(min-width: 900px)");
  const fit = () => (found.open = wide.matches);
  wide.addEventListener("change", fit);
  fit();
})();

// On a phone, a strip of tabs is wider than the page: show the tab that is open.
for (const tab of document.querySelectorAll(".tabs [aria-current]")) {
  const strip = tab.parentElement;
  strip.scrollLeft = tab.offsetLeft - strip.offsetLeft - (strip.clientWidth - tab.offsetWidth) / 2;
}
