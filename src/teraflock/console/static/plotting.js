// Charts of the pages Offers, Plan and Costs: one function around uPlot that takes its colours from the stylesheet.
"use strict";

const plotted = new WeakMap();

function palette() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  return {
    grid: colour("--line"),
    text: colour("--soft"),
    lines: [colour("--accent"), colour("--good"), colour("--warn"), colour("--bad"), colour("--soft")],
  };
}

// `series`: [{ label, values, points, bars }]. A value that is null leaves a gap.
function plot(box, xs, series, { time = false, log = false, xLabel = "", yLabel = "", decimals = 2, height = 240 } = {}) {
  box.replaceChildren();
  const { grid, text, lines } = palette();
  const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { show: false }, labelSize: 20, labelFont: "12px sans-serif" };
  const most = Math.max(...series.flatMap((each) => each.values));
  const format = most < 1 ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: decimals };
  const digits = (value) => (value == null ? "" : value.toLocaleString("en", format));
  const options = {
    width: box.clientWidth,
    height,
    tzDate: (stamp) => uPlot.tzDate(new Date(stamp * 1000), "Etc/UTC"),
    scales: { x: { time, range: () => pad(Math.min(...xs), Math.max(...xs), time) }, y: log ? { distr: 3 } : { range: (_, least, most) => [0, most * 1.1 || 1] } },
    axes: [{ ...axis, label: xLabel || undefined }, { ...axis, size: 70, label: yLabel || undefined, values: (_, ticks) => ticks.map(digits) }],
    series: [{ label: xLabel || "", value: time ? (_, stamp) => (stamp ? new Date(stamp * 1000).toISOString().slice(0, 10) : "") : (_, value) => digits(value) }],
  };
  series.forEach((each, index) => {
    const stroke = lines[(each.colour ?? index) % lines.length];
    const one = { label: each.label, stroke, width: 2, value: (_, value) => digits(value) };
    if (each.points) Object.assign(one, { paths: () => null, points: { show: true, size: each.size || 8, fill: stroke, stroke } });
    if (each.bars) Object.assign(one, { fill: stroke, paths: uPlot.paths.bars({ size: [0.6, 40] }), points: { show: false } });
    options.series.push(one);
  });
  const chart = new uPlot(options, [xs, ...series.map((each) => each.values)], box);
  plotted.get(box)?.disconnect();
  const observer = new ResizeObserver(() => chart.setSize({ width: box.clientWidth, height }));
  observer.observe(box);
  plotted.set(box, observer);
}

function pad(least, most, time) {
  const margin = time ? Math.max((most - least) * 0.04, 43200) : (most - least) * 0.04 || Math.abs(most) * 0.1 || 1;
  return [Math.max(least - margin, least < 0 ? -Infinity : 0), most + margin];
}

function cells(table, rows) {
  table.replaceChildren();
  for (const row of rows) {
    const line = table.insertRow();
    row.forEach((text, index) => {
      const cell = line.insertCell();
      if (index) cell.className = "number";
      cell.textContent = text;
    });
  }
}
