// The text that the report opens with: its attention as bars that can be dragged, and the prediction that follows.
(() => {
  const HEIGHT = 56; // of a bar, as the template draws it
  const percent = (share) => `${Math.round(100 * share)}%`;
  const STILL = 0.05; // a smaller change is none to speak of

  document.querySelectorAll(".opening[data-run]").forEach((panel) => {
    const source = document.getElementById(`opening-${panel.dataset.run}`);
    if (!source) return;
    const data = JSON.parse(source.textContent);
    const chips = [...panel.querySelectorAll(".chip")], said = panel.querySelector("[data-said]");
    const before = decodeAttention(data.arithmetic, data.own);
    let weights = data.own.slice();

    const sentence = (after) => {
      const moved = shareMoved(weights, data.own), change = data.distribution ? shareMoved(after, before) : Math.max(...after.map((p, i) => Math.abs(p - before[i])));
      const top = after.indexOf(Math.max(...after)), was = before.indexOf(Math.max(...before));
      if (moved < 0.005) return "This is the model's own attention.";
      const how = `${percent(moved)} of the attention has moved`;
      if (top !== was && data.labels.length > 1) return `${how}, and the answer is another one: now it says “${data.labels[top]}”.`;
      const numbers = `“${data.labels[was]}” had ${before[was].toFixed(2)} and has ${after[was].toFixed(2)}`;
      return change < STILL ? `${how}, and the prediction stands still: ${numbers}.` : `${how}, and the prediction moves: ${numbers}.`;
    };

    const show = () => {
      const after = decodeAttention(data.arithmetic, weights), top = after.indexOf(Math.max(...after));
      chips.forEach((chip, i) => {
        const level = chip.querySelector(".level"), height = HEIGHT * weights[i];
        level.setAttribute("y", String(HEIGHT - height));
        level.setAttribute("height", String(height));
        chip.querySelector(".share").textContent = percent(weights[i]);
        chip.setAttribute("aria-valuenow", String(Math.round(100 * weights[i])));
        chip.setAttribute("aria-valuetext", percent(weights[i]));
      });
      for (const row of panel.querySelectorAll("tr[data-label]")) {
        const p = after[Number(row.dataset.label)];
        row.querySelector(".fill").setAttribute("width", `${100 * Math.min(1, Math.max(0, p))}%`);
        row.querySelector(".number").textContent = p.toFixed(2);
        row.classList.toggle("top", Number(row.dataset.label) === top);
      }
      panel.querySelector("[data-predicted]").textContent = data.labels[top];
      said.textContent = sentence(after);
      panel.dataset.weights = JSON.stringify(weights);
      panel.dataset.probabilities = JSON.stringify(after);
    };
    const buttons = [...panel.querySelectorAll("button[data-do]")];
    // Which of the presets is shown: none after a drag.
    const press = (which) => buttons.forEach((b) => b.hasAttribute("aria-pressed") && b.setAttribute("aria-pressed", String(b.dataset.do === which)));
    const set = (next, which = "") => { weights = next; press(which); show(); };

    const moveTo = (i, event) => {
      const box = chips[i].querySelector("svg").getBoundingClientRect();
      set(moveWeight(weights, i, (box.bottom - event.clientY) / box.height));
    };
    chips.forEach((chip, i) => {
      const bar = chip.querySelector("svg");
      bar.addEventListener("pointerdown", (event) => {
        bar.setPointerCapture(event.pointerId);
        event.preventDefault();
        take(i);
        moveTo(i, event);
      });
      bar.addEventListener("pointermove", (event) => { if (bar.hasPointerCapture(event.pointerId)) moveTo(i, event); });
    });

    // One of the words is a stop of the tab key; arrows go to the others.
    const take = (i) => {
      chips.forEach((chip, j) => { chip.tabIndex = i === j ? 0 : -1; });
      chips[i].focus({ preventScroll: true });
    };
    panel.addEventListener("keydown", (event) => {
      const i = chips.indexOf(event.target);
      if (i < 0) return;
      const step = { ArrowUp: 0.05, ArrowDown: -0.05, PageUp: 0.2, PageDown: -0.2 }[event.key];
      const whole = { Home: 0, End: 1 }[event.key], side = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (step !== undefined) set(moveWeight(weights, i, weights[i] + step));
      else if (whole !== undefined) set(moveWeight(weights, i, whole));
      else if (side) take(Math.min(chips.length - 1, Math.max(0, i + side)));
      else return;
      event.preventDefault();
    });

    const presets = {
      own: () => data.own,
      even: () => data.own.map(() => 1 / data.own.length),
      shuffle: () => shuffleWeights(data.own),
      other: () => data.other,
    };
    buttons.forEach((button) =>
      button.addEventListener("click", () => set(presets[button.dataset.do]().slice(), button.dataset.do)));
    panel.classList.add("live");
    show();
    said.textContent = data.hint;
  });
})();
