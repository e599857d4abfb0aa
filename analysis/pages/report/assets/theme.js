// Light, dark, or as the system has it. Runs in the head, so that the page is never drawn in the wrong one.
// A choice is kept per browser where that is allowed; a page opened from a file may not be allowed to.
"use strict";
const Theme = (() => {
  const modes = ["auto", "light", "dark"];
  let mode = "auto", printing = false;
  try { mode = localStorage.getItem("cutset-theme") || "auto"; } catch { /* not allowed here: as the system has it */ }
  const apply = () => {
    document.documentElement.style.colorScheme = printing ? "light" : mode === "auto" ? "light dark" : mode;
    document.documentElement.dataset.theme = mode;
    document.dispatchEvent(new Event("themechange"));
  };
  apply();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const label = () => { button.textContent = `Theme: ${mode}`; };
    button.addEventListener("click", () => {
      mode = modes[(modes.indexOf(mode) + 1) % modes.length];
      try { localStorage.setItem("cutset-theme", mode); } catch { /* not allowed here: lasts as long as the page */ }
      label();
      apply();
    });
    label();
  });
  // What a CSS colour (say "var(--ink)") is in the present theme, as rgb(...).
  const colour = (css) => {
    const probe = document.createElement("span");
    probe.style.color = css;
    document.body.append(probe);
    const value = getComputedStyle(probe).color;
    probe.remove();
    return value;
  };
  // As it is where it names a colour, else as it is in the present theme.
  const resolved = (css) => (css.startsWith("#") ? css : colour(css));
  // A colour made for lines, mixed with ink until it can be read as text.
  const readable = (css) => colour(`color-mix(in oklab, ${css} 72%, var(--ink))`);
  // On paper it is light.
  const print = (on) => { printing = on; apply(); };
  return { colour, resolved, readable, print };
})();
