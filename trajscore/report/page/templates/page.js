(function () {
  "use strict";
  const all = (query, within) => Array.from(within.querySelectorAll(query));
  for (const root of all(".tsr:not(.live)", document)) start(root);

  function start(root) {
    root.classList.add("live");
    const block = root.querySelector("script.data");
    if (block) tiles(root, JSON.parse(block.textContent));
    tables(root);
    explanations(root);
    predictors(root);
    runs(root);
    links(root);
    const theme = root.querySelector(".theme");
    if (theme) theme.addEventListener("click", () => {
      const dark = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
      root.dataset.theme = (root.dataset.theme || dark) === "dark" ? "light" : "dark";
    });
  }

  // ---- sentences: the page's own, filled in anew
  function fill(text, values) {
    return text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
  }
  function say(element, text) {
    const parts = text.split("**").map((part, k) => {
      if (k % 2 === 0) return document.createTextNode(part);
      const bold = document.createElement("b");
      bold.textContent = part;
      return bold;
    });
    element.replaceChildren(...parts);
  }
  function ofHundred(share) {
    const value = 100 * share;
    if (value > 0 && value < 1) return String(Math.floor(10 * value + 0.5 + 1e-9) / 10);
    return String(Math.floor(value + 0.5 + 1e-9));
  }
  const ofHundredRuns = (cost) => String(Math.floor(100 * cost + 0.5 + 1e-9));
  const pathOf = (points) => "M" + points.map(([x, y]) => x.toFixed(2) + " " + y.toFixed(2)).join("L");
  function mark(tile, x, y, text) {
    const dot = tile.querySelector("circle"), words = tile.querySelector(".mark");
    dot.setAttribute("cx", x + "%");
    dot.setAttribute("cy", y + "%");
    words.style.left = x + "%";
    words.style.top = y + "%";
    words.textContent = text;
    words.className = "mark" + (x < 15 ? " start" : x > 85 ? " end" : "");
  }

  function tiles(root, data) {
    const connect = (name, update, most) => {
      const tile = root.querySelector(`[data-tile=${name}]`), input = tile.querySelector("input");
      const words = tile.querySelector(".say");
      input.addEventListener("input", () => {
        const value = input.value === "" ? NaN : Number(input.value);
        const write = (text) => say(words, data.before ? data.before + text.replaceAll("**", "") : text);
        if (value >= 0 && value <= most) update(tile, write, data, value);
        else say(words, most === 100 ? "Type a number from 0 to 100." : "Type a number, 0 or more.");
      });
    };
    connect("accept", accept, Infinity);
    connect("stop", stop, 100);
  }

  // What a threshold costs: failures that are let through, at their price, and reviews.
  function accept(tile, write, data, price) {
    const {threshold, accepted, failing, digits} = data.accept, texts = data.texts.accept;
    const costs = threshold.map((_, k) => price * failing[k] + 1 - accepted[k]).concat(1);
    const last = threshold.length;
    const end = costs[0] <= costs[last] + 1e-9 ? 0 : last, least = Math.min(...costs);
    const lowest = costs.findIndex((cost) => cost <= least + 1e-9);
    const best = costs[lowest] < costs[end] - data.worth - 1e-9 ? lowest : end;
    const everything = ofHundredRuns(costs[0]);
    if (best === last || best === 0) {
      write(fill(texts.every, {do: best === 0 ? "Accept" : "Review", all: everything}));
    } else {
      write(fill(texts.some, {
        score: data.score, threshold: threshold[best].toFixed(digits),
        accepted: ofHundred(accepted[best]), failing: ofHundred(failing[best] / accepted[best]),
        cost: ofHundredRuns(costs[best]), all: everything,
      }));
    }
    const shares = accepted.concat(0);
    const height = (k) => 88 - 80 * (costs[k] - least) / (Math.max(...costs) - least || 1);
    const order = costs.map((_, k) => k).reverse();
    tile.querySelector("path.line").setAttribute("d", pathOf(order.map((k) => [100 * shares[k], height(k)])));
    mark(tile, 100 * shares[best], height(best),
      (best > 0 && best < last ? `from ${threshold[best].toFixed(digits)}: ` : "")
      + ofHundredRuns(costs[best]));
  }

  // The highest threshold that stops no more good runs than may be lost.
  function highest(curve, lost) {
    let best = -1;
    curve.good.forEach((share, k) => { if (share <= lost / 100 + 1e-9) best = k; });
    return best;
  }
  function stop(tile, write, data, lost) {
    const texts = data.texts.stop, curve = data.stop[data.shown], best = highest(curve, lost);
    const at = (values, k) => ofHundred(values[k]);
    if (best >= 0 && at(curve.saved.steps, best) !== "0") {
      const kinds = Object.keys(curve.saved).filter((kind) => kind !== "steps");
      write(fill(texts.some, {
        forecast: data.form, threshold: curve.threshold[best].toFixed(curve.digits),
        saved: at(curve.saved.steps, best), bad: at(curve.bad, best), good: at(curve.good, best),
        also: kinds.map((kind) => ` (${at(curve.saved[kind], best)}% of the ${kind})`).join(""),
      }));
    } else {
      let text = fill(texts.never, {predictor: data.shown});
      let most = "", saved = -1;
      for (const [name, other] of Object.entries(data.stop)) {
        const k = name === data.shown ? -1 : highest(other, lost);
        if (k >= 0 && other.saved.steps[k] > saved) [most, saved] = [name, other.saved.steps[k]];
      }
      if (most && ofHundred(saved) !== "0") text += fill(texts.other, {predictor: most, saved: ofHundred(saved)});
      write(text);
    }
    const x = best < 0 ? 0 : 100 * curve.good[best], y = best < 0 ? 0 : curve.saved.steps[best];
    mark(tile, x, 100 - 92 * y / data.top, best < 0 ? "" : `${at(curve.saved.steps, best)}%`);
  }

  // ---- tables: every head of a sortable table becomes a button
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
  function sortBy(table, head, column) {
    const down = head.getAttribute("aria-sort") === "descending";
    all("th", table.tHead).forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "ascending" : "descending");
    const rows = Array.from(table.tBodies[0].rows).map((row) => [valueOf(row, column), row]);
    rows.sort(([a], [b]) => (a === null || b === null || down ? compare(a, b) : -compare(a, b)));
    rows.forEach(([, row]) => table.tBodies[0].append(row));
  }
  function tables(root) {
    all("table.sortable", root).forEach((table) => {
      all("thead th", table).forEach((head, column) => {
        const button = document.createElement("button");
        button.type = "button";
        button.append(...head.childNodes);
        head.append(button);
        button.addEventListener("click", () => sortBy(table, head, column));
      });
    });
  }

  // ---- explanations: by pointer, by keyboard, by touch; Esc closes
  function explanations(root) {
    const inside = root.querySelector(".in");
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.id = "tip-" + all(".tip", document).length;
    tip.setAttribute("role", "tooltip");
    tip.hidden = true;
    inside.append(tip);
    const target = (about) => about.querySelector("button") || about;
    const hide = () => { tip.hidden = true; };
    const show = (about) => {
      tip.textContent = about.dataset.about;
      tip.hidden = false;
      target(about).setAttribute("aria-describedby", tip.id);
      const box = about.getBoundingClientRect(), frame = inside.getBoundingClientRect();
      const left = Math.min(box.left - frame.left, frame.width - tip.offsetWidth - 8);
      tip.style.left = Math.max(8, left) + "px";
      tip.style.top = box.bottom - frame.top + 6 + "px";
    };
    all("[data-about]", root).forEach((about) => {
      const focused = target(about);
      if (focused.tabIndex < 0) focused.tabIndex = 0;
      about.addEventListener("mouseenter", () => show(about));
      about.addEventListener("mouseleave", hide);
      focused.addEventListener("focus", () => show(about));
      focused.addEventListener("blur", hide);
    });
    root.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
  }

  // ---- why: one predictor at a time
  function predictors(root) {
    const choose = root.querySelector(".choose");
    if (!choose) return;
    const pick = () => all(".why", root).forEach((part) => { part.hidden = part.id !== choose.value; });
    choose.addEventListener("change", pick);
    pick();
  }

  // ---- runs: find, filter, order; the later ones when asked for
  function runs(root) {
    const list = root.querySelector(".run-list");
    if (!list) return;
    const rows = all(".run", list), more = root.querySelector(".all-runs");
    const find = root.querySelector(".find"), outcome = root.querySelector(".outcomes");
    const order = root.querySelector(".order"), shown = root.querySelector(".shown");
    let whole = !more;
    const update = () => {
      const words = find ? find.value.trim().toLowerCase() : "", only = outcome ? outcome.value : "";
      const asked = whole || words || only || (order && order.value !== "loss");
      rows.forEach((row) => {
        const fits = (!only || row.dataset.outcome === only)
          && (!words || row.textContent.toLowerCase().includes(words));
        row.hidden = !fits || (!asked && "late" in row.dataset);
      });
      if (shown) shown.textContent = rows.filter((row) => !row.hidden).length + " shown";
      if (more) more.hidden = Boolean(asked);
    };
    if (find) {
      find.addEventListener("input", update);
      outcome.addEventListener("change", update);
      order.addEventListener("change", () => {
        rows.sort((a, b) => b.dataset[order.value] - a.dataset[order.value]);
        list.append(...rows);
        update();
      });
    }
    if (more) more.addEventListener("click", () => { whole = true; update(); });
    update();
  }

  // ---- links into drawers open them
  function links(root) {
    root.addEventListener("click", (event) => {
      const link = event.target.closest && event.target.closest('a[href^="#"]');
      const target = link && document.getElementById(link.getAttribute("href").slice(1));
      if (!target || !root.contains(target)) return;
      event.preventDefault();
      for (let outer = target; outer && outer !== root; outer = outer.parentElement) {
        if (outer.tagName === "DETAILS") outer.open = true;
      }
      const choose = root.querySelector(".choose");
      if (choose && target.classList.contains("why")) {
        choose.value = target.id;
        choose.dispatchEvent(new Event("change"));
      }
      target.hidden = false;
      const focus = target.querySelector("summary, h1, h2, h3, select") || target;
      if (focus.tabIndex < 0) focus.tabIndex = -1;
      focus.focus({preventScroll: true});
      target.scrollIntoView({block: "start"});
    });
  }
})();
