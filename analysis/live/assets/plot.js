// One timeline on a canvas: lines with gaps, grey bands, an axis of seconds, direct labels, values under the
// pointer. A canvas and not a plotting library, because drawing shares the processors with the run.
"use strict";
const Plot = (() => {
  const LEFT = 56, RIGHT = 42, TOP = 22, BOTTOM = 26, LABEL_HEIGHT = 14, BIN_S = 0.2;
  const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';

  // Round steps: 1, 2 or 5 times a power of ten.
  const ticks = (high, count) => {
    const rough = high / count, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].find((factor) => factor * power >= rough) * power;
    const found = [];
    for (let at = 0; at <= high * 1.0001; at += step) found.push(at);
    return found;
  };
  const number = (value) => (value >= 10_000 ? `${+(value / 1000).toPrecision(4)}k` : `${+value.toPrecision(4)}`);

  // Latency over two decades needs a logarithmic axis.
  const scaleOf = (series, logarithmic) => {
    let low = Infinity, high = 0;
    for (const { rows } of series) for (const row of rows) {
      if (row[1] > 0 && row[1] < low) low = row[1];
      if (row[1] > high) high = row[1];
    }
    if (logarithmic && high / low >= 100) {
      const bottom = Math.floor(Math.log10(low)), top = Math.log10(high * 1.4);
      const marks = [];
      for (let power = bottom; power <= top; power += 1) marks.push(10 ** power);
      return { at: (value) => (Math.log10(Math.max(value, 10 ** bottom)) - bottom) / (top - bottom), marks };
    }
    const top = (high || 1) * 1.14;
    return { at: (value) => value / top, marks: ticks(top, 5).filter((mark) => mark <= top) };
  };

  class Timeline {
    constructor(canvas, unit, logarithmic) {
      this.canvas = canvas;
      this.unit = unit;
      this.logarithmic = logarithmic;
      this.pointer = null;
      this.content = { series: [], bands: [], end: 1 };
      canvas.addEventListener("pointermove", (event) => { this.pointer = event.offsetX; this.draw(); });
      canvas.addEventListener("pointerleave", () => { this.pointer = null; this.draw(); });
      new ResizeObserver(() => this.draw()).observe(canvas);
    }

    // series: [{name, colour, rows: [[start_s, value]]}], bands: [{label, start_s, end_s}], end: seconds
    show(content) {
      this.content = content;
      this.draw();
    }

    draw() {
      const { canvas } = this, { series, bands, end } = this.content;
      const width = canvas.clientWidth, height = canvas.clientHeight, dots = devicePixelRatio || 1;
      if (!width || !height) return;
      if (canvas.width !== Math.round(width * dots) || canvas.height !== Math.round(height * dots)) {
        canvas.width = Math.round(width * dots);
        canvas.height = Math.round(height * dots);
      }
      const pen = canvas.getContext("2d");
      pen.setTransform(dots, 0, 0, dots, 0, 0);
      pen.clearRect(0, 0, width, height);
      pen.font = FONT;
      const colours = { ink: Theme.colour("var(--ink)"), muted: Theme.colour("var(--muted)"), grid: Theme.colour("var(--grid)"), band: Theme.colour("var(--band)"), surface: Theme.colour("var(--surface)") };
      const inner = { width: width - LEFT - RIGHT, height: height - TOP - BOTTOM };
      const scale = scaleOf(series, this.logarithmic);
      const x = (seconds) => LEFT + (seconds / end) * inner.width;
      const y = (value) => TOP + (1 - scale.at(value)) * inner.height;
      this.bands(pen, bands, x, inner, end, colours);
      this.axes(pen, scale, x, y, inner, end, colours, height);
      for (const one of series) this.line(pen, one, x, y);
      this.labels(pen, series, y, width, inner);
      if (this.pointer !== null) this.values(pen, series, x, y, inner, end, colours, width);
    }

    bands(pen, bands, x, inner, end, colours) {
      let free = -Infinity;
      for (const band of bands) {
        const from = x(band.start_s), to = x(Math.min(band.end_s ?? end, end));
        pen.fillStyle = colours.band;
        pen.fillRect(from, TOP, Math.max(to - from, 1), inner.height);
        pen.fillStyle = colours.muted;
        pen.textAlign = "left";
        pen.textBaseline = "alphabetic";
        if (from > free) { // names that would overlap are left out: the card names what holds now
          pen.fillText(band.label, from, TOP - 6);
          free = from + pen.measureText(band.label).width + 6;
        }
      }
    }

    axes(pen, scale, x, y, inner, end, colours, height) {
      pen.strokeStyle = colours.grid;
      pen.lineWidth = 1;
      pen.fillStyle = colours.muted;
      pen.textBaseline = "middle";
      pen.textAlign = "right";
      for (const mark of scale.marks) {
        const at = Math.round(y(mark)) + 0.5;
        pen.beginPath();
        pen.moveTo(LEFT, at);
        pen.lineTo(LEFT + inner.width, at);
        pen.stroke();
        pen.fillText(number(mark), LEFT - 7, at);
      }
      pen.textAlign = "center";
      pen.textBaseline = "alphabetic";
      const marks = ticks(end, Math.max(2, Math.min(8, inner.width / 80)));
      marks.forEach((mark, i) => pen.fillText(i + 1 === marks.length ? `${number(mark)} s` : number(mark), x(mark), height - 8));
    }

    line(pen, one, x, y) {
      pen.strokeStyle = one.colour;
      pen.lineWidth = 2;
      pen.lineJoin = "round";
      pen.beginPath();
      let before = null;
      for (const [start, value] of one.rows) {
        const at = [x(start + BIN_S / 2), y(value)];
        if (before !== null && start - before < BIN_S * 1.5) pen.lineTo(...at);
        else pen.moveTo(...at);
        before = start;
      }
      pen.stroke();
    }

    labels(pen, series, y, width, inner) {
      const wanted = series.filter((one) => one.rows.length).map((one) => ({ name: one.name, colour: one.colour, at: y(one.rows[one.rows.length - 1][1]) }));
      wanted.sort((a, b) => a.at - b.at);
      const room = (wanted.length - 1) * LABEL_HEIGHT;
      let free = TOP + LABEL_HEIGHT / 2;
      wanted.forEach((label, i) => {
        const lowest = TOP + inner.height - (wanted.length - 1 - i) * LABEL_HEIGHT;
        label.at = Math.max(free, Math.min(label.at, room > inner.height ? Infinity : lowest));
        free = label.at + LABEL_HEIGHT;
      });
      pen.textAlign = "left";
      pen.textBaseline = "middle";
      for (const label of wanted) {
        pen.fillStyle = label.colour;
        pen.fillText(label.name, width - RIGHT + 6, label.at);
      }
    }

    values(pen, series, x, y, inner, end, colours, width) {
      const seconds = ((this.pointer - LEFT) / inner.width) * end;
      const start = Math.floor(seconds / BIN_S + 1e-6) * BIN_S;
      const found = [];
      for (const one of series) {
        const row = one.rows.find((each) => Math.abs(each[0] - start) < BIN_S / 2);
        if (row) found.push({ name: one.name, colour: one.colour, value: row[1] });
      }
      if (!found.length || seconds < 0 || seconds > end) return;
      const at = Math.round(x(start + BIN_S / 2)) + 0.5;
      pen.strokeStyle = colours.muted;
      pen.lineWidth = 1;
      pen.beginPath();
      pen.moveTo(at, TOP);
      pen.lineTo(at, TOP + inner.height);
      pen.stroke();
      const texts = [`${start.toFixed(1)} s`, ...found.map(({ name, value }) => `${name}  ${value.toLocaleString("en", { maximumFractionDigits: value < 1000 ? 1 : 0 })} ${this.unit}`)];
      const wide = Math.max(...texts.map((text) => pen.measureText(text).width)) + 36, high = texts.length * 17 + 8;
      const left = at + 10 + wide > width ? at - 10 - wide : at + 10;
      pen.fillStyle = colours.surface;
      pen.strokeStyle = colours.grid;
      pen.beginPath();
      pen.roundRect(left, TOP + 6, wide, high, 6);
      pen.fill();
      pen.stroke();
      pen.textAlign = "left";
      pen.textBaseline = "middle";
      texts.forEach((text, i) => {
        const at = TOP + 18 + i * 17;
        pen.fillStyle = i ? colours.ink : colours.muted;
        pen.fillText(text, left + (i ? 24 : 10), at);
        if (!i) return;
        pen.fillStyle = found[i - 1].colour;
        pen.fillRect(left + 10, at - 2, 9, 4);
      });
    }
  }

  return { Timeline };
})();
