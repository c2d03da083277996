// Offers: the comparison, which stays while you filter, and the price history of the chosen GPU model.
"use strict";

(function compare() {
  const panel = document.getElementById("compare");
  const head = document.getElementById("compare-head");
  const body = document.getElementById("compare-body");
  const most = Number(panel.dataset.max);
  const removing = document.getElementById("compare-remove").textContent;
  let chosen = [];
  try {
    chosen = JSON.parse(sessionStorage.getItem("tera-compare") || "[]").slice(0, most);
  } catch {
    chosen = [];
  }

  function show() {
    sessionStorage.setItem("tera-compare", JSON.stringify(chosen));
    panel.hidden = !chosen.length;
    while (head.cells.length > 1) head.deleteCell(1);
    for (const row of body.rows) while (row.cells.length > 1) row.deleteCell(1);
    for (const offer of chosen) {
      const title = document.createElement("th");
      title.scope = "col";
      const remove = document.createElement("button");
      remove.className = "plain";
      remove.textContent = removing;
      remove.addEventListener("click", () => set(offer, false));
      title.append(remove);
      head.append(title);
      offer.cells.forEach((text, index) => (body.rows[index].insertCell().textContent = text || "–"));
    }
    for (const box of document.querySelectorAll("input.compare")) {
      const id = JSON.parse(box.dataset.offer).id;
      box.checked = chosen.some((offer) => offer.id === id);
      box.disabled = !box.checked && chosen.length >= most;
    }
  }

  function set(offer, on) {
    chosen = chosen.filter((each) => each.id !== offer.id);
    if (on && chosen.length < most) chosen.push(offer);
    show();
  }

  document.addEventListener("change", (event) => {
    if (event.target.matches("input.compare")) set(JSON.parse(event.target.dataset.offer), event.target.checked);
  });
  document.getElementById("compare-clear").addEventListener("click", () => {
    chosen = [];
    show();
  });
  document.body.addEventListener("htmx:afterSettle", show);
  show();
})();

(function history() {
  const box = document.getElementById("history");
  const table = document.getElementById("history-table");
  const filters = document.getElementById("filters");
  let shown = null;
  async function load() {
    const fields = new URLSearchParams();
    for (const name of ["gpu", "provider", "region", "mode", "currency"]) if (filters[name].value) fields.set(name, filters[name].value);
    const wanted = fields.toString();
    if (wanted === shown) return;
    shown = wanted;
    if (!fields.has("gpu")) return none(box.dataset.none);
    const response = await fetch(`${box.dataset.source}?${wanted}`);
    if (wanted !== shown) return;
    if (!response.ok) return none(box.dataset.empty);
    const { points, currency } = await response.json();
    if (!points.length) return none(box.dataset.empty);
    const column = (index) => points.map((point) => point[index] / 1e6);
    const times = points.map(([day]) => Date.parse(`${day.padEnd(10, "-01")}T00:00:00Z`) / 1000);
    const named = [box.dataset.low, box.dataset.middle, box.dataset.high];
    plot(box, times, named.map((label, index) => ({ label, values: column(index + 1) })), { time: true, yLabel: `${currency}/h`, decimals: 3 });
    cells(table, points.map(([day, ...micros]) => [day, ...micros.map((each) => `${(each / 1e6).toFixed(3)} ${currency}`)]));
  }
  function none(text) {
    box.textContent = text;
    table.replaceChildren();
  }
  document.body.addEventListener("htmx:afterSettle", (event) => {
    if (event.target.id === "offers") load();
  });
  load();
})();
