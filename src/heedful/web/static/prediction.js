// The bench: a text, its attention as sliders, and the prediction that follows them.
"use strict";

const LEVELS = 8; // of colours.py
const states = new WeakMap(); // bench element -> its weights

function stateOf(bench) {
  if (!states.has(bench)) {
    const own = JSON.parse(bench.dataset.attention);
    states.set(bench, {
      own, weights: own.slice(), shuffled: null, epsilon: null, asked: 0,
      adversarial: JSON.parse(bench.dataset.adversarial || "null"),
    });
  }
  return states.get(bench);
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

function say(bench, sentence) { bench.querySelector("[data-said]").textContent = sentence; }

// One request at a time; when weights moved meanwhile, the newest are asked for next.
async function follow(bench) {
  const state = stateOf(bench);
  if (state.running) { state.again = true; return; }
  state.running = true;
  try {
    do {
      state.again = false;
      const answer = await post(bench.dataset.decode, { ...JSON.parse(bench.dataset.source), weights: state.weights });
      if (!bench.isConnected) return;
      showPrediction(bench, answer);
    } while (state.again);
  } catch (error) {
    say(bench, error.message);
  } finally {
    state.running = false;
  }
}

function showPrediction(bench, answer) {
  bench.querySelector("[data-predicted]").textContent = answer.predicted;
  for (const row of bench.querySelectorAll("tr[data-label]")) {
    const p = answer.probabilities[Number(row.dataset.label)];
    row.querySelector(".fill").setAttribute("width", String(100 * p));
    const cell = row.querySelector("[data-p]");
    cell.dataset.p = String(p);
    cell.textContent = shown(p);
  }
  bench.querySelector("[data-change]").textContent =
    `The output moved by ${shown(answer.change)}; the attention is ${shown(answer.distance)} away from the model's own (JSD, at most 0.693).`;
  bench.dataset.shown = JSON.stringify(answer.weights);
}

// Sliders, numbers and colours as the weights are. `except` is the control that is being moved.
function showWeights(bench, except) {
  const { weights } = stateOf(bench);
  for (const row of bench.querySelectorAll(".weights li")) {
    const weight = weights[Number(row.dataset.i)];
    const range = row.querySelector("[data-weight]"), number = row.querySelector("[data-number]");
    if (range !== except) range.value = String(weight);
    if (number !== except) number.value = weight.toFixed(3);
  }
  if (!bench.querySelector("[data-paint]").value) paint(bench, weights, false);
}

function paint(bench, scores, signed) {
  const peak = Math.max(...scores.map(Math.abs)) || 1;
  bench.querySelectorAll(".attention .hf-text span[title]").forEach((span, i) => {
    const level = Math.round(Math.abs(scores[i]) / peak * LEVELS);
    span.className = level ? `hf-${signed ? (scores[i] > 0 ? "p" : "n") : "u"}${level}` : "";
    span.title = `position ${i}: ${shown(scores[i])}`;
  });
}

function setWeights(bench, weights, except) {
  stateOf(bench).weights = weights;
  showWeights(bench, except);
  follow(bench);
}

// One weight becomes `value`; the others keep their proportions and share the rest.
function moveOne(bench, i, value, except) {
  const { weights } = stateOf(bench);
  value = Math.min(1, Math.max(0, Number.isFinite(value) ? value : 0));
  const rest = weights.reduce((sum, w, j) => sum + (j === i ? 0 : w), 0);
  const others = weights.length - 1;
  const next = weights.map((w, j) => j === i ? value : rest > 1e-12 ? w * (1 - value) / rest : (1 - value) / others);
  if (others === 0) next[0] = 1;
  say(bench, `Weights as you set them: word ${i + 1} has ${shown(next[i])}.`);
  bench.querySelector("[data-blend]").value = "0";
  setWeights(bench, next, except);
}

function shuffle(weights) {
  const copy = weights.slice();
  for (let i = copy.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [copy[i], copy[j]] = [copy[j], copy[i]];
  }
  return copy;
}

async function blend(bench, value) {
  const state = stateOf(bench), share = Math.abs(value) / 100;
  let other = state.own;
  if (value < 0) other = state.shuffled ??= shuffle(state.own);
  if (value > 0) other = state.adversarial ?? await findAdversary(bench, false);
  if (!other || Number(bench.querySelector("[data-blend]").value) !== value) return;
  say(bench, value === 0 ? "The model's own attention."
    : `${Math.abs(value)} % of the way to the ${value < 0 ? "shuffled" : "adversarial"} attention.`);
  setWeights(bench, state.own.map((w, i) => (1 - share) * w + share * other[i]));
}

async function findAdversary(bench, use) {
  const state = stateOf(bench);
  try {
    state.finding ??= post(bench.dataset.adversary, JSON.parse(bench.dataset.source));
    const found = await state.finding;
    state.adversarial = found.weights;
    if (use) {
      bench.querySelector("[data-blend]").value = "100";
      setWeights(bench, found.weights);
      say(bench, `${found.exact ? "Nothing can be farther" : `Found (at most ${shown(found.bound)} is possible)`}: ` +
        `JSD ${shown(found.distance)} away while the output moves by ${shown(found.change, 4)}, within ε = ${found.epsilon}.`);
    }
    return found.weights;
  } catch (error) {
    say(bench, error.message);
    return null;
  } finally {
    state.finding = null;
  }
}

const ACTIONS = {
  adversary: (bench) => findAdversary(bench, true),
  shuffle: (bench) => {
    stateOf(bench).shuffled = shuffle(stateOf(bench).own);
    bench.querySelector("[data-blend]").value = "-100";
    blend(bench, -100);
  },
  uniform: (bench) => {
    const { own } = stateOf(bench);
    bench.querySelector("[data-blend]").value = "0";
    say(bench, "Every word has the same weight.");
    setWeights(bench, own.map(() => 1 / own.length));
  },
  reset: (bench) => { bench.querySelector("[data-blend]").value = "0"; blend(bench, 0); },
};

document.addEventListener("input", (event) => {
  const target = event.target, bench = target.closest?.(".bench");
  if (bench && target.matches("[data-blend]")) blend(bench, Number(target.value));
  if (bench && target.matches("[data-weight], [data-number]"))
    moveOne(bench, Number(target.closest("li").dataset.i), Number(target.value), target);
  if (bench && target.matches("[data-paint]")) repaint(bench, target.value);
  if (target.matches("#text, #query")) askSoon({});
});
document.addEventListener("change", (event) => {
  const target = event.target, bench = target.closest?.(".bench");
  if (bench && target.matches("[data-number]")) showWeights(bench, null);
  if (bench && target.matches("[data-word]"))
    ask({ edit: { position: Number(target.closest("li").dataset.i), word: target.value || null } });
  if (target.matches("#ask [name=method]")) {
    const chosen = [...document.querySelectorAll("#ask [name=method]:checked")].map((box) => box.value);
    document.querySelector("#ask [name=methods]").value = chosen.join(",");
    ask({});
  }
});
document.addEventListener("click", (event) => {
  const bench = event.target.closest?.(".bench"), button = event.target.closest?.("button");
  if (!bench || !button) return;
  if (button.dataset.do) ACTIONS[button.dataset.do](bench);
  if (button.matches("[data-delete]")) ask({ edit: { position: Number(button.closest("li").dataset.i), word: null } });
});
document.addEventListener("submit", (event) => {
  if (event.target.id !== "ask") return;
  event.preventDefault();
  ask({});
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.closest?.("#ask")) ask({});
  if (event.key === "Enter" && event.target.matches?.("[data-word]")) event.target.blur();
});

