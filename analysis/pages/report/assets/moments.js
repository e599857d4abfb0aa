// Shows the command for the packets behind a point of a plot.
// A moment is one bin of the timelines. It is selected by pointer, or by the keys that read a plot.
"use strict";
const Moments = (() => {
  const STILL_PX = 5, TWICE_MS = 300, LEAST_PX = 3;
  const panel = document.getElementById("moment");
  const part = (name) => document.getElementById(`moment-${name}`);
  const plots = new Map(); // elements to plots
  let data = null; // of the page's plots
  let bin = 0; // number of the selected bin
  let chosen = null; // plot of the selection

  const last = () => Math.max(0, Math.ceil(data.end_s / data.bin_s - 1e-6) - 1);
  const text = (seconds, digits) => seconds.toFixed(digits);
  const span = () => {
    const digits = data.bin_s < 0.1 ? 2 : data.bin_s % 1 ? 1 : 0;
    return [bin * data.bin_s, (bin + 1) * data.bin_s].map((at) => text(at, digits)).join("–");
  };
  const link = () => plots.get(chosen).chart.links[0];

  // Stores the position from which keys continue in a plot.
  const remember = () => { if (chosen) plots.get(chosen).at = (bin + 0.5) * data.bin_s; };

  // Cursor of the moment on every plot -----------------------------------------------------------------------------
  const mark = () => {
    for (const [element, plot] of plots) {
      const area = element.querySelector(".u-over"), cursor = element.querySelector(".cursor");
      if (!area) continue;
      const [from, to] = plot.range(), outer = element.getBoundingClientRect(), inner = area.getBoundingClientRect();
      const x = (seconds) => ((seconds - from) / (to - from)) * inner.width;
      const left = Math.max(0, x(bin * data.bin_s)), right = Math.min(inner.width, x((bin + 1) * data.bin_s));
      cursor.hidden = !chosen || right <= left;
      Object.assign(cursor.style, { left: `${inner.left - outer.left + left}px`, width: `${Math.max(LEAST_PX, right - left)}px`,
        top: `${inner.top - outer.top}px`, height: `${inner.height}px` });
      element.setAttribute("aria-valuetext", `${span()} s`);
    }
  };

  // Contents of the panel --------------------------------------------------------------------------------------------------
  const command = () => {
    const [from, to] = [bin * data.bin_s, (bin + 1) * data.bin_s].map((at) => text(at, 3));
    return `${data.command} --from ${from} --to ${to}${link() ? ` --link ${link()}` : ""}`;
  };

  const fill = () => {
    part("title").textContent = `Packets at ${span()} s${link() ? `, ${link()}` : ""}`;
    part("command").textContent = command();
    part("copy").textContent = "Copy";
  };

  const open = (element, number, { focus }) => {
    chosen = element;
    bin = Math.min(Math.max(0, number), last());
    remember();
    fill();
    panel.hidden = false;
    document.body.classList.add("with-moment");
    mark();
    element.scrollIntoView({ block: "nearest" }); // above the panel: page.css keeps its height free
    if (focus) panel.focus();
  };

  const close = () => {
    panel.hidden = true;
    document.body.classList.remove("with-moment");
    chosen?.focus({ preventScroll: true });
  };

  const move = (to) => {
    bin = Math.min(Math.max(0, to), last());
    remember();
    mark();
    if (!panel.hidden) fill();
  };

  const copy = async () => {
    const button = part("copy");
    try {
      await navigator.clipboard.writeText(command());
      button.textContent = "Copied";
    } catch { // not allowed here: select it for copying by hand
      getSelection().selectAllChildren(part("command"));
      button.textContent = "Selected";
    }
  };

  // Selection -----------------------------------------------------------------------------------------------
  const seconds = (element, x) => {
    const area = element.querySelector(".u-over").getBoundingClientRect(), [from, to] = plots.get(element).range();
    return from + ((x - area.left) / area.width) * (to - from);
  };

  const byPointer = (element) => {
    let down = null, waiting = 0;
    element.addEventListener("pointerdown", (event) => {
      const twice = waiting !== 0; // a double click shows the whole run
      clearTimeout(waiting);
      waiting = 0;
      const here = event.target.closest(".u-over") && event.button === 0 && !twice;
      down = here ? { x: event.clientX, y: event.clientY } : null;
    }, true);
    addEventListener("pointercancel", () => { down = null; });
    addEventListener("pointerup", (event) => { // on the window: a drag may leave the plot
      const start = down;
      down = null;
      if (!start || Math.hypot(event.clientX - start.x, event.clientY - start.y) > STILL_PX) return;
      const number = Math.floor(seconds(element, event.clientX) / data.bin_s + 1e-6);
      waiting = setTimeout(() => { waiting = 0; open(element, number, { focus: false }); }, TWICE_MS);
    }, true);
  };

  const byKeys = (element) => {
    element.addEventListener("pointed", (event) => { chosen = element; move(Math.floor(event.detail / data.bin_s + 1e-6)); });
    element.addEventListener("keydown", (event) => {
      if (event.target !== element || event.ctrlKey || event.altKey || event.metaKey) return;
      if (event.key !== "Enter" && event.key !== " ") return;
      open(element, bin, { focus: true });
      event.preventDefault();
    });
  };

  const follow = (plot) => {
    const { element } = plot, cursor = document.createElement("div");
    plots.set(element, plot);
    cursor.className = "cursor";
    cursor.hidden = true;
    element.append(cursor);
    element.addEventListener("drawn", mark);
    byPointer(element);
    byKeys(element);
  };

  const start = (of, found) => {
    data = of;
    found.forEach(follow);
    part("close").addEventListener("click", close);
    part("before").addEventListener("click", () => move(bin - 1));
    part("after").addEventListener("click", () => move(bin + 1));
    part("copy").addEventListener("click", copy);
    // On the document: after a click on a plot the panel does not have the focus.
    document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !panel.hidden) close(); });
    addEventListener("resize", () => requestAnimationFrame(mark));
  };
  return { start };
})();
