// From a chart's data and what is switched on to plotly's traces and layout. Draws nothing and keeps no state.
"use strict";
const Axes = (() => {
  const LABEL_HEIGHT = 15; // pixels between two direct labels
  const BAND_FONT = 12; // pixels, of the names of faults
  const HEADROOM = 1.14; // above the highest value, for the names of faults
  const HOVER = { ms: "%{y:,.1f} ms", "events/s": "%{y:,.0f} events/s", "B/s": "%{y:.3~s}B/s" };
  const GROUP_DASH = { p95: "dash", p99: "dot" };
  const GROUP_WIDTH = { p95: 1.25, p99: 1.25 };

  const theme = () => ({
    ink: Theme.colour("var(--ink)"),
    muted: Theme.colour("var(--muted)"),
    grid: Theme.colour("var(--grid)"),
    surface: Theme.colour("var(--surface)"),
    band: Theme.colour("var(--band)"),
  });

  const shown = (chart, state) =>
    chart.lines.filter((line) => !state.regions.has(line.region) && !state.groups.has(line.group));

  // Smallest and largest value in sight.
  const extent = (lines, range) => {
    let low = Infinity, high = 0;
    for (const line of lines) {
      line.x.forEach((x, i) => {
        const y = line.y[i];
        if (y === null || x < range[0] || x > range[1]) return;
        if (y > 0 && y < low) low = y;
        if (y > high) high = y;
      });
    }
    return [low, high];
  };

  // A limit far above what is seen would flatten the lines: then the caption alone gives it.
  const nearLimit = (chart, high) => chart.limit !== null && chart.limit <= high * 3;

  const yRange = (chart, lines, state) => {
    let [low, high] = extent(lines, state.range);
    if (state.sharedHigh && chart.links.length) high = state.sharedHigh;
    if (nearLimit(chart, high)) high = Math.max(high, chart.limit);
    if (high <= 0) return [0, 1];
    if (!state.logarithmic.has(chart.key)) return [0, high * HEADROOM];
    const bottom = Math.log10(low) - 0.05;
    return [bottom, bottom + (Math.log10(high) - bottom) * HEADROOM];
  };

  const trace = (chart, line) => ({
    type: "scatter",
    mode: "lines",
    name: line.group.startsWith("p") ? `${line.name} ${line.group}` : line.name,
    x: line.x,
    y: line.y,
    connectgaps: false,
    line: {
      color: line.colour,
      dash: GROUP_DASH[line.group] || line.dash,
      width: GROUP_WIDTH[line.group] || 2,
      shape: "linear",
    },
    opacity: GROUP_DASH[line.group] ? 0.85 : 1,
    hovertemplate: HOVER[chart.unit],
    ...(line.bar.length ? { error_y: { type: "data", array: line.bar, width: 0, thickness: 1, color: line.colour } } : {}),
  });

  // Direct labels at the right edge, moved apart where lines end close together.
  const labels = (chart, lines, state, range, height) => {
    const wanted = [];
    const first = new Set();
    for (const line of lines) {
      const text = line.name;
      if (first.has(text)) continue; // one label for all percentiles of a region
      let last = null;
      line.x.forEach((x, i) => { if (x <= state.range[1] && line.y[i] !== null) last = line.y[i]; });
      if (last === null) continue;
      first.add(text);
      const value = state.logarithmic.has(chart.key) ? Math.log10(last) : last;
      wanted.push({ text, colour: line.colour, at: ((value - range[0]) / (range[1] - range[0])) * height });
    }
    wanted.sort((a, b) => a.at - b.at);
    spread(wanted, height);
    return wanted.map((label) => ({
      xref: "paper", yref: "paper", x: 1, y: label.at / height, xanchor: "left", yanchor: "middle", xshift: 5,
      showarrow: false, text: escape(label.text), font: { color: Theme.readable(label.colour), size: 12, weight: 700 },
    }));
  };

  // Labels that would cover each other become a cluster around the middle of their lines' ends.
  const spread = (wanted, height) => {
    let clusters = wanted.map((label) => ({ labels: [label], middle: label.at }));
    const half = (cluster) => (cluster.labels.length * LABEL_HEIGHT) / 2;
    const settle = (cluster) => { cluster.middle = Math.min(Math.max(cluster.middle, half(cluster)), height - half(cluster)); };
    for (let merged = true; merged;) {
      merged = false;
      clusters.forEach(settle);
      for (let i = 1; i < clusters.length && !merged; i += 1) {
        const [below, above] = [clusters[i - 1], clusters[i]];
        if (below.middle + half(below) <= above.middle - half(above)) continue;
        const labels = [...below.labels, ...above.labels];
        const middle = labels.reduce((sum, label) => sum + label.at, 0) / labels.length;
        clusters.splice(i - 1, 2, { labels, middle });
        merged = true;
      }
    }
    for (const cluster of clusters) {
      cluster.labels.forEach((label, i) => { label.at = cluster.middle - half(cluster) + (i + 0.5) * LABEL_HEIGHT; });
    }
  };

  const escape = (text) => text.replace(/&/g, "&amp;").replace(/[<]/g, "&lt;").replace(/[>]/g, "&gt;");

  const pen = document.createElement("canvas").getContext("2d");
  const textWidth = (text, size) => {
    pen.font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
    return pen.measureText(text).width;
  };

  // width: of the plot's inside, in pixels. Names that would overlap are left out, until there is room for them.
  const faults = (chart, bands, state, look, width) => {
    const shapes = [], names = [];
    const pixels = (seconds) => (seconds - state.range[0]) / (state.range[1] - state.range[0]) * width;
    const free = []; // by row
    for (const band of bands) {
      const end = band.end_s ?? state.end;
      if (end < state.range[0] || band.start_s > state.range[1]) continue;
      shapes.push({
        type: "rect", xref: "x", yref: "paper", x0: band.start_s, x1: end, y0: 0, y1: 1,
        fillcolor: look.band, line: { width: 0 }, layer: "below",
      });
      const touches = !chart.links.length || band.links.includes(chart.links[0]);
      const start = Math.max(band.start_s, state.range[0]);
      if (!band.named || !touches || pixels(start) < (free[band.row] ?? -Infinity)) continue;
      free[band.row] = pixels(start) + textWidth(band.label, BAND_FONT) + 8;
      names.push({
        xref: "x", yref: "paper", x: start, y: 1, xanchor: "left", yanchor: "top",
        xshift: 3, yshift: -band.row * (BAND_FONT + 3), showarrow: false, text: escape(band.label), font: { color: look.muted, size: BAND_FONT },
      });
    }
    return { shapes, names };
  };

  const layout = (chart, lines, bands, state, size) => {
    const look = theme();
    const margin = { l: size.small ? 46 : 54, r: size.small ? 54 : 34, t: 26, b: 38 };
    const range = yRange(chart, lines, state);
    const { shapes, names } = faults(chart, bands, state, look, size.width - margin.l - margin.r);
    if (nearLimit(chart, extent(lines, state.range)[1])) {
      shapes.push({ type: "line", xref: "paper", x0: 0, x1: 1, yref: "y", y0: chart.limit, y1: chart.limit,
        line: { color: look.muted, width: 1, dash: "dash" } });
      names.push({ xref: "paper", yref: "y", x: 1, y: chart.limit, xanchor: "right", yanchor: "bottom", xshift: -3,
        showarrow: false, text: size.small ? "rate" : "configured rate", font: { color: look.muted, size: 11 } });
    }
    const height = size.height - margin.t - margin.b;
    const axis = { gridcolor: look.grid, linecolor: look.grid, tickfont: { color: look.muted, size: 12 }, zeroline: false, automargin: false };
    return {
      autosize: true, height: size.height, margin, showlegend: false, shapes,
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, color: look.ink, size: 12 },
      dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
      hovermode: "x unified",
      hoverlabel: { bgcolor: look.surface, bordercolor: look.grid, font: { color: look.ink, size: 12 } },
      xaxis: { ...axis, range: [...state.range], showgrid: false, ticks: "outside", ticklen: 4, tickcolor: look.grid,
        nticks: size.width < 420 ? 5 : 8, ticksuffix: "", unifiedhovertitle: { text: "at %{x:.1f} s" },
        showspikes: true, spikemode: "across", spikethickness: 1, spikedash: "solid", spikecolor: look.muted, spikesnap: "hovered data",
        title: { text: "seconds since start", font: { color: look.muted, size: 12 }, standoff: 6 } },
      yaxis: { ...axis, range, fixedrange: true, type: state.logarithmic.has(chart.key) ? "log" : "linear",
        tickformat: chart.unit === "ms" ? ",~r" : "~s", nticks: size.small ? 4 : 6, dtick: state.logarithmic.has(chart.key) ? "D2" : undefined },
      annotations: [
        ...names,
        ...labels(chart, lines, state, range, height),
        { xref: "paper", yref: "paper", x: 0, y: 1, xanchor: "left", yanchor: "bottom", xshift: -margin.l + 2, yshift: 5,
          showarrow: false, text: escape(chart.y_label), font: { color: look.muted, size: 12 } },
      ],
    };
  };

  return { shown, trace, layout, extent };
})();
