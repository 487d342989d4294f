// Attention that a reader moves: the arithmetic, for the report (which has no server) and for `heedful serve`.
// `numbers` is what PooledStates.arithmetic gives of a text: decode(h, alpha) = readout(sum_t alpha_t project(h_t)).
"use strict";

const LINKS = {
  log_odds: ([z]) => [1 / (1 + Math.exp(z)), 1 / (1 + Math.exp(-z))],
  softmax: (logits) => {
    const most = Math.max(...logits), parts = logits.map((z) => Math.exp(z - most));
    const all = parts.reduce((sum, part) => sum + part, 0);
    return parts.map((part) => part / all);
  },
  sigmoids: (logits) => logits.map((z) => 1 / (1 + Math.exp(-z))),
  identity: (logits) => logits,
};

// Weights of the words (T,) -> probabilities of the labels.
const decodeAttention = (numbers, weights) => {
  const features = numbers.bias.map((bias, j) =>
    weights.reduce((sum, weight, t) => sum + weight * numbers.projected[t][j], bias));
  let logits = features;
  if (numbers.W2) {
    const inner = features.map(Math.tanh);
    logits = numbers.W2.map((row, label) => row.reduce((sum, w, j) => sum + w * inner[j], numbers.b2[label]));
  }
  if (numbers.candidates) logits = logits.map((z, label) => (numbers.candidates[label] ? z : -Infinity));
  return LINKS[numbers.link](logits);
};

// One weight becomes `value`; the others keep their proportions and share the rest.
const moveWeight = (weights, i, value) => {
  if (weights.length === 1) return [1];
  const kept = Math.min(1, Math.max(0, Number.isFinite(value) ? value : 0));
  const rest = weights.reduce((sum, w, j) => sum + (j === i ? 0 : w), 0), others = weights.length - 1;
  return weights.map((w, j) => (j === i ? kept : rest > 1e-12 ? w * (1 - kept) / rest : (1 - kept) / others));
};

const shuffleWeights = (weights) => {
  const copy = weights.slice();
  for (let i = copy.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [copy[i], copy[j]] = [copy[j], copy[i]];
  }
  return copy;
};

// Of two distributions, in nats: at most ln 2.
const jensenShannon = (p, q) => p.reduce((sum, a, i) => {
  const b = q[i], m = (a + b) / 2, part = (x) => (x > 0 ? x * Math.log(x / m) : 0);
  return sum + (part(a) + part(b)) / 2;
}, 0);

// Total variation: the share that has moved, of weights as of probabilities.
const shareMoved = (p, q) => p.reduce((sum, value, i) => sum + Math.abs(value - q[i]), 0) / 2;
