// Follows the run: takes the whole state once, then what changes, and shows it. Once the server is gone, what
// was shown stays.
"use strict";
(() => {
  const QUANTITIES = ["p50", "p95", "p99"];
  const PHASES = { starting: "starting", planned: "starting", building: "building", running: "running", draining: "draining", collected: "collecting" };
  const find = (id) => document.getElementById(id);
  const plots = {
    throughput: new Plot.Timeline(find("throughput"), "events/s", false),
    latency: new Plot.Timeline(find("latency"), "ms", true),
  };
  const bins = { throughput: new Map(), latency: new Map() };
  const hidden = new Set();
  let fixed = null, status = {}, percentile = "p95", lost = false, drawing = false;

  const merge = (kind, series) => {
    for (const [name, rows] of Object.entries(series)) {
      if (!bins[kind].has(name)) bins[kind].set(name, new Map());
      for (const row of rows) bins[kind].get(name).set(row[0], row);
    }
  };

  const chip = (parent, text, pressed, act) => {
    const made = document.createElement("button");
    made.type = "button";
    made.className = "chip";
    made.textContent = text;
    made.setAttribute("aria-pressed", String(pressed));
    made.addEventListener("click", () => act(made));
    parent.append(made);
    return made;
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
    find("regions").replaceChildren();
    for (const region of fixed.regions) {
      const made = chip(find("regions"), region.name, !hidden.has(region.name), (button) => {
        if (!hidden.delete(region.name)) hidden.add(region.name);
        button.setAttribute("aria-pressed", String(!hidden.has(region.name)));
        draw();
      });
      made.classList.add("swatched");
      made.style.setProperty("--swatch", region.colour);
    }
    find("percentiles").replaceChildren();
    for (const name of QUANTITIES) {
      chip(find("percentiles"), name, name === percentile, (button) => {
        percentile = name;
        for (const other of find("percentiles").children) other.setAttribute("aria-pressed", String(other === button));
        draw();
      });
    }
  };

  const series = (kind, at) => fixed.regions.filter((region) => !hidden.has(region.name) && bins[kind].has(region.name)).map((region) => ({
    name: region.name,
    colour: region.colour,
    rows: [...bins[kind].get(region.name).values()].sort((a, b) => a[0] - b[0]).map((row) => [row[0], row[at]]),
  }));

  // Not more often than the screen shows, and not at all while nobody looks.
  const draw = () => {
    if (drawing) return;
    drawing = true;
    requestAnimationFrame(() => {
      drawing = false;
      if (!fixed) return;
      const end = Math.max(fixed.duration_s, status.shown_s || 0);
      const bands = (status.bands || []).map((band) => ({ ...band, end_s: band.end_s ?? Math.max(band.start_s, Math.min(status.elapsed_s || 0, end)) }));
      plots.throughput.show({ series: series("throughput", 1), bands, end });
      plots.latency.show({ series: series("latency", 1 + QUANTITIES.indexOf(percentile)), bands, end });
      find("latency-unit").textContent = `ms, ${percentile}`;
    });
  };

  const text = (id, value, digits) => {
    find(id).textContent = value === null || value === undefined ? "–" : value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  };

  const say = (message, bad) => {
    const place = find("message");
    place.hidden = !message;
    place.className = bad ? "message bad" : "message";
    place.textContent = message;
  };

  const showMessage = () => {
    if (status.report) say(`The run ${status.verdict}. Its report stands at ${status.report}`, status.verdict !== "passed");
    else if (lost) say(`The command has ended. What was seen stays here; the run is kept at ${fixed ? fixed.path : "its directory"}`, false);
    else if (status.failed) say(`Nothing more is shown here: ${status.failed}. The run goes on.`, true);
    else if (status.ended) say("The run has ended and is being analysed; its report will be named here.", false);
    else say("", false);
  };

  const showNow = () => {
    const phase = status.report ? status.verdict : status.ended ? "analysing" : PHASES[status.phase] || status.phase;
    find("phase").textContent = lost && !status.report ? "ended" : phase;
    const duration = fixed.duration_s, elapsed = Math.max(0, Math.min(status.elapsed_s || 0, duration));
    find("progress").value = elapsed / duration;
    find("elapsed").textContent = status.running ? `${elapsed.toFixed(0)} of ${duration.toFixed(0)} s` : `${duration.toFixed(0)} s are planned`;
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
    if (status.ended) stream.close(); // nothing will answer any more
    if (fixed) { showNow(); showMessage(); }
  });
  document.addEventListener("themechange", draw);
})();
