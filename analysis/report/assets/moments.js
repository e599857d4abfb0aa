// From a point of a plot to its messages: the command that shows them, and those that stand in the page itself.
// A moment is one bin of the timelines. It is chosen by pointer or by keys; plots.js says when a plot is drawn.
"use strict";
const Moments = (() => {
  const STILL_PX = 5, TWICE_MS = 300, FAR_BINS = 10;
  const [TIME, FROM, TO, LABEL, TAKEN, FATE, AGAIN, LINK] = [0, 1, 2, 3, 4, 5, 6, 7];
  const panel = document.getElementById("moment");
  const part = (name) => document.getElementById(`moment-${name}`);
  const plots = new Map(); // element -> chart
  let data = null; // known once it is unpacked
  let bins = new Map();
  let bin = 0; // the number of the chosen one
  let chosen = null; // the plot it was chosen in
  let end_s = 0;

  const last = () => Math.max(0, Math.ceil(end_s / data.bin_s - 1e-6) - 1);
  const text = (seconds, digits) => seconds.toFixed(digits);
  const span = () => {
    const digits = data.bin_s < 0.1 ? 2 : data.bin_s % 1 ? 1 : 0;
    return [bin * data.bin_s, (bin + 1) * data.bin_s].map((at) => text(at, digits)).join("–");
  };
  const link = () => plots.get(chosen).links[0];

  // Where the moment is, on every plot -----------------------------------------------------------------------------
  const mark = () => {
    for (const element of plots.keys()) {
      const area = element.querySelector(".nsewdrag"), cursor = element.querySelector(".cursor");
      if (!area || !cursor) continue;
      const [from, to] = element.layout.xaxis.range, outer = element.getBoundingClientRect(), inner = area.getBoundingClientRect();
      const x = (seconds) => ((seconds - from) / (to - from)) * inner.width;
      const left = Math.max(0, x(bin * data.bin_s)), right = Math.min(inner.width, x((bin + 1) * data.bin_s));
      cursor.hidden = !chosen || right <= left;
      Object.assign(cursor.style, { left: `${inner.left - outer.left + left}px`, width: `${Math.max(3, right - left)}px`,
        top: `${inner.top - outer.top}px`, height: `${inner.height}px` });
      element.setAttribute("aria-valuenow", text(bin * data.bin_s, 3));
      element.setAttribute("aria-valuetext", `${span()} s`);
    }
  };

  // What is in it --------------------------------------------------------------------------------------------------
  const command = () => {
    const [from, to] = [bin * data.bin_s, (bin + 1) * data.bin_s].map((at) => text(at, 3));
    return `cutset packets ${data.run} --from ${from} --to ${to}${link() ? ` --link ${link()}` : ""}`;
  };

  const row = (message) => {
    const made = document.createElement("tr");
    const fate = { l: "✕ lost", u: "not captured" }[message[FATE]];
    const took = fate ?? (message[TAKEN] === null ? "–" : `${message[TAKEN].toFixed(1)} ms`);
    const cells = [text(message[TIME] / 1000, 4), data.hosts[message[FROM]], data.hosts[message[TO]], data.labels[message[LABEL]], `${message[AGAIN] ? "↻ " : ""}${took}`];
    cells.forEach((content, column) => {
      const cell = made.insertCell();
      cell.textContent = content;
      cell.classList.toggle("numeric", column === 0 || column === 4);
      cell.classList.toggle("lost", column === 4 && message[FATE] === "l");
    });
    if (message[AGAIN]) made.cells[4].title = "some of its bytes were sent again";
    return made;
  };

  const described = (found, messages) => {
    const more = data.bins_left_out ? ` (for ${data.bins_left_out.toLocaleString("en")} more moments around faults there is no room)` : "";
    if (!found) return `Only messages around faults stand in this page${more}; the command shows those of this moment.`;
    const number = data.links.indexOf(link());
    const total = link() ? found.links[number] ?? 0 : found.total;
    const where = link() ? ` over link ${link()}` : "";
    if (!total) return `No messages${where}.`;
    const count = `${total.toLocaleString("en")} message${total === 1 ? "" : "s"}${where}`;
    if (messages.length === total) return `${count}.`;
    return `${count}; ${messages.length} that tell most stand here, ${(total - messages.length).toLocaleString("en")} are left out: the command shows all.`;
  };

  const fill = () => {
    const found = bins.get(bin), number = data.links.indexOf(link());
    const messages = (found?.rows ?? []).filter((message) => !link() || message[LINK] === number);
    part("title").textContent = `Messages at ${span()} s${link() ? `, ${link()}` : ""}`;
    part("command").textContent = command();
    part("copy").textContent = "Copy";
    part("note").textContent = described(found, messages);
    panel.querySelector("tbody").replaceChildren(...messages.map(row));
    panel.querySelector("table").hidden = !messages.length;
    panel.querySelector(".scroll").scrollTop = 0;
  };

  const open = (element, number, { focus }) => {
    chosen = element;
    bin = Math.min(Math.max(0, number), last());
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
    mark();
    if (!panel.hidden) fill();
  };

  const copy = async () => {
    const button = part("copy");
    try {
      await navigator.clipboard.writeText(command());
      button.textContent = "Copied";
    } catch { // not allowed here: it is selected, to be copied by hand
      getSelection().selectAllChildren(part("command"));
      button.textContent = "Selected";
    }
  };

  // How it is chosen -----------------------------------------------------------------------------------------------
  const seconds = (element, x) => {
    const area = element.querySelector(".nsewdrag").getBoundingClientRect(), [from, to] = element.layout.xaxis.range;
    return from + ((x - area.left) / area.width) * (to - from);
  };

  const byPointer = (element) => {
    let down = null, waiting = 0;
    element.addEventListener("pointerdown", (event) => {
      const twice = waiting !== 0; // a double click shows the whole run
      clearTimeout(waiting);
      waiting = 0;
      const here = event.target.closest(".nsewdrag") && event.button === 0 && !twice;
      down = here ? { x: event.clientX, y: event.clientY } : null;
    }, true);
    addEventListener("pointercancel", () => { down = null; });
    addEventListener("pointerup", (event) => { // on the window: while dragging, plotly covers the page
      const start = down;
      down = null;
      if (!start || Math.hypot(event.clientX - start.x, event.clientY - start.y) > STILL_PX) return;
      const number = Math.floor(seconds(element, event.clientX) / data.bin_s + 1e-6);
      waiting = setTimeout(() => { waiting = 0; open(element, number, { focus: false }); }, TWICE_MS);
    }, true);
  };

  const KEYS = { ArrowLeft: (step) => bin - step, ArrowRight: (step) => bin + step, Home: () => 0, End: () => last() };
  const byKeys = (element) => {
    element.addEventListener("focus", () => { chosen = element; mark(); });
    element.addEventListener("keydown", (event) => {
      if (event.target !== element || event.ctrlKey || event.altKey || event.metaKey) return;
      if (KEYS[event.key]) move(KEYS[event.key](event.shiftKey ? FAR_BINS : 1));
      else if (event.key === "Enter" || event.key === " ") open(element, bin, { focus: true });
      else return;
      event.preventDefault();
    });
  };

  // A plot was drawn for the first time, or again.
  const drawn = (element, chart) => {
    if (!data) return;
    if (!plots.has(element)) {
      plots.set(element, chart);
      const cursor = document.createElement("div");
      cursor.className = "cursor";
      cursor.hidden = true;
      element.append(cursor);
      Object.assign(element, { tabIndex: 0, role: "slider" });
      element.setAttribute("aria-valuemin", "0");
      element.setAttribute("aria-valuemax", text(end_s, 3));
      byPointer(element);
      byKeys(element);
    }
    plots.set(element, chart);
    mark();
  };

  // bands: of the faults, where the moment is at first. Resolves when plots can be drawn.
  const start = async (end, bands) => {
    data = JSON.parse(await Unpack.text("moments"));
    bins = new Map(data.bins.map((one) => [one.number, one]));
    end_s = end;
    bin = bands.length ? Math.floor(bands[0].start_s / data.bin_s) : 0;
    part("close").addEventListener("click", close);
    part("before").addEventListener("click", () => move(bin - 1));
    part("after").addEventListener("click", () => move(bin + 1));
    part("copy").addEventListener("click", copy);
    // On the document: after a click on a plot the panel has not got the focus.
    document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !panel.hidden) close(); });
    addEventListener("resize", () => requestAnimationFrame(mark));
  };
  return { start, drawn };
})();
