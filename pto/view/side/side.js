"use strict";
const all = [...document.querySelectorAll("[data-at]")], byPlace = new Map();
for (const line of all) byPlace.set(line.dataset.at, [...(byPlace.get(line.dataset.at) || []), line]);
let hue = 0;
for (const lines of byPlace.values()) if (lines.length > 1) {  // neighbours get hues far apart
  hue = (hue + 137) % 360;
  for (const line of lines) { line.dataset.hue = hue; line.style.setProperty("--hue", hue); }
}
const frame = document.querySelector("iframe[title=timeline]");
let pinned = null, shown = null;
function light(place, where) {
  if (place === shown) return;
  shown = place;
  for (const line of all) line.classList.toggle("lit", line.dataset.at === place);
  if (frame && where !== frame) frame.contentWindow.postMessage({ at: place }, "*");
}
function pin(place, from) {  // every pane but the one that was clicked scrolls there
  pinned = place;
  light(place, from);
  const seen = new Set([from]);
  for (const line of byPlace.get(place) || []) {
    const pane = line.closest("section");
    if (!seen.has(pane)) pane.scrollTo({ top: pane.scrollTop + line.getBoundingClientRect().top - pane.getBoundingClientRect().top - pane.clientHeight / 3 });
    seen.add(pane);
  }
}
document.addEventListener("mouseover", (event) => light(event.target.closest("[data-at]")?.dataset.at ?? pinned));
document.addEventListener("click", (event) => {
  const line = event.target.closest("[data-at]");
  if (line) pin(line.dataset.at === pinned ? null : line.dataset.at, line.closest("section"));
});
window.addEventListener("message", (event) => { if (frame && event.source === frame.contentWindow) pin(event.data.at, frame); });
