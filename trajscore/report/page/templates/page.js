(function () {
  "use strict";
  const page = document.body;
  page.classList.add("live");
  const all = (query, within) => Array.from((within || document).querySelectorAll(query));

  // ---- sorting: every head of a sortable table becomes a button
  const valueOf = (row, column) => {
    const cell = row.cells[column];
    const given = cell.dataset.v === undefined ? cell.textContent.trim() : cell.dataset.v;
    const number = parseFloat(given.replace(/,/g, ""));
    return given === "" || given === "nan" ? null : isNaN(number) ? given : number;
  };
  const compare = (a, b) => {
    if (a === null || b === null) return (a === null) - (b === null);
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), undefined, {numeric: true});
  };
  const sortBy = (table, head, column) => {
    const down = head.getAttribute("aria-sort") === "descending";
    all("th", table.tHead).forEach((one) => one.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "ascending" : "descending");
    const body = table.tBodies[0];
    const rows = Array.from(body.rows).map((row) => [valueOf(row, column), row]);
    rows.sort(([a], [b]) => (a === null || b === null || down ? compare(a, b) : -compare(a, b)));
    rows.forEach(([, row]) => body.append(row));
  };
  all("table.sortable").forEach((table) => {
    let column = 0;
    all("th", table.tHead.rows[0]).forEach((head) => {
      const place = column + head.colSpan - 1;
      column += head.colSpan;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => sortBy(table, head, place));
    });
  });

  // ---- picking predictors
  const boxes = all(".picker input");
  const pick = () => {
    const off = new Set(boxes.filter((box) => !box.checked).map((box) => box.value));
    all("[data-predictor]").forEach((one) => {
      one.classList.toggle("off", off.has(one.dataset.predictor));
    });
  };
  boxes.forEach((box) => box.addEventListener("change", pick));
  [["pick-all", true], ["pick-none", false]].forEach(([id, checked]) => {
    const button = document.getElementById(id);
    if (button) button.addEventListener("click", () => {
      boxes.forEach((box) => { box.checked = checked; });
      pick();
    });
  });

  // ---- the price of a failure that is let through
  const price = document.getElementById("price");
  const reprice = () => {
    const worth = parseFloat(price.value);
    document.getElementById("price-said").textContent = worth;
    all("table.accepting").forEach((table) => {
      const rows = Array.from(table.tBodies[0].rows);
      const costs = rows.map((row) => worth * row.dataset.through + 1 - row.dataset.share);
      const least = Math.min(...costs);
      rows.forEach((row, k) => {
        row.querySelector(".cost").textContent = costs[k].toFixed(2);
        row.classList.toggle("cheapest", k === costs.indexOf(least));
      });
    });
  };
  if (price) price.addEventListener("input", reprice);

  // ---- light and dark
  document.getElementById("theme").addEventListener("click", () => {
    const system = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    const now = page.dataset.theme || system;
    page.dataset.theme = now === "dark" ? "light" : "dark";
  });

  // ---- what is folded is printed all the same
  let folded = [];
  window.addEventListener("beforeprint", () => {
    folded = all("details:not([open]):not(.transcript)");
    folded.forEach((one) => { one.open = true; });
  });
  window.addEventListener("afterprint", () => folded.forEach((one) => { one.open = false; }));
})();
