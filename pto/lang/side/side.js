"use strict";
const all = [...document.querySelectorAll("[data-at]")];
const byPlace = new Map();
for (const line of all)
  for (const place of line.dataset.at.split(" "))
    byPlace.set(place, [...(byPlace.get(place) || []), line]);
let pinned = [];
function linked(line) {
  return line ? line.dataset.at.split(" ").flatMap((place) => byPlace.get(place)) : [];
}
function light(lines) {
  for (const line of all) line.classList.toggle("lit", lines.includes(line));
}
document.addEventListener("mouseover", (event) => {
  const line = event.target.closest("[data-at]");
  light(line ? linked(line) : pinned);
});
document.addEventListener("click", (event) => {
  const line = event.target.closest("[data-at]");
  if (!line) return;
  pinned = linked(line);
  light(pinned);
  const seen = new Set([line.closest("section")]);
  for (const other of pinned) {
    const pane = other.closest("section");
    if (!seen.has(pane)) other.scrollIntoView({ block: "nearest" });
    seen.add(pane);
  }
});
