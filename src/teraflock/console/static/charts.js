// Charts: elements with `data-chart` get the data from that address and draw it with uPlot. A table has the same numbers.
"use strict";

const DAY = 86400;

function colours() {
  const style = getComputedStyle(document.documentElement);
  return { line: style.getPropertyValue("--accent"), grid: style.getPropertyValue("--line"), text: style.getPropertyValue("--soft") };
}

function draw(box, days, currency) {
  const { line, grid, text } = colours();
  const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { show: false } };
  const times = days.map(([day]) => Date.parse(`${day}T00:00:00Z`) / 1000);
  const amounts = days.map(([, micros]) => micros / 1e6);
  const options = {
    width: box.clientWidth,
    height: 180,
    legend: { show: false },
    cursor: { show: false },
    tzDate: (stamp) => uPlot.tzDate(new Date(stamp * 1000), "Etc/UTC"),
    scales: { x: { range: () => [Math.min(times[0], times.at(-1) - 13 * DAY) - DAY / 2, times.at(-1) + DAY / 2] }, y: { range: (_, least, most) => [0, most * 1.15 || 1] } },
    axes: [axis, { ...axis, size: 64, values: (_, ticks) => ticks.map((each) => each.toFixed(2)) }],
    series: [{}, { label: currency, fill: line, stroke: line, paths: uPlot.paths.bars({ size: [0.6, 40] }), points: { show: false } }],
  };
  const chart = new uPlot(options, [times, amounts], box);
  new ResizeObserver(() => chart.setSize({ width: box.clientWidth, height: 180 })).observe(box);
}

async function load(box) {
  const response = await fetch(box.dataset.chart);
  if (!response.ok) return;
  const { days, currency } = await response.json();
  const table = document.getElementById(box.dataset.table);
  if (!days.length) {
    box.textContent = box.dataset.none;
    return;
  }
  draw(box, days, currency);
  for (const [day, micros] of days) {
    const row = table.insertRow();
    row.insertCell().textContent = day;
    const cell = row.insertCell();
    cell.className = "number";
    cell.textContent = `${(micros / 1e6).toFixed(4)} ${currency}`;
  }
}

for (const box of document.querySelectorAll("[data-chart]")) load(box);
