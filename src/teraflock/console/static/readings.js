// Charts of readings, of a host or an instance. A box names its readings, and what to divide them by. With one reading it
// has a line for each card, otherwise a line for each reading. The last hour is requested again every ten seconds.
"use strict";

// Series of one card that followed each other become one. Times that a card lacks are gaps.
function byCard(series, name, scale) {
  const cards = new Map();
  for (const each of series) {
    if (!each.values[name]) continue;
    const points = cards.get(each.slot) || new Map();
    each.times.forEach((time, at) => {
      const value = each.values[name][at];
      if (value != null) points.set(time, value / scale);
    });
    if (points.size) cards.set(each.slot, points);
  }
  return cards;
}

function linesOf(box, series) {
  const names = box.dataset.reading.split(" ");
  const labels = box.dataset.labels ? box.dataset.labels.split("|") : [];
  return names.flatMap((name, at) =>
    [...byCard(series, name, Number(box.dataset.scale))].map(([slot, points]) => ({ label: labels[at] || slot.slice(0, 16), points })),
  );
}

function drawReadings(box, series, ofDay) {
  const lines = linesOf(box, series);
  const times = [...new Set(lines.flatMap(({ points }) => [...points.keys()]))].sort((left, right) => left - right);
  if (!times.length) return false;
  const drawn = lines.map(({ label, points }) => ({ label, values: times.map((time) => points.get(time) ?? null) }));
  plot(box, times, drawn, { time: true, ofDay, height: 180, decimals: 1, top: Number(box.dataset.top || 0) });
  return true;
}

// A row for each card or reading: the mean of every chart.
function means(table, boxes, series) {
  const rows = new Map();
  boxes.forEach((box, at) => {
    for (const { label, points } of linesOf(box, series)) {
      const row = rows.get(label) || boxes.map(() => "–");
      row[at] = mean([...points.values()]);
      rows.set(label, row);
    }
  });
  cells(table, [...rows].map(([label, row]) => [label, ...row]));
}

function mean(values) {
  return values.length ? (values.reduce((sum, each) => sum + each, 0) / values.length).toFixed(1) : "–";
}

(function readings() {
  const periods = document.getElementById("periods");
  if (!periods) return;
  const boxes = [...document.querySelectorAll("[data-reading]")];
  let period = "hour";
  async function load() {
    const response = await fetch(`${periods.dataset.from}?period=${period}`).catch(() => null);
    if (!response?.ok) return;
    const found = await response.json();
    if (found.period !== period) return;
    const isEmpty = !found.series.some((each) => each.times.length);
    document.getElementById("readings").hidden = isEmpty;
    document.getElementById("readings-none").hidden = !isEmpty;
    for (const box of boxes) if (!drawReadings(box, found.series, period !== "month")) box.textContent = "–";
    means(document.getElementById("means"), boxes, found.series);
  }
  periods.addEventListener("click", (event) => {
    const button = event.target.closest("[data-period]");
    if (!button) return;
    period = button.dataset.period;
    for (const each of periods.children) each.setAttribute("aria-pressed", String(each === button));
    load();
  });
  setInterval(() => period === "hour" && !document.hidden && load(), 10000);
  load();
})();
