// A text, its attention as sliders, and the prediction that follows them.
"use strict";

const LEVELS = 8; // of colours.py
const states = new WeakMap(); // view element -> its weights

function stateOf(view) {
  if (!states.has(view)) {
    const own = JSON.parse(view.dataset.attention);
    states.set(view, {
      own, weights: own.slice(), shuffled: null, epsilon: null, asked: 0,
      other: JSON.parse(view.dataset.other || "null"),
      arithmetic: JSON.parse(view.dataset.arithmetic || "null"),
    });
  }
  return states.get(view);
}

async function post(address, body) {
  const response = await fetch(address, {
    method: "POST", body: JSON.stringify(body),
    headers: { "Content-Type": "application/json", Accept: "application/json" },
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

const shown = (x, digits = 3) => x.toFixed(digits).replace("-", "−");

function say(view, sentence) { view.querySelector("[data-said]").textContent = sentence; }

// What the page can compute it does not ask for.
function decodeHere(view) {
  const state = stateOf(view), { weights, own } = state, after = decodeAttention(state.arithmetic, weights);
  const names = JSON.parse(view.dataset.labels);
  showPrediction(view, {
    weights, probabilities: after, predicted: names[after.indexOf(Math.max(...after))],
    change: shareMoved(after, decodeAttention(state.arithmetic, own)), distance: Math.max(0, jensenShannon(weights, own)),
  });
}

// One request at a time; when weights moved meanwhile, the newest are asked for next.
async function follow(view) {
  const state = stateOf(view);
  if (state.arithmetic) { decodeHere(view); return; }
  if (state.running) { state.again = true; return; }
  state.running = true;
  try {
    do {
      state.again = false;
      const answer = await post(view.dataset.decode, { ...JSON.parse(view.dataset.source), weights: state.weights });
      if (!view.isConnected) return;
      showPrediction(view, answer);
    } while (state.again);
  } catch (error) {
    say(view, error.message);
  } finally {
    state.running = false;
  }
}

function showPrediction(view, answer) {
  view.querySelector("[data-predicted]").textContent = answer.predicted;
  for (const row of view.querySelectorAll("tr[data-label]")) {
    const p = answer.probabilities[Number(row.dataset.label)];
    row.querySelector(".fill").setAttribute("width", String(100 * p));
    const cell = row.querySelector("[data-p]");
    cell.dataset.p = String(p);
    cell.textContent = shown(p);
  }
  view.querySelector("[data-change]").textContent =
    `The output moved by ${shown(answer.change)}; the attention is ${shown(answer.distance)} away from the model's own (JSD, at most 0.693).`;
  view.dataset.shown = JSON.stringify(answer.weights);
}

// Sliders, numbers and colours as the weights are. `except` is the control that is being moved.
function showWeights(view, except) {
  const { weights } = stateOf(view);
  for (const row of view.querySelectorAll(".weights li")) {
    const weight = weights[Number(row.dataset.i)];
    const range = row.querySelector("[data-weight]"), number = row.querySelector("[data-number]");
    if (range !== except) range.value = String(weight);
    if (number !== except) number.value = weight.toFixed(3);
  }
  if (!view.querySelector("[data-paint]").value) paint(view, weights, false);
}

function paint(view, scores, signed) {
  const peak = Math.max(...scores.map(Math.abs)) || 1;
  view.querySelectorAll(".attention .hf-text span[title]").forEach((span, i) => {
    const level = Math.round(Math.abs(scores[i]) / peak * LEVELS);
    span.className = level ? `hf-${signed ? (scores[i] > 0 ? "p" : "n") : "u"}${level}` : "";
    span.title = `position ${i}: ${shown(scores[i])}`;
  });
}

function setWeights(view, weights, except) {
  stateOf(view).weights = weights;
  showWeights(view, except);
  follow(view);
}

// One weight becomes `value`, and the others give way.
function moveOne(view, i, value, except) {
  const next = moveWeight(stateOf(view).weights, i, value);
  say(view, `Weights as you set them: word ${i + 1} has ${shown(next[i])}.`);
  view.querySelector("[data-blend]").value = "0";
  setWeights(view, next, except);
}

async function blend(view, value) {
  const state = stateOf(view), share = Math.abs(value) / 100;
  let other = state.own;
  if (value < 0) other = state.shuffled ??= shuffleWeights(state.own);
  if (value > 0) other = state.other ?? await findAdversary(view, false);
  if (!other || Number(view.querySelector("[data-blend]").value) !== value) return;
  say(view, value === 0 ? "The model's own attention."
    : `${Math.abs(value)} % of the way to the ${value < 0 ? "shuffled" : "adversarial"} attention.`);
  setWeights(view, state.own.map((w, i) => (1 - share) * w + share * other[i]));
}

async function findAdversary(view, use) {
  const state = stateOf(view);
  try {
    state.finding ??= post(view.dataset.adversary, JSON.parse(view.dataset.source));
    const found = await state.finding;
    state.other = found.weights;
    if (use) {
      view.querySelector("[data-blend]").value = "100";
      setWeights(view, found.weights);
      say(view, `${found.exact ? "Nothing can be farther" : `Found (at most ${shown(found.bound)} is possible)`}: ` +
        `JSD ${shown(found.distance)} away while the output moves by ${shown(found.change, 4)}, within ε = ${found.epsilon}.`);
    }
    return found.weights;
  } catch (error) {
    say(view, error.message);
    return null;
  } finally {
    state.finding = null;
  }
}

const ACTIONS = {
  adversary: (view) => findAdversary(view, true),
  shuffle: (view) => {
    stateOf(view).shuffled = shuffleWeights(stateOf(view).own);
    view.querySelector("[data-blend]").value = "-100";
    blend(view, -100);
  },
  uniform: (view) => {
    const { own } = stateOf(view);
    view.querySelector("[data-blend]").value = "0";
    say(view, "Every word has the same weight.");
    setWeights(view, own.map(() => 1 / own.length));
  },
  reset: (view) => { view.querySelector("[data-blend]").value = "0"; blend(view, 0); },
};

document.addEventListener("input", (event) => {
  const target = event.target, view = target.closest?.(".prediction-view");
  if (view && target.matches("[data-blend]")) blend(view, Number(target.value));
  if (view && target.matches("[data-weight], [data-number]"))
    moveOne(view, Number(target.closest("li").dataset.i), Number(target.value), target);
  if (view && target.matches("[data-paint]")) repaint(view, target.value);
  if (target.matches("#text, #query")) askSoon({ typing: true });
});
document.addEventListener("change", (event) => {
  const target = event.target, view = target.closest?.(".prediction-view");
  if (view && target.matches("[data-number]")) showWeights(view, null);
  if (view && target.matches("[data-word]")) replaceWord(target);
  if (target.matches("#ask [name=method]")) {
    const chosen = [...document.querySelectorAll("#ask [name=method]:checked")].map((box) => box.value);
    document.querySelector("#ask [name=methods]").value = chosen.join(",");
    ask({});
  }
});
document.addEventListener("click", (event) => {
  const view = event.target.closest?.(".prediction-view"), button = event.target.closest?.("button");
  if (!view || !button) return;
  if (button.dataset.do) ACTIONS[button.dataset.do](view);
  if (button.matches("[data-delete]")) ask({ edit: { position: Number(button.closest("li").dataset.i), word: null } });
});
document.addEventListener("submit", (event) => {
  if (event.target.id !== "ask") return;
  event.preventDefault();
  ask({});
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.closest?.("#ask")) ask({});
  if (event.key === "Enter" && event.target.matches?.("[data-word]")) replaceWord(event.target);
});

function replaceWord(field) {
  if (field.value === field.defaultValue) return;
  field.defaultValue = field.value;
  ask({ edit: { position: Number(field.closest("li").dataset.i), word: field.value || null } });
}

function repaint(view, method) {
  const card = method && view.querySelector(`.method[data-method="${CSS.escape(method)}"]`);
  if (card) paint(view, JSON.parse(card.dataset.scores), JSON.parse(card.dataset.signed));
  else paint(view, stateOf(view).weights, false);
}

let timer = 0, newest = 0, typedAt = -Infinity, asking = null;
function askSoon(more) { clearTimeout(timer); timer = setTimeout(() => ask(more), 250); }

// The page came without its answer: ask for it.
function askFirst() {
  const form = document.querySelector("#ask[data-waiting]");
  if (!form) return;
  delete form.dataset.waiting;
  ask({ first: true });
}

// The playground: the text is sent as it stands, the view comes back. Who asks again no longer waits for the old answer.
async function ask({ edit, typing, first }) {
  clearTimeout(timer);
  const form = document.getElementById("ask"), status = document.getElementById("status");
  if (!form) return;
  const text = form.elements.text, query = form.elements.query;
  if (!text.value.trim() || (query && !query.value.trim())) { status.textContent = "There is nothing to read yet."; return; }
  const mine = ++newest, began = performance.now();
  asking?.abort();
  asking = new AbortController();
  const waiting = setTimeout(() => { status.textContent = "The model is reading…"; }, 300);
  const body = { text: text.value, query: query?.value, methods: form.elements.methods.value.split(","), edit };
  try {
    const response = await fetch(form.getAttribute("action"), {
      method: "POST", body: JSON.stringify(body), signal: asking.signal,
      headers: { "Content-Type": "application/json", Accept: "text/html" },
    });
    const answer = await response.text();
    if (mine !== newest) return;
    if (!response.ok) { status.textContent = JSON.parse(answer).error; return; }
    const next = new DOMParser().parseFromString(answer, "text/html"), held = heldControl();
    document.getElementById("view").replaceWith(document.adoptNode(next.getElementById("view")));
    if (edit) text.value = JSON.parse(document.querySelector(".prediction-view").dataset.source).text;
    held?.().focus({ preventScroll: true });
    lookForHeads();
    status.textContent = `answered in ${Math.round(performance.now() - began)} ms`;
    rememberText(form, first || (typing && began - typedAt < 2000));
    typedAt = typing ? performance.now() : -Infinity;
  } catch (error) {
    if (mine === newest) status.textContent = "heedful does not answer: is it still running?";
  } finally {
    clearTimeout(waiting);
    if (mine === newest && status.textContent.startsWith("The model")) status.textContent = "";
  }
}

// Each text is a place to come back to; what is typed in one go is one.
function rememberText(form, replace) {
  const { text, query, methods } = form.elements, asked = new URLSearchParams({ text: text.value });
  if (query) asked.set("query", query.value);
  if (methods.value) asked.set("methods", methods.value);
  const address = `${form.getAttribute("action")}?${asked}`;
  if (address.length > 4000 || address === location.pathname + location.search) return;
  history[replace ? "replaceState" : "pushState"]({}, "", address);
}

// The control of a word that has the focus, to be found again in the new list: the same, or that of the last word.
function heldControl() {
  const row = document.activeElement?.closest?.(".weights li");
  if (!row) return null;
  const kind = ["data-word", "data-weight", "data-number", "data-delete"].find((name) => document.activeElement.hasAttribute(name));
  return () => {
    const rows = document.querySelectorAll(".weights li"), same = rows[Math.min(Number(row.dataset.i), rows.length - 1)];
    return same?.querySelector(`[${kind}]`) ?? same?.querySelector("input") ?? document.getElementById("text");
  };
}

askFirst();
