// Pages work without this file. With it, choosing a bar or another order swaps the page's content in place.
"use strict";

let latest = 0; // only the newest request may change the page

async function swap(address, remember) {
  const mine = ++latest;
  document.documentElement.dataset.busy = "1";
  try {
    const response = await fetch(address, { headers: { Accept: "text/html" } });
    const next = new DOMParser().parseFromString(await response.text(), "text/html");
    const main = next.getElementById("main");
    if (mine !== latest) return;
    if (!main) { location.href = address; return; }
    const held = document.activeElement ? focusKey(document.activeElement) : null;
    const open = [...document.querySelectorAll("#main details")].map((d) => d.open);
    document.adoptNode(main);
    keepFigures(main);
    document.getElementById("main").replaceWith(main);
    if (remember) document.querySelectorAll("#main details").forEach((d, i) => { if (open[i] !== undefined) d.open = open[i]; });
    document.title = next.title;
    if (remember) history.pushState({}, "", address);
    if (held) document.querySelector(held)?.focus({ preventScroll: true });
    settle();
  } catch (error) {
    if (mine === latest) location.href = address;
  } finally {
    if (mine === latest) delete document.documentElement.dataset.busy;
  }
}

// How to find the same control again after a swap, so that the keyboard stays where it was.
function focusKey(element) {
  const one = /^(checkbox|radio)$/.test(element.type ?? "") ? `[value="${CSS.escape(element.value)}"]` : "";
  if (element.name && element.form) return `#main form [name="${CSS.escape(element.name)}"]${one}`;
  if (element.id) return `#main #${CSS.escape(element.id)}`;
  const bin = element.closest?.("a.bar")?.dataset.bin;
  return bin ? `#main a.bar[data-bin="${CSS.escape(bin)}"]` : null;
}

function addressOf(form) {
  const query = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (value !== "") query.append(name, value);
  return form.getAttribute("action") + (query.size ? "?" + query : "");
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[data-swap]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  swap(link.getAttribute("href"), true);
});
document.addEventListener("change", (event) => {
  const form = event.target.closest?.("form[data-auto]");
  if (form) swap(addressOf(form), true);
});
document.addEventListener("submit", (event) => {
  if (!event.target.matches("form[data-auto]")) return;
  event.preventDefault();
  swap(addressOf(event.target), true);
});
addEventListener("popstate", () => swap(location.pathname + location.search, false));

// ---- figures: drawn by the module that the report carries, too; loaded when a page has one ------------------
const views = new WeakMap(); // place of a figure -> its Vega view

async function drawFigures() {
  const places = [...document.querySelectorAll(".plot[data-spec]:not([data-drawn])")];
  if (!places.length) return;
  const { drawFigure, saveFigure } = await import("/figures.js");
  for (const place of places) {
    if (!place.isConnected || place.dataset.drawn) continue;
    const view = await drawFigure(place, JSON.parse(place.dataset.spec));
    views.set(place, view);
    view.addEventListener("click", (_, item) => { if (item?.datum) choose(place, item.datum); });
    offerFiles(place, (kind) => saveFigure(view, place.closest("figure").dataset.name, kind === "png"));
  }
}

// What did not change is not drawn again.
function keepFigures(main) {
  const drawn = new Map([...document.querySelectorAll("#main .plot[data-drawn]")].map((p) => [p.dataset.spec, p.closest("figure")]));
  for (const place of main.querySelectorAll(".plot[data-spec]")) {
    const kept = drawn.get(place.dataset.spec);
    if (kept && drawn.delete(place.dataset.spec)) place.closest("figure").replaceWith(kept);
  }
}

// A bar or a box becomes a selection in the address; chosen again, it is let go. A point leads to its text.
function choose(place, datum) {
  const { action, text, state, group, classes } = place.closest("[data-text]").dataset;
  if (datum.example !== undefined) { location.href = text.replace("PLACE", datum.example); return; }
  if (!action || !datum.measure) return;
  const asked = new URLSearchParams(state), [column, ...rest] = datum.measure.split(":");
  const label = JSON.parse(classes).indexOf(datum.label), change = { label: label < 0 ? "" : label };
  if (datum.measure === "max_attention") Object.assign(change, { alow: datum.low, ahigh: datum.high });
  else {
    Object.assign(change, { column, low: datum.low, high: datum.high });
    if (rest.length) change[group] = rest.join(":");
  }
  const same = Object.entries(change).every(([name, value]) => String(asked.get(name) ?? "") === String(value) || Number(asked.get(name) ?? NaN) === value);
  if (!same && change.column && change.column !== asked.get("column")) ["alow", "ahigh"].forEach((name) => asked.delete(name));
  for (const [name, value] of Object.entries(change)) {
    const stays = name === "column" || name === group;
    if (value === "" || (same && !stays)) asked.delete(name);
    else asked.set(name, value);
  }
  asked.delete("undefined");
  swap(`${action}?${asked}`, true);
}

function offerFiles(place, save) {
  const row = document.createElement("div");
  row.className = "save";
  for (const kind of ["svg", "png"]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = kind.toUpperCase();
    button.setAttribute("aria-label", `Save as ${kind.toUpperCase()}: ${place.closest("figure").querySelector("h3").textContent}`);
    button.addEventListener("click", () => save(kind));
    row.append(button);
  }
  place.closest("figure").append(row);
}

// After a page has come: texts that are still being read are asked for again; a text goes to its model.
function settle() {
  drawFigures();
  lookForHeads();
  if (typeof askFirst === "function") askFirst(); // of the playground
  document.querySelectorAll("[data-part]").forEach(fetchPart);
  if (document.querySelector("[data-refresh]")) {
    setTimeout(() => { if (document.querySelector("[data-refresh]")) swap(location.pathname + location.search, false); }, 1500);
    return;
  }
  const live = document.querySelector("[data-live]");
  if (live) askModel(live);
}

async function lookForHeads() {
  if (document.querySelector("p[data-heads], .heads-view")) (await import("/static/heads.js")).findHeads();
}

// A part of the page that takes the model a moment: the section of the same kind on a page of its own.
async function fetchPart(note) {
  const link = note.querySelector("a"), asked = link.textContent, address = note.dataset.part;
  delete note.dataset.part;
  link.textContent = "The model is reading some of its texts…";
  try {
    const response = await fetch(address, { headers: { Accept: "text/html" } });
    const next = new DOMParser().parseFromString(await response.text(), "text/html");
    const part = next.querySelector("section");
    if (response.ok && part) note.replaceWith(...document.adoptNode(part).childNodes);
    else note.textContent = next.querySelector(".note")?.textContent ?? "The model could not be asked.";
  } catch (error) {
    link.textContent = asked;
  }
}

async function askModel(note) {
  const link = note.querySelector("a");
  const asked = link.textContent;
  link.textContent = "The model is reading this text…";
  try {
    const response = await fetch(note.dataset.live, { headers: { Accept: "text/html" } });
    const next = new DOMParser().parseFromString(await response.text(), "text/html");
    const view = next.querySelector(".prediction-view");
    if (!note.isConnected) return;
    if (view) {
      note.previousElementSibling?.matches(".panel") && note.previousElementSibling.remove();
      note.replaceWith(document.adoptNode(view));
      lookForHeads();
    } else {
      note.textContent = next.querySelector(".note")?.textContent ?? "The model could not be asked.";
    }
  } catch (error) {
    link.textContent = asked;
  }
}

document.documentElement.classList.add("scripted");
settle();
