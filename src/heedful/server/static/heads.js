// The heads of a model on one text: small drawings of all, one of them large, and heads that can be changed.
// A module: pages that hold such a view load it.
const SHADES = 8; // of colours.py
const looked = new WeakMap(); // view element -> what is drawn in it

function lookOf(view) {
  if (!looked.has(view)) {
    const [layers, heads, n] = JSON.parse(view.dataset.shape);
    const bytes = Uint8Array.from(atob(view.dataset.weights), (c) => c.charCodeAt(0));
    const now = view.querySelector("a.head[aria-current]");
    looked.set(view, {
      layers, heads, n, bytes, names: JSON.parse(view.dataset.names), worth: JSON.parse(view.dataset.worth),
      layer: Number(now.dataset.layer), head: Number(now.dataset.head),
    });
  }
  return looked.get(view);
}

// Square root of the weights of a head, 0 to 255: (to, from) as one array.
function rootsOf(look, layer, head) {
  const size = look.n * look.n, begin = (layer * look.heads + head) * size;
  return look.bytes.subarray(begin, begin + size);
}

const weightOf = (root) => (root / 255) ** 2;
const shadeOf = (root) => Math.round(SHADES * root / 255);

// The colours of the page as it is now, light or dark: of no weight, and of all.
function endsOf(view) {
  const cell = document.createElement("i");
  view.append(cell);
  const ends = ["w0", `w${SHADES}`].map((name) => {
    cell.className = name;
    return getComputedStyle(cell).backgroundColor.match(/[\d.]+/g).map(Number);
  });
  cell.remove();
  return ends;
}

function drawThumbs(view) {
  const look = lookOf(view), [none, all] = endsOf(view);
  for (const link of view.querySelectorAll("a.head")) {
    const canvas = link.querySelector("canvas") ?? document.createElement("canvas");
    canvas.width = canvas.height = look.n;
    const pen = canvas.getContext("2d"), image = pen.createImageData(look.n, look.n);
    rootsOf(look, Number(link.dataset.layer), Number(link.dataset.head)).forEach((root, i) => {
      for (let c = 0; c < 3; c++) image.data[4 * i + c] = none[c] + (all[c] - none[c]) * root / 255;
      image.data[4 * i + 3] = 255;
    });
    pen.putImageData(image, 0, 0);
    if (!canvas.isConnected) link.querySelector(".thumb").replaceChildren(canvas);
  }
}

