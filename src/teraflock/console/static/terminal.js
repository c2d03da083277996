// The terminal: xterm.js over plain requests. Output is one stream that continues at a place; input is sent in order.
"use strict";

const box = document.getElementById("terminal");
const state = document.getElementById("terminal-state");

// The content-security policy refuses styles that scripts add. Those of xterm.js get the page's nonce, and its style
// attributes are set through the object model, which the policy allows.
const make = document.createElement.bind(document);
document.createElement = (name, options) => {
  const made = make(name, options);
  if (name === "style") made.nonce = box.dataset.nonce;
  return made;
};
const setAttribute = Element.prototype.setAttribute;
Element.prototype.setAttribute = function (name, value) {
  if (name === "style") this.style.cssText = value;
  else setAttribute.call(this, name, value);
};

const { Terminal } = await import(box.dataset.xterm);
const { FitAddon } = await import(box.dataset.fit);

const term = new Terminal({
  cursorBlink: true,
  fontFamily: getComputedStyle(document.documentElement).getPropertyValue("--mono"),
  fontSize: 14,
  scrollback: 10000,
  theme: { background: "#101218", foreground: "#e9ecf2", cursor: "#a5a8ff" },
});
const fit = new FitAddon();
term.loadAddon(fit);
term.open(box);
fit.fit();
term.focus();
window.teraTerminal = term; // for tests

let id = "";
let place = 0;
let ended = false;

// An error comes as a part of a page, and a session that ended as 401 instead of a redirection.
const PART = { "HX-Request": "true" };
function post(path, fields) {
  return fetch(box.dataset.terminals + path, {
    method: "POST",
    headers: { ...PART, "Content-Type": "application/x-www-form-urlencoded", "X-CSRF-Token": box.dataset.csrf },
    body: new URLSearchParams(fields),
  });
}

class Refused extends Error {}

// The server answered with an error. Without a session the page is loaded again, which asks to sign in.
async function refused(response) {
  if (response.status === 401) location.reload();
  if (response.status >= 500) throw new Error(response.status);
  const said = new DOMParser().parseFromString(await response.text(), "text/html").body.textContent;
  throw new Refused(said.replace(/\s+/g, " ").trim());
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

async function open() {
  const response = await post("", { columns: term.cols, rows: term.rows });
  if (!response.ok) await refused(response);
  id = (await response.json()).id;
  place = 0;
}

// Read until the shell ends. Waits for xterm.js to draw each piece, so that the server sends no faster than it draws.
async function read() {
  const response = await fetch(`${box.dataset.terminals}/${id}/output?from=${place}`, { headers: PART });
  if (response.status === 404) return false;
  if (!response.ok) await refused(response);
  state.textContent = box.dataset.connected;
  const reader = response.body.getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return true;
    place += value.length;
    await new Promise((resolve) => term.write(value, resolve));
  }
}

async function live() {
  let delay = 500;
  state.textContent = box.dataset.connecting;
  for (;;) {
    try {
      if (!id) {
        await open();
        if (ended === "lost") term.writeln(`\r\n\x1b[33m${box.dataset.anew}\x1b[0m`);
        ended = false;
      }
      const before = place;
      const there = await read();
      delay = 500;
      if (!there) {
        id = "";
        ended = "lost";
      } else if (place === before) {
        id = "";
        ended = true;
        state.textContent = box.dataset.ended;
        return;
      }
    } catch (problem) {
      state.textContent = problem instanceof Refused && problem.message ? problem.message : box.dataset.lost;
      await pause(delay);
      delay = Math.min(delay * 2, 5000);
    }
  }
}

// Input is sent in order: one request at a time, with all that was typed meanwhile. It is cut into pieces of bytes, not
// of characters: a character outside the basic plane has two halves in a string, and half of one is lost.
const PIECE = 98304;
let waiting = "";
let sending = false;
async function sendBytes(bytes) {
  for (let at = 0; at < bytes.length; at += PIECE) {
    let binary = "";
    for (const each of bytes.subarray(at, at + PIECE)) binary += String.fromCharCode(each);
    await post(`/${id}/input`, { data: btoa(binary) });
  }
}
async function send(text) {
  if (ended === true) {
    if (text === "\r") live();
    return;
  }
  waiting += text;
  if (sending) return;
  sending = true;
  while (waiting && id) {
    const bytes = new TextEncoder().encode(waiting);
    waiting = "";
    try {
      await sendBytes(bytes);
    } catch {
      break; // the connection is lost: what was typed is not repeated blindly
    }
  }
  waiting = "";
  sending = false;
}

term.onData(send);
term.onResize(({ cols, rows }) => id && post(`/${id}/size`, { columns: cols, rows }).catch(() => {}));
new ResizeObserver(() => fit.fit()).observe(box);
live();
