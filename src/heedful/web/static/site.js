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
    document.getElementById("main").replaceWith(document.adoptNode(main));
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
  if (element.name && element.form) return `#main form [name="${CSS.escape(element.name)}"]`;
  const bar = element.closest?.("a.bar");
  if (!bar) return null;
  const figure = [...document.querySelectorAll("#main figure")].indexOf(bar.closest("figure"));
  const place = [...bar.parentNode.children].indexOf(bar);
  return `#main figure:nth-of-type(${figure + 1}) a.bar:nth-of-type(${place + 1})`;
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

// Each figure as a file: its colours are those of the page at this moment, and its letters are not cut loose from it.
const KEPT_STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "font-size", "font-family"];
function drawingOf(figure) {
  const svg = figure.querySelector("svg"), copy = svg.cloneNode(true);
  const [from, to] = [svg, copy].map((root) => [root, ...root.querySelectorAll("*")]);
  to.forEach((element, i) => {
    const style = getComputedStyle(from[i]);
    for (const name of KEPT_STYLES) element.setAttribute(name, style.getPropertyValue(name));
  });
  copy.querySelectorAll("a").forEach((link) => { link.replaceWith(...link.childNodes); });
  const [, , width, height] = svg.getAttribute("viewBox").split(" ");
  for (const [name, value] of Object.entries({ xmlns: "http://www.w3.org/2000/svg", width, height })) copy.setAttribute(name, value);
  return { address: "data:image/svg+xml;charset=utf-8," + encodeURIComponent(new XMLSerializer().serializeToString(copy)), width, height };
}

function give(href, name) {
  const link = document.createElement("a");
  link.href = href;
  link.download = name;
  link.click();
}

async function save(figure, kind) {
  const { address, width, height } = drawingOf(figure), name = `${figure.dataset.name}.${kind}`;
  if (kind === "svg") { give(address, name); return; }
  const image = new Image();
  image.src = address;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [3 * width, 3 * height];
  const pen = canvas.getContext("2d");
  pen.fillStyle = getComputedStyle(document.body).backgroundColor;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(image, 0, 0, canvas.width, canvas.height);
  give(canvas.toDataURL("image/png"), name);
}

function offerFiles() {
  for (const figure of document.querySelectorAll("figure[data-name]:not([data-offered])")) {
    figure.dataset.offered = "1";
    const row = document.createElement("div");
    row.className = "save";
    for (const kind of ["svg", "png"]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = kind.toUpperCase();
      button.setAttribute("aria-label", `Save as ${kind.toUpperCase()}: ${figure.querySelector("svg").getAttribute("aria-label")}`);
      button.addEventListener("click", () => save(figure, kind));
      row.append(button);
    }
    figure.append(row);
  }
}

// After a page has come: texts that are still being read are asked for again; a text goes to its model.
function settle() {
  offerFiles();
  document.querySelectorAll("[data-part]").forEach(fetchPart);
  if (document.querySelector("[data-refresh]")) {
    setTimeout(() => { if (document.querySelector("[data-refresh]")) swap(location.pathname + location.search, false); }, 1500);
    return;
  }
  const live = document.querySelector("[data-live]");
  if (live) askModel(live);
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
    const bench = next.querySelector(".bench");
    if (!note.isConnected) return;
    if (bench) {
      note.previousElementSibling?.matches(".panel") && note.previousElementSibling.remove();
      note.replaceWith(document.adoptNode(bench));
    } else {
      note.textContent = next.querySelector(".note")?.textContent ?? "The model could not be asked.";
    }
  } catch (error) {
    link.textContent = asked;
  }
}

document.documentElement.classList.add("scripted");
settle();
