// A sweep's plots: lines with bands from the least to the most over repetitions, references in grey, names at the ends.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("plots").textContent);
  const HEADROOM = 1.14, LABEL_GAP = 15, MARKERS_MAX = 30, PHONE = 420;
  const alpha = (hex, part) => `rgba(${[1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)).join(",")},${part})`;
  const flat = (lines, name) => lines.flatMap((line) => line[name]);

  const band = (line) => ({
    x: [...line.x, ...[...line.x].reverse()], y: [...line.high, ...[...line.low].reverse()],
    fill: "toself", fillcolor: alpha(line.colour, 0.18), line: { width: 0 }, mode: "lines", hoverinfo: "skip",
  });
  const points = (chart) => (line) => ({
    x: line.x, y: line.y, name: line.name, mode: "markers", marker: { size: 7, color: line.colour },
    error_y: {
      type: "data", symmetric: false, color: line.colour, thickness: 1.2, width: 3,
      array: line.y.map((y, i) => line.high[i] - y), arrayminus: line.y.map((y, i) => y - line.low[i]),
    },
    text: line.x.map((x, i) => `${chart.x_names[Math.round(x)]}: ${line.low[i].toPrecision(3)} to ${line.high[i].toPrecision(3)}`),
    hovertemplate: `${line.name}: %{y:.3~g}, %{text}<extra><\/extra>`,
  });
  const trace = (line) => ({
    x: line.x, y: line.y, name: line.name, mode: line.x.length > MARKERS_MAX ? "lines" : "lines+markers",
    line: { color: line.colour, dash: line.dash, width: 2 }, marker: { size: 6 },
    hovertemplate: `${line.name}: %{y:.4s} at %{x:.4~g}<extra><\/extra>`,
  });

  const extent = (chart, axis) => {
    const values = flat(chart.lines, axis);
    if (axis === "y") values.push(...flat(chart.lines, "high"), ...chart.references.filter((one) => !one.diagonal).map((one) => one.high));
    const known = values.filter((value) => Number.isFinite(value) && (value > 0 || !chart[`${axis}_logarithmic`]));
    const [low, high] = [Math.min(...known), Math.max(...known)];
    if (!chart[`${axis}_logarithmic`]) return [0, high * (axis === "y" ? HEADROOM : 1.03) || 1];
    const [from, to] = [Math.log10(low), Math.log10(high)];
    const margin = Math.max(0.05, 0.04 * (to - from));
    return [from - margin, to + margin];
  };

  // Labels that would cover each other are moved apart, from the bottom up.
  const labels = (chart, range, height) => {
    const place = (y) => ((chart.y_logarithmic ? Math.log10(y) : y) - range[0]) / (range[1] - range[0]);
    const ends = chart.lines.map((line) => ({ line, at: Math.min(1, Math.max(0, place(line.y.at(-1)))) })).sort((a, b) => a.at - b.at);
    const gap = LABEL_GAP / height;
    ends.forEach((end, i) => { if (i && end.at < ends[i - 1].at + gap) end.at = ends[i - 1].at + gap; });
    const over = ends.length ? Math.max(0, ends.at(-1).at - 1) : 0;
    return ends.map(({ line, at }) => ({
      text: line.name, x: 1.012, xref: "paper", xanchor: "left", y: at - over, yref: "paper", yanchor: "middle", showarrow: false,
      font: { color: Theme.readable(line.colour), size: 12, weight: 700 },
    }));
  };

  const references = (chart, ranges, muted) => {
    const shapes = [], annotations = [];
    for (const one of chart.references) {
      if (one.diagonal) {
        const low = Math.max(ranges.x[0], ranges.y[0]), high = Math.min(ranges.x[1], ranges.y[1]);
        shapes.push({ type: "line", x0: 10 ** low, x1: 10 ** high, y0: 10 ** low, y1: 10 ** high, line: { color: muted, width: 1, dash: "dash" }, layer: "below" });
        annotations.push({ text: one.label, x: high, y: high, xanchor: "right", yanchor: "bottom", showarrow: false, font: { color: muted, size: 11 } });
        continue;
      }
      const wide = one.high > one.low;
      shapes.push({
        type: wide ? "rect" : "line", xref: "paper", x0: 0, x1: 1, y0: one.low, y1: one.high, layer: "below",
        fillcolor: muted, opacity: wide ? 0.25 : 1, line: { color: muted, width: wide ? 0 : 1, dash: "dash" },
      });
      annotations.push({
        text: one.label, xref: "paper", x: 0.005, xanchor: "left", yanchor: "bottom", showarrow: false,
        y: chart.y_logarithmic ? Math.log10(one.high) : one.high, font: { color: muted, size: 11 },
      });
    }
    return { shapes, annotations };
  };

  const draw = (chart) => {
    const element = document.getElementById(`plot-${chart.key}`);
    const [ink, muted, grid] = ["--ink", "--muted", "--grid"].map((name) => Theme.colour(`var(${name})`));
    const phone = element.clientWidth < PHONE;
    const longest = Math.max(0, ...chart.lines.map((line) => line.name.length));
    const margin = { l: phone ? 44 : 56, r: Math.min(150, 14 + 7.6 * longest), t: 26, b: chart.x_names.length ? 118 : 44 };
    const ranges = { x: extent(chart, "x"), y: extent(chart, "y") };
    const marks = references(chart, ranges, muted);
    const axis = { gridcolor: grid, zeroline: false, linecolor: grid, tickfont: { color: muted }, fixedrange: true };
    const log = (on, range) => ({ type: on ? "log" : "linear", range, ...(on ? { dtick: 1, exponentformat: "power" } : { tickformat: "~s" }) });
    const named = chart.x_names.length ? { tickvals: chart.x_ticks, ticktext: chart.x_names, tickangle: -45 } : null;
    const ticks = named ?? (chart.x_ticks.length ? { tickvals: chart.x_ticks, tickformat: "~g" } : {});
    if (named) ranges.x = [-0.5, chart.x_names.length - 0.5];
    const layout = {
      margin, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: ink, size: 12 }, showlegend: false,
      hovermode: "closest", width: element.clientWidth, height: element.clientHeight,
      xaxis: { ...axis, ...log(chart.x_logarithmic, ranges.x), ...ticks, showgrid: false, ticks: "outside", ticklen: 3, tickcolor: grid, title: { text: chart.x_label, font: { color: muted, size: 12 }, standoff: 6 } },
      yaxis: { ...axis, ...log(chart.y_logarithmic, ranges.y), ...(named ? { tickformat: "~g" } : {}) },
      shapes: marks.shapes,
      annotations: [
        ...marks.annotations,
        ...labels(chart, ranges.y, element.clientHeight - margin.t - margin.b),
        { text: chart.y_label, xref: "paper", x: 0, xanchor: "left", yref: "paper", y: 1, yanchor: "bottom", yshift: 5, xshift: -margin.l + 6, showarrow: false, font: { color: muted, size: 12 } },
      ],
    };
    const traces = named ? chart.lines.map(points(chart)) : [...chart.lines.filter((line) => line.low.length).map(band), ...chart.lines.map(trace)];
    Plotly.react(element, traces, layout, { displayModeBar: false, showTips: false });
    element.dataset.drawn = "true";
  };

  const drawAll = () => data.charts.forEach(draw);
  Unpack.plotly().then(() => {
    drawAll();
    document.addEventListener("themechange", drawAll);
    let waiting = 0;
    addEventListener("resize", () => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(drawAll); });
    document.documentElement.dataset.plots = "ready";
  });
})();
