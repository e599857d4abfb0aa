// The page's plots: what is switched on, zoomed to and hovered, the same for all of them. plotly draws (it is
// unpacked from the page itself); axes.js says what. A plot is drawn when it comes near the screen.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("plots").textContent);
  const ZOOM_BEFORE_S = 2, ZOOM_AFTER_S = 10, MOST_ZOOM_SWITCHES = 4, MOST_ROWS = 500;
  const PERCENTILES = ["p50", "p95", "p99"];
  const whole = [0, data.end_s];
  const state = {
    regions: new Set(), // those switched off
    groups: new Set(["p95"]), // percentiles switched off
    range: [...whole],
    end: data.end_s,
    logarithmic: new Set(data.timelines.filter((chart) => chart.logarithmic).map((chart) => chart.key)),
    quantity: data.links.bytes_per_s.length ? "bytes_per_s" : "events_per_s",
    sharedHigh: 0,
  };
  const named = new Set();
  for (const band of data.bands) { band.named = !named.has(band.fault); named.add(band.fault); }

  const charts = () => [...data.timelines, ...data.links[state.quantity]];
  const place = (chart) => document.getElementById(`plot-${chart.key}`);
  const near = new Set(); // plots that have been near the screen

  const draw = (chart) => {
    const element = place(chart);
    if (!element || !near.has(element)) return;
    const lines = Axes.shown(chart, state);
    const size = { width: element.clientWidth, height: element.clientHeight, small: element.classList.contains("small") };
    const layout = Axes.layout(chart, lines, data.bands, state, size);
    Plotly.react(element, lines.map((line) => Axes.trace(chart, line)), layout, { displayModeBar: false, responsive: true, doubleClick: false, showTips: false });
    if (typeof Moments === "object") Moments.drawn(element, chart);
    if (element.dataset.drawn) return;
    element.dataset.drawn = "true";
    element.on("plotly_relayout", (change) => {
      if ("xaxis.range[0]" in change) zoom([change["xaxis.range[0]"], change["xaxis.range[1]"]]);
    });
    element.on("plotly_doubleclick", () => zoom(whole));
  };

  const drawAll = () => {
    state.sharedHigh = Math.max(0, ...data.links[state.quantity].map((chart) => Axes.extent(Axes.shown(chart, state), state.range)[1]));
    charts().forEach(draw);
    for (const chart of data.links[state.quantity]) document.getElementById(`note-${chart.key}`).textContent = chart.note;
  };

  const zoom = (range) => {
    const inside = [Math.max(0, range[0]), Math.min(data.end_s, range[1])];
    state.range = inside[1] - inside[0] > 0.5 ? inside : [...whole];
    syncSwitches();
    drawAll();
  };

  // Switches ------------------------------------------------------------------------------------------------------
  const switches = [];
  const syncSwitches = () => { for (const { button, on } of switches) button.setAttribute("aria-pressed", String(on())); };
  const addSwitch = (group, text, on, press, colour) => {
    const holder = document.getElementById(group);
    if (!holder) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "chip";
    button.textContent = text;
    if (colour) button.style.setProperty("--swatch", colour);
    button.classList.toggle("swatched", Boolean(colour));
    button.addEventListener("click", () => { press(); syncSwitches(); drawAll(); });
    holder.append(button);
    switches.push({ button, on });
  };
  const toggle = (set, value) => () => { if (!set.delete(value)) set.add(value); };

  const addSwitches = () => {
    for (const region of data.regions) {
      addSwitch("region-switches", region.name, () => !state.regions.has(region.name), toggle(state.regions, region.name), region.colour);
    }
    const same = (range) => () => state.range[0] === range[0] && state.range[1] === range[1];
    const addRange = (text, range) => addSwitch("range-switches", text, same(range), () => { state.range = [...range]; });
    addRange("whole run", whole);
    for (const band of data.bands.filter((b) => b.named).slice(0, MOST_ZOOM_SWITCHES)) {
      const around = (at) => [Math.max(0, at - ZOOM_BEFORE_S), Math.min(data.end_s, at + ZOOM_AFTER_S)];
      addRange(`start of ${band.fault}`, around(band.start_s));
      if (band.end_s !== null) addRange(`end of ${band.fault}`, around(band.end_s));
    }
    for (const percentile of PERCENTILES) {
      addSwitch("latency-switches", percentile, () => !state.groups.has(percentile), toggle(state.groups, percentile));
    }
    addSwitch("latency-switches", "log", () => state.logarithmic.has("latency"), toggle(state.logarithmic, "latency"));
    const quantities = { bytes_per_s: "bytes/s", events_per_s: "events/s" };
    for (const [quantity, text] of Object.entries(quantities)) {
      if (data.links[quantity].length) addSwitch("quantity-switches", text, () => state.quantity === quantity, () => { state.quantity = quantity; });
    }
    syncSwitches();
  };

  // The numbers behind a plot, as a table, made when someone opens it ----------------------------------------------
  const numbers = (details) => {
    const chart = data.timelines.find((one) => one.key === details.dataset.chart);
    const lines = Axes.shown(chart, state);
    const times = [...new Set(lines.flatMap((line) => line.x))].filter((x) => x >= state.range[0] && x <= state.range[1]).sort((a, b) => a - b).slice(0, MOST_ROWS);
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
    addRow(table.createTHead(), ["time, s", ...lines.map((line) => `${line.name}${line.group ? ` ${line.group}` : ""}, ${chart.unit}`)], "th");
    const values = lines.map((line) => new Map(line.x.map((x, i) => [x, line.y[i]])));
    const body = table.createTBody();
    for (const time of times) addRow(body, [time.toFixed(1), ...values.map((of) => (of.get(time) ?? "–").toLocaleString("en"))], "td");
    details.querySelector(".scroll").replaceChildren(table);
  };

  // Start -----------------------------------------------------------------------------------------------------------
  const start = () => {
    const observer = new IntersectionObserver((entries) => {
      const arrived = entries.filter((entry) => entry.isIntersecting).map((entry) => entry.target);
      for (const element of arrived) { near.add(element); observer.unobserve(element); }
      charts().filter((chart) => arrived.includes(place(chart))).forEach(draw);
    }, { rootMargin: "400px" });
    drawAll();
    for (const element of document.querySelectorAll(".plot")) observer.observe(element);
    document.addEventListener("themechange", drawAll);
    document.documentElement.dataset.plots = "ready";
    addEventListener("beforeprint", () => { document.querySelectorAll(".plot").forEach((element) => near.add(element)); drawAll(); });
  };

  addSwitches();
  for (const details of document.querySelectorAll("details.numbers")) {
    details.addEventListener("toggle", () => { if (details.open) numbers(details); });
  }
  const moments = () => (typeof Moments === "object" ? Moments.start(data.end_s, data.bands) : null);
  if (document.querySelector(".plot")) Unpack.plotly().then(moments).then(start);
})();
