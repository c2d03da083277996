// Charts of the pages Offers, Plan and Costs: one function around uPlot that takes its colours from the stylesheet.
"use strict";

const plotted = new WeakMap();
const DAY = 86400;
const DAYS_SHOWN = 14;

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
function plot(box, xs, series, { time = false, log = false, xLabel = "", yLabel = "", decimals = 2, height = 240, fromZero = true, ofDay = false, top = 0 } = {}) {
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
    scales: { x: { time, range: () => rangeOf(xs, time, ofDay, series.some((each) => each.bars)) }, y: log ? { distr: 3 } : { range: (_, least, most) => (fromZero ? [0, top || most * 1.1 || 1] : around(least, most)) } },
    axes: [{ ...axis, label: xLabel || undefined, ...(time ? { values: (_, ticks, __, ___, step) => ticks.map((each) => (ofDay ? clock(each) : day(each, step))), space: 60, ...(ofDay ? {} : { incrs: STEPS }) } : {}) }, { ...axis, size: 70, label: yLabel || undefined, values: (_, ticks) => ticks.map(digits) }],
    series: [{ label: xLabel || (time ? "UTC" : ""), value: time ? (_, stamp) => (stamp ? new Date(stamp * 1000).toISOString().replace("T", " ").slice(0, ofDay ? 19 : 10) : "") : (_, value) => digits(value) }],
  };
  series.forEach((each, index) => {
    const stroke = lines[(each.colour ?? index) % lines.length];
    const one = { label: each.label, stroke, width: 2, value: (_, value) => digits(value), points: { show: xs.length < 3 } };
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

// Ticks of days: whole days, weeks, months and years.
const STEPS = [1, 2, 7, 14, 30, 61, 91, 182, 365, 730, 1826].map((days) => days * DAY);

function day(stamp, step) {
  const text = new Date(stamp * 1000).toISOString();
  return step >= 365 * DAY ? text.slice(0, 4) : step >= 28 * DAY ? text.slice(0, 7) : text.slice(5, 10);
}

// Bars of days stand at the end of two weeks, so that one day is not as wide as the chart.
function rangeOf(xs, time, ofDay, bars) {
  const least = Math.min(...xs);
  const most = Math.max(...xs);
  if (bars && time) return [Math.min(least, most - (DAYS_SHOWN - 1) * DAY) - DAY / 2, most + DAY / 2];
  return pad(least, most, time ? (ofDay ? 30 : DAY / 2) : 0);
}

function clock(stamp) {
  const text = new Date(stamp * 1000).toISOString().slice(11, 19);
  return text.endsWith(":00") ? text.slice(0, 5) : text;
}

function around(least, most) {
  const margin = (most - least) * 0.08 || Math.abs(most) * 0.1 || 1;
  return [least - margin, most + margin];
}

function pad(least, most, seconds) {
  const margin = seconds ? Math.max((most - least) * 0.04, seconds) : (most - least) * 0.04 || Math.abs(most) * 0.1 || 1;
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