function repaint(bench, method) {
  const card = method && bench.querySelector(`.method[data-method="${CSS.escape(method)}"]`);
  if (card) paint(bench, JSON.parse(card.dataset.scores), JSON.parse(card.dataset.signed));
  else paint(bench, stateOf(bench).weights, false);
}

let timer = 0, newest = 0;
function askSoon(more) { clearTimeout(timer); timer = setTimeout(() => ask(more), 250); }

// The playground: the text is sent as it stands, the bench comes back.
async function ask(more) {
  clearTimeout(timer);
  const form = document.getElementById("ask"), status = document.getElementById("status");
  if (!form) return;
  const text = form.elements.text, query = form.elements.query;
  if (!text.value.trim() || (query && !query.value.trim())) { status.textContent = "There is nothing to read yet."; return; }
  const mine = ++newest, began = performance.now();
  const waiting = setTimeout(() => { status.textContent = "The model is reading…"; }, 300);
  const body = { text: text.value, query: query?.value, methods: form.elements.methods.value.split(","), ...more };
  try {
    const response = await fetch(form.getAttribute("action"), {
      method: "POST", body: JSON.stringify(body),
      headers: { "Content-Type": "application/json", Accept: "text/html" },
    });
    const answer = await response.text();
    if (mine !== newest) return;
    if (!response.ok) { status.textContent = JSON.parse(answer).error; return; }
    const next = new DOMParser().parseFromString(answer, "text/html");
    const focus = document.activeElement?.closest?.(".weights li")?.dataset.i;
    document.getElementById("bench").replaceWith(document.adoptNode(next.getElementById("bench")));
    if (more.edit) text.value = JSON.parse(document.querySelector(".bench").dataset.source).text;
    if (focus !== undefined) document.querySelector(`.weights li[data-i="${focus}"] input`)?.focus();
    status.textContent = `answered in ${Math.round(performance.now() - began)} ms`;
    const address = new URLSearchParams({ text: text.value });
    if (query) address.set("query", query.value);
    address.set("methods", form.elements.methods.value);
    if (String(address).length < 4000) history.replaceState({}, "", `${form.getAttribute("action")}?${address}`);
  } catch (error) {
    if (mine === newest) status.textContent = "heedful does not answer: is it still running?";
  } finally {
    clearTimeout(waiting);
    if (mine === newest && status.textContent.startsWith("The model")) status.textContent = "";
  }
}
