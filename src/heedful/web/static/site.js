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

// After a page has come: texts that are still being read are asked for again; a text goes to its model.
function settle() {
  if (document.querySelector("[data-refresh]")) {
    setTimeout(() => { if (document.querySelector("[data-refresh]")) swap(location.pathname + location.search, false); }, 1500);
    return;
  }
  const live = document.querySelector("[data-live]");
  if (live) askModel(live);
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

settle();
