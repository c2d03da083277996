// Costs: the chart of charges by day, and a month that is shown as soon as it is chosen.
"use strict";

(function days() {
  const box = document.getElementById("days");
  const { days, currency } = JSON.parse(box.dataset.days);
  if (!days.length) {
    box.textContent = box.dataset.none;
    return;
  }
  const times = days.map(([day]) => Date.parse(`${day}T00:00:00Z`) / 1000);
  plot(box, times, [{ label: currency, values: days.map(([, micros]) => micros / 1e6), bars: true }], { time: true, yLabel: currency, height: 200 });
  cells(document.getElementById("days-table"), days.map(([day, micros]) => [day, `${(micros / 1e6).toFixed(4)} ${currency}`]));
})();

document.getElementById("month").addEventListener("change", (event) => event.target.form.requestSubmit());
