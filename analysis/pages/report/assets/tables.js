// Sorting of tables: a click on a heading sorts by that column, another click reverses the order. Cells without
// data-sort (not measured) stay last either way. Numbers sort by value, text in natural order.
"use strict";
(() => {
  const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  const key = (row, column) => row.cells[column].dataset.sort;
  const compare = (numeric) => (a, b) => (numeric ? Number(a) - Number(b) : collator.compare(a, b));

  const sort = (table, column) => {
    const heading = table.tHead.rows[0].cells[column];
    const descending = heading.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
    heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const order = compare(heading.classList.contains("numeric"));
    const rows = [...table.tBodies[0].rows];
    const known = rows.filter((row) => key(row, column) !== undefined);
    known.sort((a, b) => (descending ? -1 : 1) * order(key(a, column), key(b, column)));
    table.tBodies[0].append(...known, ...rows.filter((row) => key(row, column) === undefined));
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      heading.querySelector("button").addEventListener("click", () => sort(table, column));
    });
  }
})();
