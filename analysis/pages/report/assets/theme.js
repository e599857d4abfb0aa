// Theme: light, dark, or the system's. Runs in the head, so that the page is never drawn in the wrong theme.
// The choice is stored per browser if allowed; a page opened from a file may lack permission.
"use strict";
const Theme = (() => {
  const modes = ["auto", "light", "dark"];
  let mode = "auto", printing = false;
  try { mode = localStorage.getItem("cutset-theme") || "auto"; } catch { /* not allowed here: use the system's theme */ }
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
      try { localStorage.setItem("cutset-theme", mode); } catch { /* not allowed here: valid until the page closes */ }
      label();
      apply();
    });
    label();
  });
  // Returns a CSS colour (such as "var(--ink)") in the current theme as rgb(...).
  const colour = (css) => {
    const probe = document.createElement("span");
    probe.style.color = css;
    document.body.append(probe);
    const value = getComputedStyle(probe).color;
    probe.remove();
    return value;
  };
  // Returns a literal colour unchanged, others resolved in the current theme.
  const resolved = (css) => (css.startsWith("#") ? css : colour(css));
  // Returns a line colour mixed with ink, so that it is readable as text.
  const readable = (css) => colour(`color-mix(in oklab, ${css} 72%, var(--ink))`);
  // Print uses the light theme.
  const print = (on) => { printing = on; apply(); };
  return { colour, resolved, readable, print };
})();
