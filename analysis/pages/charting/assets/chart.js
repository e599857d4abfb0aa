// Draws one chart of the model (analysis/pages/charting/chart_model.py): turns its data, zoom and switches into
// uPlot options. uPlot provides scales, axes, cursor and selection; this file draws lines, bands and names on its canvas.
// It keeps no state; plot.js does.
"use strict";
const Chart = (() => {
  const HEADROOM = 1.14, NEAR = 3; // as in chart_model.py
  const LABEL_HEIGHT = 15, SMALL = 12, TOP = 24, MARGIN = 0.08, NARROW_PX = 420, TALL_PX = 250;
  const DASHES = { dash: [7, 4], dot: [2, 3], dashdot: [7, 3, 2, 3] };
  const STRIP = 4, STRIP_ROW = 17, STRIP_ALPHA = 0.55, SHADES_MAX = 2;
  const BAND_ALPHA = 0.22, FAINT_ALPHA = 0.1;
  const USUAL = { low: [], high: [], label: "", group: "", dash: "solid", width: 2, form: "line", markers: false, faint: false, read_out: true };

  // Default values of fields that the data leave out.
  const whole = (given) => {
    if (given.whole) return given;
    const axis = (one) => ({ unit: "", kind: "linear", low: null, high: null, from_zero: true, ticks: [], names: [], ...one });
    return {
      spans: [], references: [], marks: [], links: [], together: "", scale: "", note: "", ...given, whole: true,
      x: axis(given.x), y: axis(given.y),
      series: given.series.map((one) => ({ ...USUAL, subject: one.name, ...one, x: given.xs[one.x] })),
    };
  };

  // Ranges ---------------------------------------------------------------------------------------------------------
  const known = (values, logarithmic) => values.filter((value) => Number.isFinite(value) && (value > 0 || !logarithmic));
  const outer = (values) => values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);

  const wholeX = (chart) => {
    const { kind, low, high, from_zero, names } = chart.x;
    if (kind === "category") return [-0.5, names.length - 0.5];
    const [first, last] = outer(known(chart.series.flatMap((one) => one.x), kind === "logarithmic"));
    if (!(last >= first) && (low === null || high === null)) return [low ?? 0, high ?? 1];
    if (kind === "logarithmic") return spaced(low ?? first, high ?? last);
    return [low ?? (from_zero ? Math.min(0, first) : first), high ?? (last + 0.03 * (last - Math.min(0, first)) || 1)];
  };
  // Adds a margin at both ends of a logarithmic axis.
  const spaced = (low, high) => {
    const room = Math.max(10 ** 0.05, (high / low) ** 0.04);
    return [low / room, high * room];
  };

  // Every visible value with its bounds.
  const inSight = (series, [from, to]) => series.flatMap((one) => {
    const found = [];
    one.x.forEach((x, i) => { if (x >= from && x <= to) found.push(one.y[i], one.low[i], one.high[i]); });
    return found.filter((value) => value !== null && value !== undefined);
  });

  const yRange = (chart, series, range, logarithmic, shared) => {
    const [low, high] = outer([...known(inSight(series, range), logarithmic), ...(shared > 0 ? [shared] : [])]);
    if (!(high >= low)) return logarithmic ? [1, 10] : [0, 1];
    const top = outer([high, ...chart.references.filter((one) => !one.diagonal && !(one.near && one.high > NEAR * high)).map((one) => one.high)])[1];
    if (logarithmic && chart.y.low > 0 && chart.y.high !== null) return [chart.y.low, chart.y.high];
    if (logarithmic) {
      const bottom = low / 10 ** Math.max(0.05, 0.04 * Math.log10(top / low));
      return [bottom, bottom * (Math.max(top, low * 1.5) / bottom) ** HEADROOM];
    }
    const { low: least, high: most, from_zero } = chart.y;
    if (least !== null && most !== null) return [least, most];
    if (from_zero) return [Math.min(0, low), top > 0 ? top * HEADROOM : low < 0 ? 0 : 1];
    const room = (top - low) * MARGIN || Math.abs(top) * MARGIN || 1;
    return [low - room, top + room * 2];
  };

  // Ticks ----------------------------------------------------------------------------------------------------------
  const decades = (low, high) => {
    const found = [], factors = high / low > 1000 ? [1] : [1, 2, 5];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
      found.push(...factors.map((factor) => +(factor * 10 ** power).toPrecision(3)));
    }
    return found.filter((value) => value >= low && value <= high);
  };
  const days = (low, high, most) => {
    const all = [];
    for (let day = Math.ceil(low); day <= high; day += 1) all.push(day);
    const firsts = all.filter(Numbers.isFirst), shown = firsts.length > 1 ? firsts : all;
    return shown.filter((_, i) => i % Math.ceil(shown.length / most) === 0);
  };

  const thinned = (values, most) => values.filter((_, i) => i % Math.max(1, Math.ceil(values.length / most)) === 0);
  const splitsOf = (axis, logarithmic) => {
    if (axis.kind === "category") return () => axis.names.map((_, i) => i);
    if (axis.ticks.length) return () => [...axis.ticks];
    if (logarithmic) return (u, i, low, high) => thinned(decades(low, high), i ? u.bbox.height / devicePixelRatio / 18 : u.bbox.width / devicePixelRatio / 62);
    if (axis.kind === "date") return (u, _i, low, high) => days(low, high, Math.max(2, u.bbox.width / devicePixelRatio / 90));
    return undefined; // uPlot's default: round numbers
  };
  const written = (axis, logarithmic) => (_, values) => {
    if (axis.kind === "category") return [...axis.names];
    if (axis.kind === "date") return Numbers.days(values);
    return logarithmic ? Numbers.decades(values) : Numbers.ticks(values);
  };

  // Drawing on the canvas ------------------------------------------------------------------------------------------
  const clipped = (u, draw) => {
    const { left, top, width, height } = u.bbox;
    u.ctx.save();
    u.ctx.beginPath();
    u.ctx.rect(left, top, width, height);
    u.ctx.clip();
    draw(u.ctx, { left, top, width, height, right: left + width, bottom: top + height });
    u.ctx.restore();
  };
  const across = (u, x) => u.valToPos(x, "x", true);
  // Values that a logarithmic axis cannot show are drawn below it.
  const down = (u, y) => (u.scales.y.distr === 3 && y <= 0 ? u.bbox.top + 2 * u.bbox.height : u.valToPos(y, "y", true));

  const line = (u, series) => {
    const stroke = new Path2D();
    let pen = false;
    series.x.forEach((x, i) => {
      const y = series.y[i];
      if (y === null || y === undefined) { pen = false; return; }
      const at = [across(u, x), down(u, y)];
      if (pen) stroke.lineTo(...at);
      else { stroke.moveTo(...at); stroke.lineTo(at[0] + 1, at[1]); } // makes a single point visible
      pen = true;
    });
    return { stroke, fill: null };
  };

  const band = (u, pen, series, colour) => {
    const there = series.x.map((x, i) => [across(u, x), series.high[i], series.low[i]]).filter(([, high, low]) => Number.isFinite(high) && Number.isFinite(low));
    if (!there.length) return;
    pen.globalAlpha = series.faint ? FAINT_ALPHA : BAND_ALPHA;
    pen.fillStyle = colour;
    pen.beginPath();
    for (const [x, high] of there) pen.lineTo(x, down(u, high));
    for (const [x, , low] of there.reverse()) pen.lineTo(x, down(u, low));
    pen.fill();
    pen.globalAlpha = 1;
  };
  const bars = (u, pen, series, colour) => {
    const dot = devicePixelRatio;
    pen.strokeStyle = colour;
    pen.lineWidth = 1.2 * dot;
    pen.beginPath();
    series.x.forEach((value, i) => {
      const x = across(u, value);
      for (const end of [series.low[i], series.high[i]]) { pen.moveTo(x - 3 * dot, down(u, end)); pen.lineTo(x + 3 * dot, down(u, end)); }
      pen.moveTo(x, down(u, series.low[i]));
      pen.lineTo(x, down(u, series.high[i]));
    });
    pen.stroke();
  };
  const dots = (u, pen, series, colour) => {
    pen.fillStyle = colour;
    series.x.forEach((x, i) => {
      if (series.y[i] === null) return;
      pen.beginPath();
      pen.arc(across(u, x), down(u, series.y[i]), (series.form === "dots" ? 2.5 : 3) * devicePixelRatio, 0, 2 * Math.PI);
      pen.fill();
    });
  };

  const hatch = (pen, colour) => {
    const tile = document.createElement("canvas"), ink = tile.getContext("2d"), side = 8 * devicePixelRatio;
    tile.width = tile.height = side;
    ink.strokeStyle = colour;
    ink.lineWidth = devicePixelRatio;
    ink.beginPath();
    for (const from of [-side, 0, side]) { ink.moveTo(from, side); ink.lineTo(from + side, 0); }
    ink.stroke();
    return pen.createPattern(tile, "repeat");
  };
  // Two overlapping spans are darker, more are not, so that curves stay visible.
  const shade = (pen, area, colour, stretches) => {
    const edges = [...new Set(stretches.flat())].sort((one, other) => one - other);
    pen.fillStyle = colour;
    edges.slice(1).forEach((to, i) => {
      const from = edges[i], count = stretches.filter(([begin, end]) => begin <= from && to <= end).length;
      for (let times = Math.min(count, SHADES_MAX); times > 0; times -= 1) pen.fillRect(from, area.top, to - from, area.height);
    });
  };
  // Background traffic is a strip along the bottom; on charts of links it is a line.
  const isDrawn = (chart, span) => !span.other || !chart.links.length;
  const spans = (plot) => (u) => clipped(u, (pen, area) => {
    const look = plot.look(), shaded = [];
    for (const span of plot.chart.spans) {
      const from = across(u, span.start), to = span.end === null || span.end === undefined ? area.right : across(u, span.end);
      if (to < area.left || from > area.right || !isDrawn(plot.chart, span)) continue;
      if (span.other) {
        const foot = area.bottom - (span.row ?? 0) * STRIP_ROW * devicePixelRatio;
        pen.globalAlpha = STRIP_ALPHA;
        pen.fillStyle = look.muted;
        pen.fillRect(from, foot - STRIP * devicePixelRatio, Math.max(to - from, devicePixelRatio), STRIP * devicePixelRatio);
        pen.globalAlpha = 1;
        continue;
      }
      if (!span.hatched) {
        shaded.push([Math.round(from), Math.round(Math.max(to, from + devicePixelRatio))]);
        continue;
      }
      pen.fillStyle = hatch(pen, look.grid);
      pen.fillRect(from, area.top, Math.max(to - from, devicePixelRatio), area.height);
    }
    shade(pen, area, look.band, shaded);
  });

  const isNear = (u, one) => one.high <= u.scales.y.max;
  const references = (plot) => (u) => clipped(u, (pen, area) => {
    pen.strokeStyle = pen.fillStyle = plot.look().muted;
    pen.lineWidth = devicePixelRatio;
    pen.setLineDash([5, 4].map((part) => part * devicePixelRatio));
    for (const one of plot.chart.references.filter((each) => each.diagonal || isNear(u, each))) {
      pen.beginPath();
      if (one.diagonal) {
        const { x, y } = u.scales, low = Math.max(x.min, y.min), high = Math.min(x.max, y.max);
        pen.moveTo(across(u, low), down(u, low));
        pen.lineTo(across(u, high), down(u, high));
      } else if (one.high > one.low) {
        pen.globalAlpha = 0.25;
        pen.fillRect(area.left, down(u, one.high), area.width, down(u, one.low) - down(u, one.high));
        pen.globalAlpha = 1;
      } else {
        pen.moveTo(area.left, down(u, one.low));
        pen.lineTo(area.right, down(u, one.low));
      }
      pen.stroke();
    }
    pen.setLineDash([]);
  });

  // Names over the canvas ------------------------------------------------------------------------------------------
  const measure = document.createElement("canvas").getContext("2d");
  const textWidth = (text, weight = "") => {
    measure.font = `${weight} ${SMALL}px ${getComputedStyle(document.body).fontFamily}`;
    return measure.measureText(text).width;
  };
  const name = (holder, kind, text, style) => {
    const made = document.createElement("span");
    made.className = kind;
    made.textContent = text;
    Object.assign(made.style, style);
    holder.append(made);
  };
  const px = (value) => `${value.toFixed(1)}px`;

  // Names that would overlap in their row are left out until there is room.
  const spanNames = (u, chart, holder) => {
    const free = [], named = new Set(), width = u.over.clientWidth;
    for (const span of chart.spans) {
      const start = u.valToPos(span.start, "x"), end = span.end === null || span.end === undefined ? width : u.valToPos(span.end, "x");
      const about = isDrawn(chart, span) && (!chart.links.length || !span.links?.length || span.links.some((link) => chart.links.includes(link)));
      if (!span.label || end <= 0 || start >= width || !about || named.has(span.label)) continue;
      const left = Math.max(0, start), row = span.row ?? 0;
      if (span.other) {
        named.add(span.label);
        name(holder, "span-name", span.label, { left: px(left + 3), top: "auto", bottom: px(row * STRIP_ROW + STRIP) });
        continue;
      }
      if (left < (free[row] ?? -Infinity)) continue;
      named.add(span.label);
      free[row] = left + textWidth(span.label) + 8;
      name(holder, "span-name", span.label, { left: px(left + 3), top: px(1 + row * LABEL_HEIGHT) });
    }
  };

  // Overlapping labels become a cluster around the mean height of their lines' ends.
  const spread = (wanted, height) => {
    const clusters = wanted.map((label) => ({ labels: [label], middle: label.at }));
    const half = (cluster) => (cluster.labels.length * LABEL_HEIGHT) / 2;
    for (let merged = true; merged;) {
      merged = false;
      for (const cluster of clusters) cluster.middle = Math.min(Math.max(cluster.middle, half(cluster)), Math.max(height - half(cluster), half(cluster)));
      for (let i = 1; i < clusters.length && !merged; i += 1) {
        const [above, below] = [clusters[i - 1], clusters[i]];
        if (above.middle + half(above) <= below.middle - half(below)) continue;
        const labels = [...above.labels, ...below.labels];
        clusters.splice(i - 1, 2, { labels, middle: labels.reduce((sum, label) => sum + label.at, 0) / labels.length });
        merged = true;
      }
    }
    for (const cluster of clusters) cluster.labels.forEach((label, i) => { label.at = cluster.middle - half(cluster) + (i + 0.5) * LABEL_HEIGHT; });
  };
  const lineNames = (u, shown, holder) => {
    const wanted = new Map();
    for (const one of shown) {
      if (!one.label || wanted.has(one.label)) continue;
      const last = one.y.findLast((y, i) => y !== null && one.x[i] >= u.scales.x.min && one.x[i] <= u.scales.x.max);
      if (last !== undefined) wanted.set(one.label, { text: one.label, colour: one.colour, at: down(u, last) / devicePixelRatio - u.bbox.top / devicePixelRatio });
    }
    const labels = [...wanted.values()].sort((a, b) => a.at - b.at);
    spread(labels, u.over.clientHeight);
    for (const label of labels) name(holder, "line-name", label.text, { top: px(label.at), color: Theme.readable(label.colour) });
  };

  const names = (plot) => (u) => {
    const { chart } = plot;
    u.over.querySelector(".names")?.remove();
    const holder = document.createElement("div");
    holder.className = "names";
    u.over.append(holder);
    spanNames(u, chart, holder);
    lineNames(u, plot.shown(), holder);
    for (const one of chart.references) {
      if (one.diagonal) name(holder, "reference-name", one.label, { right: "4px", top: "2px" });
      else if (isNear(u, one)) name(holder, "reference-name", one.label, { left: "4px", bottom: px(u.over.clientHeight - u.valToPos(one.high, "y") + 1) });
    }
    for (const mark of chart.marks) {
      const at = u.valToPos(mark.at, "x");
      if (at < 0 || at > u.over.clientWidth) continue;
      const made = document.createElement("span");
      made.className = `mark ${mark.status ?? ""}${at > 0.6 * u.over.clientWidth ? " left" : ""}`;
      made.style.left = px(at);
      name(made, "mark-name", mark.label, {});
      holder.append(made);
    }
  };

  // uPlot options -----------------------------------------------------------------------------------------------
  // All x values, and each series' values at them, for the cursor.
  const aligned = (chart, shown) => {
    const xs = [...new Set(shown.filter((one) => one.read_out).flatMap((one) => one.x))].sort((a, b) => a - b);
    const columns = chart.series.map((one) => {
      if (!one.read_out || !shown.includes(one)) return Array(xs.length).fill(undefined);
      const values = new Map(one.x.map((x, i) => [x, one.y[i]]));
      return xs.map((x) => values.get(x));
    });
    return [xs, ...columns];
  };

  // Options that stay when a plot only gets new values.
  const frame = (chart) => JSON.stringify([chart.x, chart.y.kind, chart.series.map((one) => [one.name, one.dash, one.width, one.label])]);

  // plot: the state in plot.js: chart, shown(), range(), shared(), logarithmic(), look(), and the drag handler.
  const options = (plot, size) => {
    const { chart, look } = plot, logarithmic = { x: chart.x.kind === "logarithmic", y: plot.logarithmic() };
    const colour = (one) => Theme.resolved(one.colour);
    const font = `${SMALL}px ${getComputedStyle(document.body).fontFamily}`;
    const axis = (one, log) => ({
      font, labelFont: font, stroke: () => look().muted, splits: splitsOf(one, log), filter: (_, splits) => splits, values: written(one, log),
      ticks: { stroke: () => look().grid, width: 1, size: 4 }, border: { show: false },
    });
    const slanted = chart.x.kind === "category" && chart.x.names.length * 60 > size.width;
    const longest = Math.max(0, ...chart.x.names.map((text) => textWidth(text)));
    const right = Math.max(10, ...chart.series.map((one) => (one.label ? 14 + textWidth(one.label, "700") : 0)));
    return {
      ...size,
      padding: [TOP, Math.min(right, 0.42 * size.width), 0, 0],
      legend: { show: false },
      cursor: {
        y: false, drag: { x: true, y: false, setScale: false, dist: 4 }, points: { size: 7 },
        bind: { dblclick: () => plot.whole },
      },
      select: { over: true },
      scales: {
        x: { time: false, distr: logarithmic.x ? 3 : 1, range: () => plot.range() },
        y: { distr: logarithmic.y ? 3 : 1, range: () => yRange(plot.chart, plot.shown(), plot.range(), logarithmic.y, plot.shared()) },
      },
      axes: [
        { ...axis(chart.x, logarithmic.x), grid: { show: false }, space: size.width < NARROW_PX ? 60 : 80, label: chart.x.label, labelSize: 18,
          labelGap: 0, ...(slanted ? { rotate: -45, size: 14 + 0.75 * longest } : { size: 26 }) },
        { ...axis(chart.y, logarithmic.y), grid: { stroke: () => look().grid, width: 1 }, ticks: { show: false }, gap: 6, space: size.height > TALL_PX ? 36 : 26,
          size: (_, values) => 12 + Math.max(14, ...(values ?? []).map((text) => textWidth(text))) },
      ],
      series: [{}, ...chart.series.map((one, i) => ({
        stroke: () => colour(one), width: one.width, dash: DASHES[one.dash], points: { show: false },
        paths: (u) => {
          const present = plot.chart.series[i];
          return plot.shown().includes(present) && present.form === "line" ? line(u, present) : null;
        },
      }))],
      hooks: {
        drawClear: [spans(plot)],
        drawAxes: [references(plot), (u) => clipped(u, (pen) => plot.shown().filter((one) => one.low.length && one.form !== "bars").forEach((one) => band(u, pen, one, colour(one))))],
        draw: [
          (u) => clipped(u, (pen) => {
            for (const one of plot.shown()) {
              if (one.form === "bars") bars(u, pen, one, colour(one));
              if (one.markers || one.form === "dots" || one.form === "bars") dots(u, pen, one, colour(one));
            }
          }),
          names(plot),
        ],
        setSelect: [(u) => plot.selected(u)],
        setCursor: [(u) => plot.pointed(u)],
      },
    };
  };

  // The highest visible value of a chart, for charts that share its axis.
  const highest = (series, range) => outer(inSight(series, range))[1];

  const xText = (chart, x) => {
    if (chart.x.kind === "date") return Numbers.day(x);
    if (chart.x.kind === "category") return chart.x.names[Math.round(x)];
    return chart.x.unit ? Numbers.withUnit(x, chart.x.unit) : `${chart.x.label}: ${Numbers.number(x)}`;
  };
  // Returns the values at one x: [{ name, colour, text }].
  const values = (chart, shown, x) => shown.filter((one) => one.read_out).flatMap((one) => {
    const at = one.x.indexOf(x);
    if (at < 0) return [];
    const y = one.y[at];
    const spread = Number.isFinite(one.low[at]) ? ` (${Numbers.number(one.low[at])} to ${Numbers.number(one.high[at])})` : "";
    return [{ name: one.name, colour: one.colour, text: y === null ? "not measured" : Numbers.withUnit(y, chart.y.unit) + spread }];
  });

  return { whole, wholeX, frame, options, aligned, highest, xText, values };
})();
