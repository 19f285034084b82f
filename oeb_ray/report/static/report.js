// What the pages of a report do. Text from documents reaches the page through textContent alone.
"use strict";

const oeb = (() => {
  const root = document.body.dataset.root;
  const waiting = new Map();
  const $ = (selector, within = document) => within.querySelector(selector);
  const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];
  const KINDS = ["matched", "misread", "unfound", "fabricated", "invented_item", "invented_field"];
  const AT_ONCE = 200;
  const words = (text) => text.toLowerCase();
  const number = (value) => value.toLocaleString("en");

  // Called by the scripts in data/: base64 of gzip of JSON.
  async function take(key, text) {
    const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    waiting.get(key)?.(await new Response(stream).json());
  }

  function data(key) {
    return new Promise((done, failed) => {
      const script = document.createElement("script");
      waiting.set(key, done);
      script.src = `${root}data/${key}.js`;
      script.onerror = () => failed(new Error(`${key} is not there`));
      document.head.append(script);
    });
  }

  function element(name, text, attributes = {}) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  }

  // A new head for a table; returns its new body.
  function head(table, names) {
    const row = element("tr");
    row.append(...names.map((name) => element("th", name, { scope: "col" })));
    const made = element("thead");
    made.append(row);
    const body = element("tbody");
    table.replaceChildren(made, body);
    return body;
  }

  function line(first, others) {
    const row = element("tr");
    const heading = element("th", undefined, { scope: "row" });
    heading.append(first instanceof Node ? first : element("bdi", first));
    row.append(heading, ...others.map((text) => element("td", text)));
    return row;
  }

  function onInput(form, show) {
    form.addEventListener("input", show);
    form.addEventListener("submit", (event) => event.preventDefault());
    show();
  }

  // --- leaderboard and documents

  function lists() {
    const form = $("[data-filters]");
    onInput(form, () => {
      const text = words($("[data-text]", form).value);
      const selection = $("[data-selection]", form)?.value;
      const suite = $("[data-suite]", form)?.value;
      for (const section of $$("[data-selected]")) section.hidden = section.dataset.selected !== selection;
      for (const row of $$("tr[data-words]")) {
        row.hidden = !row.dataset.words.includes(text) || Boolean(suite && row.dataset.suite !== suite);
      }
    });
  }

  // --- plots

  const ink = "currentColor";
  const named = (rows) => new Set(rows.map((row) => row.run)).size;
  const DRAWN = {
    cost: (rows, names) => ({
      height: 420, marginRight: 160, x: { label: "dollars per document", zero: true }, y: { label: "accuracy", grid: true },
      marks: [
        Plot.ruleX(rows.filter((row) => row.low !== null), { x: names[4], y1: "low", y2: "high", stroke: ink }),
        Plot.dot(rows, { x: names[4], y: "accuracy", symbol: "run", stroke: ink, fill: "var(--page)", r: 5, title: (row) => `${row.run}: ${row.accuracy}` }),
        Plot.text(rows, { x: names[4], y: "accuracy", text: "run", textAnchor: "start", dx: 10 }),
      ],
    }),
    suites: (rows) => ({
      height: 60 + new Set(rows.map((row) => row.suite)).size * (30 + named(rows) * 15), marginLeft: 130, marginRight: 120, x: { label: "accuracy", domain: [0, 1], grid: true },
      y: { label: null, axis: null }, fy: { label: null, axis: "right" },
      facet: { data: rows, y: "suite" },
      marks: [
        Plot.ruleY(rows.filter((row) => row.low !== null), { y: "run", x1: "low", x2: "high", stroke: ink, strokeWidth: 2 }),
        Plot.dot(rows, { y: "run", x: "accuracy", stroke: ink, fill: "var(--page)", r: 4, title: (row) => `${row.suite}, ${row.run}: ${row.accuracy}` }),
        Plot.text(rows, { y: "run", x: 0, text: "run", textAnchor: "end", dx: -6 }),
      ],
    }),
    errors: (rows) => ({
      height: 70 + named(rows) * 20, marginLeft: 130, x: { label: "share", grid: true, ticks: 3 }, y: { label: null, domain: [...new Set(rows.map((row) => row.run))] }, fx: { label: null },
      facet: { data: rows, x: "kind" },
      marks: [
        Plot.barX(rows, { y: "run", x: "share", fill: ink, fillOpacity: 0.7, title: (row) => `${row.run}, ${row.kind}: ${row.share}` }),
        Plot.ruleX([0]),
      ],
    }),
    length: (rows, names) => panels(rows, names[1]),
    arrays: (rows, names) => panels(rows, names[1]),
    latency: (rows) => ({
      height: 60 + rows.length * 24, marginLeft: 130, x: { label: "seconds", grid: true, type: rows.every((row) => row.p5 > 0) ? "log" : "linear" }, y: { label: null, domain: rows.map((row) => row.run) },
      marks: [
        Plot.ruleY(rows, { y: "run", x1: "p5", x2: "p95", stroke: ink }),
        Plot.barX(rows, { y: "run", x1: "p25", x2: "p75", fill: "var(--page)", stroke: ink, inset: 3 }),
        Plot.tickX(rows, { y: "run", x: "median", stroke: ink, strokeWidth: 3, inset: 3, title: (row) => `${row.run}: ${row.median} s` }),
      ],
    }),
  };

  // A small plot per run, four in a line.
  function panels(rows, bins) {
    const runs = [...new Set(rows.map((row) => row.run))];
    const order = [...new Set(rows.map((row) => row[bins]))].sort((a, b) => parseInt(a) - parseInt(b));
    const across = Math.min(4, runs.length);
    const place = { fx: (row) => runs.indexOf(row.run) % across, fy: (row) => Math.floor(runs.indexOf(row.run) / across) };
    return {
      height: 60 + Math.ceil(runs.length / across) * 150, marginTop: 40, marginBottom: 55, x: { label: bins, domain: order, tickRotate: -35 }, y: { label: "accuracy", domain: [0, 1], grid: true, ticks: 3 },
      fx: { axis: null }, fy: { axis: null, padding: 0.3 },
      marks: [
        Plot.frame({ strokeOpacity: 0.3 }),
        Plot.line(rows, { x: bins, y: "accuracy", z: "run", stroke: ink, ...place }),
        Plot.dot(rows, { x: bins, y: "accuracy", fill: ink, r: 3, title: (row) => `${row.run}, ${row[bins]}: ${row.accuracy}`, ...place }),
        Plot.text(rows, { x: bins, y: "accuracy", text: (row) => String(row.documents), lineAnchor: "top", dy: 5, fontSize: 9, ...place }),
        Plot.text(runs.map((run) => ({ run })), { text: "run", frameAnchor: "top", dy: -14, fontWeight: 600, ...place }),
      ],
    };
  }

  async function plots() {
    const { figures } = await data("plots");
    const known = new Map(figures.map((figure) => [figure.name, figure]));
    for (const place of $$("[data-plot]")) {
      const { columns, rows } = known.get(place.dataset.plot);
      const objects = rows.map((row) => Object.fromEntries(columns.map((column, at) => [column, row[at]])));
      const options = DRAWN[place.dataset.plot](objects, columns);
      place.replaceChildren(Plot.plot({ width: 920, ariaLabel: place.dataset.says, ...options }));
    }
    for (const button of $$("[data-svg]")) button.addEventListener("click", () => download(button.dataset.svg));
    document.body.dataset.drawn = "yes";
  }

  function download(name) {
    const drawn = $(`[data-plot="${name}"] svg`).cloneNode(true);
    drawn.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    drawn.setAttribute("color", "black");
    drawn.style.setProperty("--page", "white");
    drawn.style.setProperty("background", "white");
    const link = element("a", undefined, { download: `${name}.svg` });
    link.href = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(drawn)], { type: "image/svg+xml" }));
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  // --- fields

  async function fields() {
    const found = await data("fields");
    const form = $("form");
    const headings = ["Field", "errors", "values", "share right", ...found.kinds.map((kind) => kind.replace("_", " "))];
    onInput(form, () => {
      const run = $("[data-run]", form).value;
      const text = words($("[data-text]", form).value);
      const sum = (of, kind) => of.reduce((all, [position, ...counts]) => all + (run === "" || position === Number(run) ? counts[kind] : 0), 0);
      const sums = found.fields
        .filter(([name]) => words(name).includes(text))
        .map(([name, of]) => ({ name, counts: found.kinds.map((_, kind) => sum(of, kind)) }))
        .map(({ name, counts }) => ({ name, counts, values: counts.reduce((all, count) => all + count, 0) }))
        .filter(({ values }) => values > 0)
        .sort((a, b) => b.values - b.counts[0] - (a.values - a.counts[0]) || (a.name < b.name ? -1 : 1));
      const body = head($("[data-fields]"), headings);
      body.append(...sums.slice(0, 500).map(({ name, counts, values }) =>
        line(name, [number(values - counts[0]), number(values), (counts[0] / values).toFixed(4), ...counts.map(number)])));
      $("[data-status]").textContent = `${number(sums.length)} fields${sums.length > 500 ? ", the first 500 are shown" : ""}`;
    });
  }

  // --- one document

  async function documentPage(form) {
    const here = Number(form.dataset.document);
    const choice = $("[data-run]", form);
    const asked = new URLSearchParams(location.hash.slice(1)).get("run");
    if (asked !== null && Number(asked) < choice.options.length) choice.value = asked;
    let values = null;
    let shown = AT_ONCE;

    const show = () => {
      const table = $("table[data-verdicts]");
      const status = $("[data-status]");
      const more = $("[data-more]");
      if (!values) {
        table.replaceChildren();
        more.hidden = true;
        status.textContent = "This run has no verdicts here: it failed, was not asked, or was scored without them.";
        return;
      }
      const kinds = new Set($$("[data-kind]", form).filter((box) => box.checked).map((box) => box.value));
      const text = words($("[data-text]", form).value);
      const holds = (column, at) => words(values.texts[values[column][at]]).includes(text);
      const wanted = [...values.path.keys()].filter((at) => {
        const said = values.texts[values.verdict[at]];
        return (kinds.has(said) || !KINDS.includes(said)) && (holds("path", at) || holds("field", at));
      });
      head(table, ["Path", "Verdict", "Gold", "Predicted"]).append(...wanted.slice(0, shown).map((at) => verdict(values, at)));
      const left = values.left_out ? `; ${number(values.left_out)} more are in verdicts.parquet` : "";
      const first = wanted.length > shown ? `, the first ${number(shown)} are shown` : "";
      const none = wanted.length ? "" : ": nothing of what is asked for; tick \u201cmatched\u201d to see what is right";
      status.textContent = `${number(wanted.length)} of ${number(values.path.length)} values${none}${first}${left}`;
      more.hidden = wanted.length <= shown;
    };
    const load = async () => {
      $("[data-status]").textContent = "Loading.";
      const there = "verdicts" in choice.selectedOptions[0].dataset;
      values = there ? await data(`values/${here}-${choice.value}`) : null;
      shown = AT_ONCE;
      history.replaceState(null, "", `#run=${choice.value}`);
      for (const link of $$("[data-step]")) link.hash = `run=${choice.value}`;
      cite(values?.boxes ?? []);
      show();
      await failing(here, Number(choice.value));
    };
    choice.addEventListener("change", load);
    form.addEventListener("input", (event) => { if (event.target !== choice) show(); });
    form.addEventListener("submit", (event) => event.preventDefault());
    $("[data-more]").addEventListener("click", () => { shown += 5 * AT_ONCE; show(); });
    await load();
  }

  function verdict(values, at) {
    const said = values.texts[values.verdict[at]];
    const path = values.texts[values.path[at]];
    const row = line(path, []);
    const kind = element("td");
    kind.append(element("span", said.replace("_", " "), { class: `kind ${KINDS.includes(said) ? said : "other"}` }));
    row.append(kind, side(values, "gold", at), side(values, "pred", at));
    row.addEventListener("pointerenter", () => point(path));
    return row;
  }

  // A value as it came, and below it what it was compared as with the steps that led there.
  function side(values, name, at) {
    const cell = element("td");
    const raw = values[`${name}_raw`][at];
    const canon = values[`${name}_canon`][at];
    if (raw < 0) {
      cell.append(element("span", "nothing", { class: "none" }));
      return cell;
    }
    cell.append(element("bdi", values.texts[raw], { class: "raw" }));
    const steps = values.steps[raw];
    if (canon >= 0 && steps) {
      const details = element("details");
      const list = element("ol");
      list.append(...steps.map(([step, text]) => element("li", `${step}: ${text}`)));
      details.append(element("summary", `compared as ${values.texts[canon]}`), list);
      cell.append(details);
    }
    return cell;
  }

  function cite(boxes) {
    for (const old of $$(".cited")) old.remove();
    for (const [page, left, top, right, bottom, path, text] of boxes) {
      const image = $(`[data-page-number="${page}"] .places`);
      if (!image) continue;
      const box = element("div", undefined, { class: "cited", title: `${path}: ${text}` });
      box.dataset.path = path;
      Object.assign(box.style, {
        left: `${100 * left}%`, top: `${100 * top}%`, width: `${100 * (right - left)}%`, height: `${100 * (bottom - top)}%`,
      });
      image.append(box);
    }
  }

  function point(path) {
    for (const box of $$(".cited")) box.classList.toggle("meant", box.dataset.path === path);
  }

  let accuracies = null;

  async function failing(here, run) {
    accuracies ??= (await data("index")).accuracies;
    for (const link of $$("[data-failing]")) {
      const step = Number(link.dataset.failing);
      let at = here + step;
      while (at >= 0 && at < accuracies.length && accuracies[at][run] === 1) at += step;
      link.hidden = at < 0 || at >= accuracies.length;
      link.href = `${at}.html#run=${run}`;
    }
  }

  // --- two runs

  async function compare() {
    const found = await data("compare");
    const form = $("form");
    const names = ["gained", "lost", "both wrong", "both right"];
    const changed = ([, gained, lost]) => gained + lost;
    const figures = ([right, gained, lost, wrong]) => [gained, lost, wrong, right].map(number);
    onInput(form, () => {
      const [a, b] = ["a", "b"].map((name) => Number($(`[data-${name}]`, form).value));
      const documents = [];
      const byField = new Map();
      for (const [at, doc, runs, patterns] of found.documents) {
        const [inA, inB] = [runs.indexOf(a), runs.indexOf(b)];
        if (inA < 0 || inB < 0) continue;
        const sums = [0, 0, 0, 0];
        for (const [field, pattern, count] of patterns) {
          const kind = (pattern[inA] === "1" ? 0 : 1) + (pattern[inB] === "1" ? 0 : 2);
          if (!byField.has(field)) byField.set(field, [0, 0, 0, 0]);
          byField.get(field)[kind] += count;
          sums[kind] += count;
        }
        documents.push([at, doc, sums]);
      }
      documents.sort((x, y) => changed(y[2]) - changed(x[2]) || x[0] - y[0]);
      head($("[data-documents]"), ["Document", ...names]).append(...documents.slice(0, 500).map(([at, doc, sums]) => {
        const link = element("a", undefined, { href: `documents/${at}.html#run=${b}` });
        link.append(element("bdi", doc));
        return line(link, figures(sums));
      }));
      const sorted = [...byField].sort((x, y) => changed(y[1]) - changed(x[1]) || (x[0] < y[0] ? -1 : 1));
      head($("[data-fields]"), ["Field", ...names]).append(...sorted.slice(0, 500).map(([field, sums]) => line(field, figures(sums))));
      const [right, gained, lost, wrong] = documents.reduce((all, one) => all.map((value, kind) => value + one[2][kind]), [0, 0, 0, 0]).map(number);
      $("[data-status]").textContent = `${documents.length} documents in both: ${gained} values gained, ${lost} lost, ${wrong} wrong in both, ${right} right in both`;
    });
  }

  const PAGES = { "index.html": lists, "documents.html": lists, "plots.html": plots, "fields.html": fields, "compare.html": compare };
  addEventListener("DOMContentLoaded", () => {
    const form = $("[data-document]");
    if (form) documentPage(form);
    else PAGES[document.body.dataset.page]?.();
  });
  return { take };
})();
