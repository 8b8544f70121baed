"use strict";
// What the tables of all pages share.
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const text = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

function compare(a, b) {
  const x = Number(a), y = Number(b);
  return Number.isFinite(x) && Number.isFinite(y) ? x - y : text.compare(a, b);
}

// What has no value comes last, whichever way the rest is sorted; equal ones keep their order.
function sort(table, column, direction) {
  const sign = direction === "descending" ? -1 : 1;
  const value = (row) => row.cells[column].dataset.value;
  const rows = [...table.tBodies[0].rows].sort((first, second) => {
    const a = value(first), b = value(second);
    if (a === "" || b === "") return (a === "") - (b === "");
    return sign * compare(a, b);
  });
  table.tBodies[0].append(...rows);
  [...table.tHead.rows[0].cells].forEach((head, place) => {
    if (head.hasAttribute("aria-sort")) head.setAttribute("aria-sort", place === column ? direction : "none");
  });
}

// Sorts by the column of a head's button, turned around if it is sorted so already; returns the direction.
function turn(table, button) {
  const head = button.closest("th"), first = button.dataset.first;
  const other = first === "ascending" ? "descending" : "ascending";
  const direction = head.getAttribute("aria-sort") === first ? other : first;
  sort(table, head.cellIndex, direction);
  return direction;
}