function setRoving(view) {
  const { layer, head } = lookOf(view);
  for (const link of view.querySelectorAll("a.head")) {
    const chosen = Number(link.dataset.layer) === layer && Number(link.dataset.head) === head;
    link.tabIndex = chosen ? 0 : -1;
    if (chosen) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}

// Another head is chosen: what it does is here already.
function chooseHead(view, layer, head) {
  const look = lookOf(view);
  Object.assign(look, { layer, head });
  setRoving(view);
  const link = headLink(view, layer, head);
  const done = link.classList.contains("uniform") ? " made uniform" : link.classList.contains("off") ? " shut off" : "";
  const title = view.querySelector("[data-title]"), quiet = document.createElement("span");
  quiet.className = "quiet";
  quiet.textContent = done;
  title.replaceChildren(`Layer ${layer}, head ${head}`, quiet);
  const table = view.querySelector("table.matrix"), roots = rootsOf(look, layer, head);
  table.setAttribute("aria-label", table.getAttribute("aria-label").replace(/layer \d+, head \d+/, `layer ${layer}, head ${head}`));
  [...table.tBodies[0].rows].forEach((row, to) => {
    for (let from = 0; from < look.n; from++) {
      const root = roots[to * look.n + from], cell = row.cells[from + 1];
      cell.className = `w${shadeOf(root)}`;
      cell.title = `${look.names[to]} → ${look.names[from]}: ${weightOf(root).toFixed(3)}`;
    }
  });
  showRow(view);
  showWorth(view);
  const restore = view.querySelector("[data-key=restore]");
  if (restore) restore.hidden = !done;
  view.querySelectorAll("[data-layer-name]").forEach((name) => { name.textContent = String(layer); });
  const { uniform, off } = requestOf(view, {});
  lastHeads = { layer, head, uniform, off };
}

const headLink = (view, layer, head) => view.querySelector(`a.head[data-layer="${layer}"][data-head="${head}"]`);

// Where one piece looks: as colours over all pieces, and the strongest in words.
function showRow(view) {
  const look = lookOf(view), to = Number(view.querySelector("[data-row]").value);
  const roots = rootsOf(look, look.layer, look.head).subarray(to * look.n, (to + 1) * look.n);
  view.querySelectorAll("[data-line] > span").forEach((span, from) => {
    span.classList.remove(...[...span.classList].filter((name) => name.startsWith("hf-u")));
    span.classList.add(`hf-u${shadeOf(roots[from])}`);
    span.title = weightOf(roots[from]).toFixed(3);
  });
  view.querySelectorAll("table.matrix tbody tr").forEach((row, i) => row.classList.toggle("current", i === to));
  const order = [...roots.keys()].sort((a, b) => roots[b] - roots[a]).slice(0, 5);
  view.querySelector("[data-most]").textContent =
    `${look.names[to]} looks most at ` + order.map((i) => `${look.names[i]} ${weightOf(roots[i]).toFixed(2)}`).join(", ") + ".";
}

function showWorth(view) {
  const look = lookOf(view), number = (x) => x > 0 && x < .0005 ? "<0.001" : x.toFixed(3);
  for (const row of view.querySelectorAll(".head-worth tbody tr")) {
    const one = look.worth.find((w) => w.layer === look.layer && w.head === look.head && w.operation === row.dataset.operation);
    const mean = row.querySelector("[data-mean]"), here = row.querySelector("[data-here]"), quiet = document.createElement("span");
    quiet.className = "quiet";
    if (one?.mean != null) {
      quiet.textContent = ` (${one.low.toFixed(3)} to ${one.high.toFixed(3)})`;
      mean.replaceChildren(number(one.mean), quiet);
    } else mean.textContent = "–";
    here.textContent = one?.here == null ? "–" : number(one.here) + (one.flipped ? " another label" : "");
  }
}

// What is asked of the server: the text, the chosen head, and all that has been changed so far.
function requestOf(view, more) {
  const look = lookOf(view), changes = new Map(JSON.parse(view.dataset.changes).map((c) => [`${c.layer}.${c.head}`, c.operation]));
  if (more.set !== undefined) {
    const which = more.scope === "all" ? [...changes.keys()]
      : more.scope === "head" ? [`${look.layer}.${look.head}`]
        : Array.from({ length: look.heads }, (_, head) => `${look.layer}.${head}`);
    for (const place of which) more.set ? changes.set(place, more.set) : changes.delete(place);
  }
  const lists = { uniform: [], off: [] };
  for (const [place, done] of changes) lists[done].push(place);
  return {
    ...JSON.parse(view.dataset.source), layer: look.layer, head: look.head, window: view.dataset.window,
    measure: view.dataset.measured === "1" ? "1" : "", ...lists, ...more.ask,
  };
}

async function fetchHeads(address, body) {
  const response = await fetch(address, {
    method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json", Accept: "text/html" },
  });
  const answer = await response.text();
  if (!response.ok) throw new Error(JSON.parse(answer).error);
  return document.adoptNode(new DOMParser().parseFromString(answer, "text/html").querySelector(".heads-view"));
}

async function changeHeads(view, more, key) {
  if (view.dataset.busy) return;
  view.dataset.busy = "1";
  const row = view.querySelector("[data-row]").value, body = requestOf(view, more);
  try {
    const next = await fetchHeads(view.dataset.post, body);
    if (!view.isConnected) return;
    const held = view.contains(document.activeElement);
    view.replaceWith(next);
    next.querySelector("[data-row]").value = row;
    settleHeads(next);
    if (held) (next.querySelector(`[data-key="${key}"]`) ?? headLink(next, body.layer, body.head)).focus({ preventScroll: true });
    rememberHeads(next);
  } catch (error) {
    view.querySelector("[data-said]").textContent = error.message;
  } finally {
    delete view.dataset.busy;
  }
}

// On a page of its own the address says what is shown.
function rememberHeads(view) {
  if (location.pathname !== new URL(view.dataset.post, location.href).pathname) return;
  const address = new URLSearchParams();
  for (const [name, value] of Object.entries(requestOf(view, {})))
    for (const one of [value].flat()) if (one !== "" && one !== "0" || name === "layer" || name === "head") address.append(name, one);
  if (String(address).length < 8000) history.pushState({}, "", `${location.pathname}?${address}`);
}

function settleHeads(view) {
  const { layer, head } = lookOf(view);
  drawThumbs(view);
  chooseHead(view, layer, head);
}

// Pages that hold the view ask for it when it comes into sight; what was chosen and changed stays with the page.
let lastHeads = null;
const inSight = new IntersectionObserver((seen) => {
  for (const { isIntersecting, target } of seen) if (isIntersecting) { inSight.unobserve(target); loadHeads(target); }
}, { rootMargin: "200px" });

async function loadHeads(note) {
  const told = note.querySelector("a") ?? note, asked = told.textContent;
  told.textContent = "The model shows its heads…";
  try {
    const next = await fetchHeads(note.dataset.post, { ...JSON.parse(note.dataset.heads), ...lastHeads });
    if (!note.isConnected) return;
    note.replaceWith(next);
    settleHeads(next);
  } catch (error) {
    told.textContent = asked;
    note.append(" ", error.message);
  }
}

export function findHeads() {
  document.querySelectorAll("p[data-heads]:not([data-waiting])").forEach((note) => {
    note.dataset.waiting = "1";
    inSight.observe(note);
  });
  document.querySelectorAll(".heads-view").forEach((view) => { if (!looked.has(view)) settleHeads(view); });
}

document.addEventListener("click", (event) => {
  const view = event.target.closest?.(".heads-view"), link = event.target.closest?.("a");
  if (!view || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  const row = event.target.closest("table.matrix tbody tr");
  if (row) {
    view.querySelector("[data-row]").value = String(row.sectionRowIndex);
    showRow(view);
  }
  if (!link) return;
  if (link.matches("a.head")) chooseHead(view, Number(link.dataset.layer), Number(link.dataset.head));
  else if (link.dataset.set !== undefined) changeHeads(view, { set: link.dataset.set, scope: link.dataset.scope }, link.dataset.key);
  else if (link.dataset.ask) changeHeads(view, { ask: JSON.parse(link.dataset.ask) }, link.dataset.key);
  else return;
  event.preventDefault();
});
document.addEventListener("change", (event) => {
  const view = event.target.closest?.(".heads-view");
  if (view && event.target.matches("[data-row]")) showRow(view);
});
document.addEventListener("keydown", (event) => {
  const view = event.target.closest?.(".heads-view");
  if (!view || !event.target.matches("a.head") || event.ctrlKey || event.metaKey || event.altKey) return;
  const look = lookOf(view);
  let { layer, head } = look;
  if (event.key === "ArrowLeft") head -= 1;
  else if (event.key === "ArrowRight") head += 1;
  else if (event.key === "ArrowUp") layer -= 1;
  else if (event.key === "ArrowDown") layer += 1;
  else if (event.key === "Home") head = 0;
  else if (event.key === "End") head = look.heads - 1;
  else return;
  event.preventDefault();
  if (layer < 0 || head < 0 || layer >= look.layers || head >= look.heads) return;
  chooseHead(view, layer, head);
  headLink(view, layer, head).focus();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => document.querySelectorAll(".heads-view").forEach(drawThumbs));
