// Follows the run: receives the whole state once, then changes, and shows them. The last state remains visible
// when the server has ended.
"use strict";
(() => {
  const QUANTITIES = ["p50", "p95", "p99"];
  const PHASES = { starting: "starting", planned: "starting", building: "building", running: "running", draining: "draining", collected: "collecting" };
  const find = (id) => document.getElementById(id);
  const BIN_S = 0.2, TWO_DECADES = 100;
  const plots = new Map(); // keys of charts to plots
  const bins = { throughput: new Map(), latency: new Map() };
  let fixed = null, status = {}, percentile = "p95", lost = false, drawing = false;

  const merge = (kind, series) => {
    for (const [name, rows] of Object.entries(series)) {
      if (!bins[kind].has(name)) bins[kind].set(name, new Map());
      for (const row of rows) bins[kind].get(name).set(row[0], row);
    }
  };

  const begin = (content) => {
    fixed = content;
    bins.throughput.clear();
    bins.latency.clear();
    find("lines").replaceChildren();
    find("title").textContent = fixed.title;
    find("description").textContent = fixed.description;
    find("run").textContent = fixed.run;
    document.title = `${fixed.title}, live – Cutset`;
    if (plots.size) return; // the same run, after a break
    for (const chart of fixed.charts) plots.set(chart.key, Plots.add(find(`plot-${chart.key}`), chart));
    const { listeners } = Plots.view("run");
    for (const name of QUANTITIES) {
      listeners.push(Plots.chip(find("percentiles"), name, () => name === percentile, () => { percentile = name; draw(); Plots.view("run").changed(); }));
    }
    Plots.start();
  };

  // Middles of bins and the values in column `at`, with a gap for missing bins.
  const points = (rows, at) => {
    const x = [], y = [];
    let before = null;
    for (const row of [...rows.values()].sort((a, b) => a[0] - b[0])) {
      if (before !== null && row[0] - before > 1.5 * BIN_S) { x.push(before + 1.5 * BIN_S); y.push(null); }
      x.push(+(row[0] + BIN_S / 2).toFixed(3));
      y.push(row[at]);
      before = row[0];
    }
    return { x, y };
  };
  // Latency over two decades needs a logarithmic axis.
  const kindOf = (series) => {
    const values = series.flatMap((one) => one.y).filter((value) => value > 0);
    const [low, high] = values.reduce(([least, most], value) => [Math.min(least, value), Math.max(most, value)], [Infinity, 0]);
    return high / low >= TWO_DECADES ? "logarithmic" : "linear";
  };
  const filled = (chart, at, spans, end) => {
    const found = chart.series.map((one) => ({ ...one, ...points(bins[chart.key].get(one.name) ?? new Map(), at) }));
    return {
      ...chart, spans, x: { ...chart.x, high: end }, y: { ...chart.y, kind: chart.key === "latency" ? kindOf(found) : "linear" },
      xs: found.map((one) => one.x), series: found.map((one, i) => ({ ...one, x: i })),
    };
  };

  // At most once per screen refresh, and never while the page is hidden.
  const draw = () => {
    if (drawing) return;
    drawing = true;
    requestAnimationFrame(() => {
      drawing = false;
      if (!fixed) return;
      const end = Math.max(fixed.duration_s, status.shown_s || 0);
      const spans = (status.bands || []).map((band) => ({ label: band.label, row: band.row, start: band.start_s, end: band.end_s ?? Math.max(band.start_s, Math.min(status.elapsed_s || 0, end)) }));
      for (const chart of fixed.charts) plots.get(chart.key).show(filled(chart, chart.key === "latency" ? 1 + QUANTITIES.indexOf(percentile) : 1, spans, end));
      find("latency-unit").textContent = `ms, ${percentile}`;
    });
  };

  const text = (id, value, digits) => {
    find(id).textContent = value === null || value === undefined ? "–" : Numbers.fixed(value, digits);
  };

  const say = (message, bad) => {
    const place = find("message");
    place.hidden = !message;
    place.className = bad ? "message bad" : "message";
    place.textContent = message;
  };

  const showMessage = () => {
    if (status.report) say(`The run ${status.verdict}. Its report is ${status.report}`, status.verdict !== "passed");
    else if (lost) say(`The command has ended. This page keeps its last state; the run is stored in ${fixed ? fixed.path : "its directory"}`, false);
    else if (status.failed) say(`This page is no longer updated: ${status.failed}. The run continues.`, true);
    else if (status.ended) say("The run has ended and is being analysed; a link to its report will appear here.", false);
    else say("", false);
  };

  const showNow = () => {
    const phase = status.report ? status.verdict : status.ended ? "analysing" : PHASES[status.phase] || status.phase;
    find("phase").textContent = lost && !status.report ? "ended" : phase;
    const duration = fixed.duration_s, elapsed = Math.max(0, Math.min(status.elapsed_s || 0, duration));
    find("progress").value = elapsed / duration;
    find("elapsed").textContent = status.running ? `${elapsed.toFixed(0)} of ${duration.toFixed(0)} s` : `${duration.toFixed(0)} s planned`;
    text("rate", status.events_per_s, 0);
    text("p95", status.p95_ms, 1);
    const over = status.ended || lost;
    text("behind", over ? null : status.behind_s, 1);
    const open = (status.bands || []).filter((band) => band.end_s === null).map((band) => band.label);
    find("network").textContent = !status.running ? "–" : over ? "ended" : open.join(", ") || "undisturbed";
    find("network").classList.toggle("bad", open.length > 0 && !over);
  };

  const take = (content) => {
    if (content.whole) {
      begin(content);
      status = {};
    }
    status = { ...status, ...content.status };
    merge("throughput", content.throughput);
    merge("latency", content.latency);
    for (const line of content.lines) {
      const item = document.createElement("li");
      item.textContent = line;
      find("lines").append(item);
      find("noted").hidden = false;
    }
    showNow();
    showMessage();
    draw();
    if (status.report && !content.whole) location.assign("/report"); // the server ends soon: the page becomes the report
  };

  const stream = new EventSource("/events");
  stream.addEventListener("message", (event) => { lost = false; take(JSON.parse(event.data)); });
  stream.addEventListener("error", () => {
    lost = true;
    if (status.ended) stream.close(); // the server has ended
    if (fixed) { showNow(); showMessage(); }
  });
})();
