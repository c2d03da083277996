// What an instance or a project cost by day: elements with `data-chart` get the data from that address. A table has the same numbers.
"use strict";

async function load(box) {
  const response = await fetch(box.dataset.chart);
  if (!response.ok) return;
  const { days, currency } = await response.json();
  if (!days.length) {
    box.textContent = box.dataset.none;
    return;
  }
  const times = days.map(([day]) => Date.parse(`${day}T00:00:00Z`) / 1000);
  plot(box, times, [{ label: currency, values: days.map(([, micros]) => micros / 1e6), bars: true }], { time: true, height: 180 });
  cells(document.getElementById(box.dataset.table), days.map(([day, micros]) => [day, `${(micros / 1e6).toFixed(4)} ${currency}`]));
}

for (const box of document.querySelectorAll("[data-chart]")) load(box);
