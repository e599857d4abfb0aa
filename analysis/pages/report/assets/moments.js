// Shows the messages behind a point of a plot: the command that lists them, and those embedded in the page.
// A moment is one bin of the timelines. It is selected by pointer, or by the keys that read a plot.
"use strict";
const Moments = (() => {
  const STILL_PX = 5, TWICE_MS = 300, LEAST_PX = 3;
  const [TIME, FROM, TO, LABEL, TAKEN, FATE, AGAIN, LINK] = [0, 1, 2, 3, 4, 5, 6, 7];
  const panel = document.getElementById("moment");
  const part = (name) => document.getElementById(`moment-${name}`);
  const plots = new Map(); // elements to plots
  let data = null; // set once it is unpacked
  let bins = new Map();
  let bin = 0; // number of the selected bin
  let chosen = null; // plot of the selection
  let end_s = 0;

  const last = () => Math.max(0, Math.ceil(end_s / data.bin_s - 1e-6) - 1);
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
    if (message[AGAIN]) made.cells[4].title = "some of its bytes were retransmitted";
    return made;
  };

  const described = (found, messages) => {
    const more = data.bins_left_out ? ` (${Numbers.number(data.bins_left_out)} more time bins around faults did not fit)` : "";
    if (!found) return `This page has only messages around faults${more}; the command shows those at this time.`;
    const number = data.links.indexOf(link());
    const total = link() ? found.links[number] ?? 0 : found.total;
    const where = link() ? ` over link ${link()}` : "";
    if (!total) return `No messages${where}.`;
    const count = `${Numbers.number(total)} message${total === 1 ? "" : "s"}${where}`;
    if (messages.length === total) return `${count}.`;
    return `${count}; the ${messages.length} most informative are shown, ${Numbers.number(total - messages.length)} are left out: the command shows all.`;
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

  // Resolves when a moment can be selected in any of these plots.
  const start = async (end, found) => {
    data = JSON.parse(await unpack("moments"));
    bins = new Map(data.bins.map((one) => [one.number, one]));
    end_s = end;
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
