// Plan: a dropped config or trace file becomes a field of the form, and the answer gets its charts.
"use strict";

(function files() {
  const config = document.getElementById("config");
  const trace = document.getElementById("trace");
  const input = document.getElementById("model-file");
  const state = document.getElementById("file-state");
  const clear = document.getElementById("file-clear");
  const drop = document.getElementById("drop");

  function show(text, has) {
    state.textContent = text;
    clear.hidden = !has;
  }
  function forget() {
    config.value = trace.value = input.value = "";
    show("", false);
  }
  async function take(file) {
    forget();
    if (file.size > 500000) return show(state.dataset.large, false);
    if (file.name.endsWith(".trace")) {
      const bytes = new Uint8Array(await file.arrayBuffer());
      let text = "";
      for (const byte of bytes) text += String.fromCharCode(byte);
      trace.value = btoa(text);
    } else {
      const text = await file.text();
      try {
        config.value = JSON.stringify(JSON.parse(text));
      } catch {
        config.value = text;
      }
      if (config.value.length > 65536) {
        config.value = "";
        return show(state.dataset.large, false);
      }
    }
    show(`${state.dataset.used} ${file.name}`, true);
  }

  input.addEventListener("change", () => input.files[0] && take(input.files[0]));
  clear.addEventListener("click", forget);
  for (const name of ["dragover", "dragleave", "drop"])
    drop.addEventListener(name, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", name === "dragover");
    });
  drop.addEventListener("drop", (event) => event.dataTransfer.files[0] && take(event.dataTransfer.files[0]));
  if (config.value) show(`${state.dataset.used} config.json`, true);
})();

document.body.addEventListener("htmx:afterSettle", () => {
  const box = document.getElementById("plan-chart");
  if (box && !box.firstChild) {
    const { points, currency } = JSON.parse(box.dataset.points);
    points.sort((left, right) => left.hours - right.hours);
    const costs = points.map((each) => each.cost / 1e6);
    const front = points.map((each) => (each.front ? each.cost / 1e6 : null));
    const series = [{ label: box.dataset.all, values: costs, points: true, size: 6, colour: 4 }, { label: box.dataset.front, values: front, points: true, size: 10, colour: 0 }];
    plot(box, points.map((each) => each.hours), series, { xLabel: box.dataset.hours, yLabel: currency, log: true });
  }
  const memory = document.getElementById("memory-chart");
  if (memory && !memory.firstChild) {
    const { bytes, card } = JSON.parse(memory.dataset.memory);
    const gib = (size) => size / 2 ** 30;
    const series = [{ label: memory.dataset.used, values: bytes.map(gib), colour: 0 }];
    if (card) series.push({ label: memory.dataset.card, values: bytes.map(() => gib(card)), colour: 3 });
    const last = Math.max(bytes.length - 1, 1);
    plot(memory, bytes.map((_, index) => (100 * index) / last), series, { xLabel: memory.dataset.step, yLabel: "GiB" });
  }
  const buy = document.getElementById("buy-chart");
  if (buy && !buy.firstChild) {
    const { steps, lines, currency } = JSON.parse(buy.dataset.curves);
    const series = lines.map((each) => ({ label: each.label, values: each.micros.map((micros) => micros / 1e6) }));
    plot(buy, steps, series, { xLabel: buy.dataset.share, yLabel: `${currency} ${buy.dataset.month}`, decimals: 0 });
  }
});
