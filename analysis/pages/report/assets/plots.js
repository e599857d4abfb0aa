// The report's plots: switches for all of them, and the numbers behind them. The charting folder draws them.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("plots").textContent);
  const ZOOM_BEFORE_S = 2, ZOOM_AFTER_S = 10, MOST_ZOOM_SWITCHES = 4, MOST_ROWS = 500;
  const PERCENTILES = ["p50", "p95", "p99"], QUANTITIES = { bytes_per_s: "bytes/s", events_per_s: "events/s" };
  const view = Plots.view("run");
  let quantity = data.links.bytes_per_s.length ? "bytes_per_s" : "events_per_s";
  view.hidden.group.add("p95");

  const withSpans = (chart) => ({ spans: data.spans, ...chart });
  const place = (chart) => document.getElementById(`plot-${chart.key}`);
  const showLinks = () => {
    for (const chart of data.links[quantity].filter(place)) {
      Plots.of(chart.key)?.show(withSpans(chart));
      document.getElementById(`note-${chart.key}`).textContent = chart.note;
    }
    view.changed();
  };

  // Switches ------------------------------------------------------------------------------------------------------
  const addSwitch = (group, text, on, press, colour) => {
    const holder = document.getElementById(group);
    if (holder) view.listeners.push(Plots.chip(holder, text, on, press, colour));
  };
  const addSwitches = () => {
    for (const { name, colour } of data.regions) {
      addSwitch("region-switches", name, () => !view.hidden.subject.has(name), () => view.toggle("subject", name), colour);
    }
    const same = (range) => () => String(view.zoomed) === String(range);
    addSwitch("range-switches", "whole run", same(null), () => view.zoom(null));
    const faults = new Set(), around = (at) => [Math.max(0, at - ZOOM_BEFORE_S), Math.min(data.end_s, at + ZOOM_AFTER_S)];
    for (const span of data.spans) {
      if (span.other || faults.has(span.fault) || faults.size >= MOST_ZOOM_SWITCHES) continue;
      faults.add(span.fault);
      addSwitch("range-switches", `start of ${span.fault}`, same(around(span.start)), () => view.zoom(around(span.start)));
      if (span.end !== null) addSwitch("range-switches", `end of ${span.fault}`, same(around(span.end)), () => view.zoom(around(span.end)));
    }
    for (const percentile of PERCENTILES) {
      addSwitch("latency-switches", percentile, () => !view.hidden.group.has(percentile), () => view.toggle("group", percentile));
    }
    addSwitch("latency-switches", "log", () => Plots.of("latency").logarithmic(), () => view.flip("latency"));
    for (const [name, text] of Object.entries(QUANTITIES)) {
      if (data.links[name].length) addSwitch("quantity-switches", text, () => quantity === name, () => { quantity = name; showLinks(); });
    }
  };

  // The numbers behind a plot, as a table, built when it is opened ----------------------------------------------
  const numbers = (details) => {
    const plot = Plots.of(details.dataset.chart), [from, to] = plot.range(), shown = plot.shown();
    const times = [...new Set(shown.flatMap((one) => one.x))].filter((x) => x >= from && x <= to).sort((a, b) => a - b).slice(0, MOST_ROWS);
    const table = document.createElement("table");
    const addRow = (parent, cells, tag) => {
      const row = parent.insertRow();
      for (const text of cells) {
        const cell = document.createElement(tag);
        cell.textContent = text;
        cell.className = "numeric";
        row.append(cell);
      }
    };
    addRow(table.createTHead(), ["time, s", ...shown.map((one) => `${one.name}, ${plot.chart.y.unit}`)], "th");
    const values = shown.map((one) => new Map(one.x.map((x, i) => [x, one.y[i]])));
    const body = table.createTBody();
    for (const time of times) addRow(body, [time.toFixed(1), ...values.map((of) => { const y = of.get(time) ?? null; return y === null ? "–" : Numbers.number(y); })], "td");
    details.querySelector(".scroll").replaceChildren(table);
  };
  for (const details of document.querySelectorAll("details.numbers")) {
    details.addEventListener("toggle", () => { if (details.open) numbers(details); });
  }

  for (const chart of [...data.timelines, ...data.links[quantity]].filter(place)) Plots.add(place(chart), withSpans(chart));
  addSwitches();
  showLinks();
  if (data.command) Moments.start(data, view.plots);
  Plots.start();
})();
