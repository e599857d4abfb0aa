// Reads the curves' values out under the pointer (or a finger). The charts are drawn without it.
"use strict";
(() => {
  const text = (value) => {
    const size = Math.abs(value);
    if (size >= 1e9) return `${+(value / 1e9).toPrecision(4)} G`;
    if (size >= 1e6) return `${+(value / 1e6).toPrecision(4)} M`;
    return size >= 1e4 ? Math.round(value).toLocaleString("en").replaceAll(",", "\u202f") : String(+value.toPrecision(4));
  };
  const date = (first, days) => {
    const day = new Date(Date.parse(`${first}T00:00:00Z`) + 864e5 * Math.round(days));
    return day.toLocaleDateString("en-GB", { weekday: "short", day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });
  };
  const nearest = (xs, x) => {
    let low = 0, high = xs.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (xs[middle] < x) low = middle + 1; else high = middle;
    }
    return low > 0 && x - xs[low - 1] < xs[low] - x ? low - 1 : low;
  };
  const element = (parent, name) => {
    const made = document.createElement("div");
    made.className = name;
    parent.append(made);
    return made;
  };

  for (const chart of document.querySelectorAll(".chart[data-chart]")) {
    const area = chart.querySelector(".area");
    let data, line, box;
    const hide = () => { line?.remove(); box?.remove(); line = box = undefined; };
    const show = (event) => {
      data ??= JSON.parse(chart.dataset.chart);
      const bounds = area.getBoundingClientRect();
      const share = Math.min(Math.max((event.clientX - bounds.left) / bounds.width, 0), 1);
      const x = data.x.low + share * (data.x.high - data.x.low);
      const found = data.curves.filter((curve) => curve.x.length).map((curve) => {
        const at = nearest(curve.x, x);
        return { name: curve.name, colour: curve.colour, x: curve.x[at], y: curve.y[at] };
      });
      if (!found.length) return;
      line ??= element(area, "pointer");
      box ??= element(area, "read-out");
      const at = found.map((one) => one.x).sort((a, b) => Math.abs(a - x) - Math.abs(b - x))[0];
      const place = (at - data.x.low) / (data.x.high - data.x.low);
      line.style.left = `${100 * place}%`;
      box.style.left = place < 0.5 ? `${100 * place}%` : "auto";
      box.style.right = place < 0.5 ? "auto" : `${100 * (1 - place)}%`;
      box.replaceChildren();
      const heading = document.createElement("b");
      heading.textContent = data.x.day ? date(data.x.day, at) : `${text(at)} ${data.x.unit}`;
      box.append(heading);
      for (const one of found) {
        const row = document.createElement("div");
        const swatch = document.createElement("span");
        swatch.className = "swatch";
        swatch.style.background = one.colour;
        const value = one.y === null ? "not measured" : `${text(one.y)} ${data.y.unit}`;
        row.append(swatch, one.name ? `${one.name}: ${value}` : value);
        box.append(row);
      }
    };
    chart.addEventListener("pointermove", show);
    chart.addEventListener("pointerdown", show);
    chart.addEventListener("pointerleave", hide);
  }
})();
