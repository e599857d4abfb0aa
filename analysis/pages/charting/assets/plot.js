// The plots of a page: zoom, switches, pointer and keys. chart.js draws them. A plot is drawn when it comes near the
// screen, and again when its size or the theme changes.
"use strict";
const Plots = (() => {
  const FAR = 10, ZOOM_STEP = 2, LEAST_PART = 1 / 120; // smallest fraction of the axis for zooming

  // Shared state of plots that are zoomed and switched together.
  class View {
    constructor() {
      this.plots = [];
      this.zoomed = null; // [from, to], or null for the whole range
      this.hidden = { subject: new Set(), group: new Set() };
      this.flipped = new Set(); // keys of charts with the other kind of vertical axis
      this.listeners = [];
    }

    shows(one) { return !this.hidden.subject.has(one.subject) && !this.hidden.group.has(one.group); }
    toggle(kind, name) { if (!this.hidden[kind].delete(name)) this.hidden[kind].add(name); this.changed(); }
    flip(key) { if (!this.flipped.delete(key)) this.flipped.add(key); this.changed(); }
    zoom(range) { this.zoomed = range; this.changed(); }
    changed() {
      for (const plot of this.plots) plot.draw();
      for (const tell of this.listeners) tell();
    }
  }

  class Plot {
    constructor(element, chart, view) {
      this.element = element;
      this.view = view;
      this.near = this.held = false;
      this.at = null; // position of the key cursor
      this.said = element.appendChild(document.createElement("span"));
      this.said.className = "visually-hidden";
      this.said.setAttribute("aria-live", "polite");
      this.unit = element.appendChild(document.createElement("span"));
      this.unit.className = "unit";
      this.look = () => this.colours;
      this.shown = () => this.chart.series.filter((one) => this.view.shows(one));
      this.show(chart);
      view.plots.push(this);
      element.addEventListener("keydown", (event) => this.pressed(event));
      element.addEventListener("focus", () => { if (element.matches(":focus-visible")) this.point(this.at ?? this.first(), false); });
      element.addEventListener("blur", () => this.leave());
    }

    // Draws another chart from now on, or the same with new values.
    show(chart) {
      this.chart = Chart.whole(chart);
      this.unit.textContent = this.chart.y.label;
      const [from, to] = this.chart.series.length ? Chart.wholeX(this.chart) : [0, 1];
      for (const [name, value] of [["min", from], ["max", to], ["now", from]]) this.element.setAttribute(`aria-value${name}`, value);
      this.draw();
    }

    range() {
      const [from, to] = Chart.wholeX(this.chart), zoomed = this.view.zoomed;
      return zoomed ? [Math.max(from, zoomed[0]), Math.min(to, zoomed[1])] : [from, to];
    }
    logarithmic() { return (this.chart.y.kind === "logarithmic") !== this.view.flipped.has(this.chart.key); }
    shared() {
      if (!this.chart.scale) return 0;
      const others = this.view.plots.filter((other) => other.chart.scale === this.chart.scale);
      return Math.max(0, ...others.map((other) => Chart.highest(other.shown(), this.range())));
    }

    draw() {
      const size = { width: this.element.clientWidth, height: this.element.clientHeight };
      if (!this.near || !size.width || !size.height) return;
      this.colours = Object.fromEntries(["ink", "muted", "grid", "band"].map((name) => [name, Theme.colour(`var(--${name})`)]));
      const drawn = [Chart.frame(this.chart), size.width, size.height, this.logarithmic()];
      const data = Chart.aligned(this.chart, this.shown());
      if (this.uplot && drawn.every((part, i) => part === this.drawn[i])) this.uplot.setData(data);
      else {
        this.uplot?.destroy();
        this.uplot = new uPlot(Chart.options(this, size), data, this.element);
        this.uplot.over.addEventListener("pointerleave", () => this.leave());
      }
      this.drawn = drawn;
      this.element.dataset.drawn = "true";
      this.element.dispatchEvent(new Event("drawn"));
    }

    // Zooming --------------------------------------------------------------------------------------------------------
    zoom([from, to]) {
      const [first, last] = Chart.wholeX(this.chart);
      const inside = [Math.max(first, from), Math.min(last, to)];
      const part = (this.place(inside[1]) - this.place(inside[0])) / (this.place(last) - this.place(first));
      this.view.zoom(part < LEAST_PART || part >= 1 ? null : inside);
    }
    whole = () => { this.view.zoom(null); };

    // On logarithmic axes equal distances are equal factors.
    place(x) { return this.chart.x.kind === "logarithmic" ? Math.log(x) : x; }
    back(place) { return this.chart.x.kind === "logarithmic" ? Math.exp(place) : place; }
    scale(factor) {
      const [from, to] = this.range().map((x) => this.place(x)), at = this.place(this.at ?? this.back((from + to) / 2));
      const middle = Math.min(Math.max(at, from), to);
      this.zoom([middle - (middle - from) * factor, middle + (to - middle) * factor].map((x) => this.back(x)));
    }

    selected(u) {
      const { left, width } = u.select;
      if (width <= 0) return;
      const range = [left, left + width].map((at) => u.posToVal(at, "x"));
      u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
      this.zoom(range);
    }

    // Values under the pointer and by keys -----------------------------------------------------------------------------
    get xs() { return this.uplot?.data[0] ?? []; }
    // The key cursor starts at the first fault.
    first() {
      const [from] = this.range(), start = Math.max(from, this.chart.spans[0]?.start ?? from);
      return this.xs.find((x) => x >= start) ?? this.xs[0] ?? null;
    }

    pointed(u) {
      if (this.held) return;
      const { idx, left } = u.cursor;
      if (idx === null || idx === undefined || left < 0) this.readOut(null);
      else this.readOut(this.xs[idx]);
    }
    leave() { this.readOut(null); this.uplot?.setCursor({ left: -10, top: -10 }, false); }

    readOut(x) {
      const { over } = this.uplot ?? {};
      over?.querySelector(".read-out")?.remove();
      const found = x === null || !over ? [] : Chart.values(this.chart, this.shown(), x);
      if (!found.length) return "";
      const box = over.appendChild(document.createElement("div")), at = this.uplot.valToPos(x, "x");
      box.className = "read-out";
      Object.assign(box.style, at < over.clientWidth / 2 ? { left: `${at}px` } : { right: `${over.clientWidth - at}px` });
      const heading = box.appendChild(document.createElement("b"));
      heading.textContent = Chart.xText(this.chart, x);
      for (const one of found) {
        const row = box.appendChild(document.createElement("div")), swatch = document.createElement("span");
        swatch.className = "swatch";
        swatch.style.background = one.colour;
        row.append(swatch, [one.name, one.text].filter(Boolean).join(" "));
      }
      return [heading.textContent, ...found.map((one) => `${one.name} ${one.text}`)].join(", ");
    }

    nearest(x) { return this.xs.reduce((best, one, i, xs) => (Math.abs(one - x) < Math.abs(xs[best] - x) ? i : best), 0); }
    step(by) { this.point(this.xs[Math.min(Math.max(this.nearest(this.at ?? this.first()) + by, 0), this.xs.length - 1)]); }

    // Moves the key cursor to the value nearest to x, and scrolls the range to show it.
    point(x, speak = true) {
      if (x === null || !this.xs.length) return;
      this.at = this.xs[this.nearest(x)];
      const [from, to] = this.range();
      if (this.at < from || this.at > to) {
        const by = this.place(this.at) - this.place(this.at < from ? from : to);
        this.zoom([from, to].map((end) => this.back(this.place(end) + by)));
      }
      this.held = true;
      this.uplot.setCursor({ left: this.uplot.valToPos(this.at, "x"), top: this.uplot.over.clientHeight / 2 }, false);
      this.held = false;
      const text = this.readOut(this.at);
      this.element.setAttribute("aria-valuenow", this.at);
      this.element.setAttribute("aria-valuetext", Chart.xText(this.chart, this.at));
      if (speak) this.said.textContent = text;
      this.element.dispatchEvent(new CustomEvent("pointed", { detail: this.at }));
    }

    pressed(event) {
      if (event.target !== this.element || event.ctrlKey || event.altKey || event.metaKey) return;
      const far = event.shiftKey ? FAR : 1;
      const keys = {
        ArrowLeft: () => this.step(-far), ArrowRight: () => this.step(far), Home: () => this.step(-Infinity), End: () => this.step(Infinity),
        "+": () => this.scale(1 / ZOOM_STEP), "=": () => this.scale(1 / ZOOM_STEP), "-": () => this.scale(ZOOM_STEP), 0: this.whole,
      };
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    }
  }

  // The page ---------------------------------------------------------------------------------------------------------
  const all = new Map(), views = new Map(); // elements to plots, names to views
  const view = (name) => {
    if (!views.has(name)) views.set(name, new View());
    return views.get(name);
  };
  const seen = new IntersectionObserver((entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => {
    seen.unobserve(entry.target);
    all.get(entry.target).near = true;
    all.get(entry.target).draw();
  }), { rootMargin: "400px" });
  const sized = new ResizeObserver((entries) => entries.forEach((entry) => {
    const plot = all.get(entry.target), { clientWidth, clientHeight } = entry.target;
    if (plot.uplot && (plot.drawn[1] !== clientWidth || plot.drawn[2] !== clientHeight)) plot.draw();
  }));

  const add = (element, chart) => {
    const plot = new Plot(element, chart, view(chart.together || element.id));
    all.set(element, plot);
    seen.observe(element);
    sized.observe(element);
    return plot;
  };
  const of = (key) => all.get(document.getElementById(`plot-${key}`));

  // Adds a toggle button. Returns the function that updates it.
  const chip = (holder, text, isOn, press, colour) => {
    const button = holder.appendChild(document.createElement("button"));
    Object.assign(button, { type: "button", className: colour ? "chip swatched" : "chip", textContent: text });
    if (colour) button.style.setProperty("--swatch", colour);
    const sync = () => button.setAttribute("aria-pressed", String(isOn()));
    button.addEventListener("click", press);
    sync();
    return sync;
  };
  // Adds a switch for each subject in the plots of the view that data-switches names.
  const addSwitches = (holder) => {
    const of = view(holder.dataset.switches), found = new Map();
    for (const one of of.plots.flatMap((plot) => plot.chart.series)) if (!found.has(one.subject)) found.set(one.subject, one);
    for (const [subject, one] of found) {
      of.listeners.push(chip(holder, subject, () => !of.hidden.subject.has(subject), () => of.toggle("subject", subject), Theme.resolved(one.colour)));
    }
  };

  const drawAll = () => { for (const plot of all.values()) plot.draw(); };
  // Adds every plot with embedded data, and the switches.
  const start = () => {
    for (const element of document.querySelectorAll(".plot:has(> script)")) add(element, JSON.parse(element.querySelector("script").textContent));
    document.querySelectorAll("[data-switches]").forEach(addSwitches);
    document.addEventListener("themechange", drawAll);
    addEventListener("beforeprint", () => {
      document.documentElement.classList.add("printing");
      Theme.print(true);
      for (const plot of all.values()) plot.near = true;
      drawAll();
    });
    addEventListener("afterprint", () => {
      document.documentElement.classList.remove("printing");
      Theme.print(false);
    });
    document.documentElement.dataset.plots = "ready";
  };

  return { start, add, of, view, chip, drawAll };
})();
