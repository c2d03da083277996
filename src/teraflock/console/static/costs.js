// Costs: a month is shown as soon as it is chosen.
"use strict";

document.getElementById("month").addEventListener("change", (event) => event.target.form.requestSubmit());
