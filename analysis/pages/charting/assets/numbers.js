// Numbers and dates in the format of tables (analysis/pages/report/formatting.py): 10 000 with thin spaces, 2.5 million.
"use strict";
const Numbers = (() => {
  const NARROW = "\u202f", SPACE = "\u00a0", DAY_MS = 864e5;
  const PREFIXES = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]], WORDS = [[1e12, "trillion"], [1e9, "billion"], [1e6, "million"]];
  const MINUS = /^-(?=.*[1-9])/;

  const grouped = (text) => {
    const [whole, part] = text.split(".");
    const digits = whole.replace("-", "").length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, NARROW) : whole;
    return part ? `${digits}.${part}` : digits;
  };
  const signed = (text) => text.replace(MINUS, "\u2212");

  // Rounds to about this number of significant digits; whole numbers keep all digits.
  const number = (value, digits = 4) => {
    if (value === 0) return "0";
    const decimals = Math.max(0, Math.min(6, digits - 1 - Math.floor(Math.log10(Math.abs(value)))));
    return signed(grouped(String(+value.toFixed(decimals))));
  };

  const withUnit = (value, unit) => {
    const known = /^(B|bit)\b/.test(unit) ? PREFIXES : WORDS;
    const [factor, prefix] = known.find(([least]) => Math.abs(value) >= least * 0.9995) ?? [1, ""];
    const join = known === PREFIXES ? `${prefix}${unit}` : [prefix, unit].filter(Boolean).join(SPACE);
    return [number(value / factor), join].filter(Boolean).join(SPACE);
  };

  // The ticks of an axis, with enough decimals to distinguish neighbours.
  const ticks = (values) => {
    const highest = Math.max(...values.map(Math.abs));
    const [factor, prefix] = PREFIXES.find(([least]) => least >= 1e6 && highest >= least) ?? [1, ""];
    const step = Math.min(...values.slice(1).map((value, i) => Math.abs(value - values[i]))) / factor;
    let decimals = 0;
    while (decimals < 9 && Math.abs(step * 10 ** decimals - Math.round(step * 10 ** decimals)) > 1e-6 * 10 ** decimals * step) decimals += 1;
    return values.map((value) => (value === 0 ? "0" : `${signed(grouped((value / factor).toFixed(decimals)))}${prefix && SPACE + prefix}`));
  };
  // On a logarithmic axis each tick is formatted on its own.
  const decades = (values) => values.map((value) => {
    const [factor, prefix] = PREFIXES.find(([least]) => least >= 1e6 && value >= least) ?? [1, ""];
    return number(value / factor) + (prefix && SPACE + prefix);
  });

  const dateOf = (day) => new Date(Math.round(day) * DAY_MS);
  const written = (day, options) => dateOf(day).toLocaleDateString("en-GB", { timeZone: "UTC", ...options }).replaceAll(" ", SPACE);
  const day = (value) => written(value, { weekday: "short", day: "numeric", month: "short", year: "numeric" });
  const isFirst = (value) => dateOf(value).getUTCDate() === 1;
  // The first of a month shows the month's name, the first of a year the year too; other days show the day.
  const days = (values) => values.map((value, i) => {
    if (!values.every(isFirst)) return written(value, { day: "numeric", month: "short" });
    return written(value, i === 0 || dateOf(value).getUTCMonth() === 0 ? { month: "short", year: "numeric" } : { month: "short" });
  });

  const fixed = (value, decimals) => signed(grouped(value.toFixed(decimals)));

  return { number, fixed, withUnit, ticks, decades, day, days, isFirst };
})();
