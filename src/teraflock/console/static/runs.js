// One run: its log is appended and its losses are drawn again while it goes on. Hidden tabs do not ask.
"use strict";

const LOG_CHARACTERS_MAX = 500000;

function pause(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

async function until(over, milliseconds) {
  for (;;) {
    if (!document.hidden) {
      try {
        if (await over()) return;
      } catch {
        // The server restarts. The next turn asks again.
      }
    }
    await pause(milliseconds);
  }
}

async function asked(address) {
  const response = await fetch(address);
  if (!response.ok) throw new Error(response.status);
  return response.json();
}

(function log() {
  const box = document.getElementById("run-log");
  if (!box) return;
  const follow = document.getElementById("follow");
  let next = Number(box.dataset.next);
  const show = () => {
    box.classList.toggle("blank", !box.textContent);
    if (follow.checked) box.scrollTop = box.scrollHeight;
  };
  follow.addEventListener("change", show);
  show();
  until(async () => {
    const { text, next: end, over } = await asked(`${box.dataset.from}?offset=${next}`);
    if (text) {
      box.append(text);
      if (box.textContent.length > LOG_CHARACTERS_MAX) box.textContent = box.textContent.slice(-LOG_CHARACTERS_MAX / 2);
      show();
    }
    const ended = over && end === next;
    next = end;
    return ended;
  }, 1000);
})();

(function losses() {
  const box = document.getElementById("losses");
  const table = document.getElementById("losses-table");
  let drawn = "";
  until(async () => {
    const { points, over } = await asked(box.dataset.from);
    const now = JSON.stringify(points);
    if (!points.length) box.textContent = box.dataset.none;
    else if (now !== drawn) {
      plot(box, points.map(([step]) => step), [{ label: box.dataset.loss, values: points.map(([, loss]) => loss) }], { xLabel: box.dataset.step, decimals: 4, fromZero: false });
      cells(table, points.map(([step, loss]) => [String(step), String(loss)]));
    }
    drawn = now;
    return over;
  }, 5000);
})();
