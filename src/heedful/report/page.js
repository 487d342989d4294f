// The page's own script: draws the figures, and lets a click on a figure or a word filter the list of texts.
// Text only ever enters the page as textContent.
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const theme = read("theme");
  const SHOWN = 8;

  const make = (tag, text, name) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (name) element.className = name;
    return element;
  };

  // ---- the list of instances -------------------------------------------------------------------------
  const list = (section) => {
    const data = read(`instances-${section.dataset.run}`);
    const form = section.querySelector("form.filter");
    const place = section.querySelector("ol.list");
    const status = section.querySelector(".status");
    const more = section.querySelector("button.next");
    const back = section.querySelector("a.back");
    const field = form.elements, filter = section.querySelector("details.by");
    const at = Object.fromEntries(data.measures.map(([key], i) => [key, i]));
    const cut = new Set(data.cut);
    let only = null, closed = true, shown = SHOWN;

    const heat = (words, digits) => {
      const box = make("div", undefined, "heedful");
      const text = make("div", undefined, "hf-text");
      text.dir = "auto";
      words.forEach((word, i) => {
        if (i) text.append(" ");
        const level = Number(digits[i] || 0);
        text.append(level ? make("span", word, `hf-u${level}`) : word);
      });
      box.append(text);
      return box;
    };

    const matching = () => {
      const m = at[field.measure.value], low = parseFloat(field.low.value), high = parseFloat(field.high.value);
      const label = field.predicted.value, outcome = field.outcome.value, wanted = field.text.value.toLowerCase();
      const whole = /^"(.+)"$/.exec(wanted)?.[1]; // in quotes: the word itself, not a part of another
      const found = data.rows.filter(([number, id, predicted, truth, words, , , values]) => {
        if (only !== null) return number === only;
        const value = values[m];
        if (!isNaN(low) && !(value !== null && value >= low)) return false;
        if (!isNaN(high) && !(value !== null && (closed ? value <= high : value < high))) return false;
        if (label !== "" && predicted !== Number(label)) return false;
        if (outcome !== "" && (truth === null || (truth === predicted) !== (outcome === "right"))) return false;
        if (whole) return words.some((word) => word.toLowerCase() === whole);
        return !wanted || words.join(" ").toLowerCase().includes(wanted) || id.toLowerCase().includes(wanted);
      });
      const down = field.order.value === "down" ? -1 : 1;
      if (field.order.value !== "")
        found.sort((a, b) => {
          const [x, y] = [a[7][m], b[7][m]];
          return x === null ? 1 : y === null ? -1 : down * (x - y) || a[0] - b[0];
        });
      return found;
    };

    const row = ([number, id, predicted, truth, words, own, other, values]) => {
      const item = make("li");
      item.dataset.example = number;
      const digits = field.weights ? { own, other, none: "" }[field.weights.value] : "";
      item.append(heat(cut.has(number) ? [...words, "…"] : words, digits));
      const meta = make("div", undefined, "meta");
      meta.append(make("b", `text ${number}`));
      const said = `predicted ${data.labels[predicted]}`;
      if (truth === null) meta.append(make("span", said));
      else if (truth === predicted) meta.append(make("span", `✓ ${said}, right`, "right"));
      else meta.append(make("span", `✗ ${said}, wrong: it is ${data.labels[truth]}`, "wrong"));
      data.measures.forEach(([key, title], i) => {
        const chosen = key === field.measure.value;
        if (values[i] !== null && (chosen || !key.includes(":")))
          meta.append(make(chosen ? "b" : "span", `${title} ${values[i].toFixed(2)}`));
      });
      const card = document.getElementById(`run-${section.dataset.run}-example-${number}`);
      if (card) {
        const link = make("a", "explained among the examples");
        link.href = `#${card.id}`;
        meta.append(link);
      }
      item.append(meta);
      return item;
    };

    const draw = () => {
      const found = matching();
      place.replaceChildren(...found.slice(0, shown).map(row));
      const sample = data.rows.length < data.total ? ` (a sample of ${data.total})` : "";
      status.textContent = `${found.length} of ${data.rows.length} texts${sample}${only === null ? "" : ": the point you chose"}`;
      more.hidden = found.length <= shown;
    };
    const restart = () => { shown = SHOWN; draw(); };

    form.addEventListener("input", () => { only = null; closed = true; restart(); });
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(() => {
      only = null;
      closed = back.hidden = true;
      views.forEach(clear);
      restart();
    }));
    more.addEventListener("click", () => { shown += 3 * SHOWN; draw(); });

    const views = [];
    const clear = (view) => { try { view.data("picked_store", []).run(); } catch { /* a figure without bars */ } };

    // What a figure's datum says becomes the state of the form, where it can be seen, changed and undone.
    const pick = (datum, from, figure) => {
      views.filter((view) => view !== from).forEach(clear);
      field.text.value = field.outcome.value = "";
      if (datum.example !== undefined) {
        only = datum.example;
      } else {
        only = null;
        closed = Boolean(datum.closed);
        field.measure.value = datum.measure;
        field.low.value = datum.low;
        field.high.value = datum.high;
        const label = data.classes.indexOf(datum.label);
        field.predicted.value = label < 0 ? "" : String(label);
      }
      go(`#${figure.id}`);
    };
    const go = (from) => {
      restart();
      back.href = from;
      back.hidden = false;
      filter.open = true;
      status.scrollIntoView({ block: "center", behavior: "instant" });
    };

    // A word of the table: the texts that hold it and were predicted so.
    for (const link of section.querySelectorAll("a[data-word]"))
      link.addEventListener("click", (event) => {
        event.preventDefault();
        views.forEach(clear);
        only = null;
        form.reset();
        setTimeout(() => { // after what follows a reset
          field.text.value = `"${link.dataset.word}"`;
          field.predicted.value = link.dataset.label;
          go(`#words-${section.dataset.run}`);
        });
      });
    draw();
    return { pick, views };
  };

  // ---- figures ---------------------------------------------------------------------------------------
  const drawAll = async () => {
    for (const section of document.querySelectorAll("section.run")) {
      const instances = section.querySelector("form.filter") ? list(section) : null;
      const specs = read(`figures-${section.dataset.run}`);
      for (const figure of section.querySelectorAll("figure[data-figure]")) {
        const name = figure.dataset.figure;
        const view = await drawFigure(figure.querySelector(".plot"), specs[name], theme);
        for (const button of figure.querySelectorAll(".save button"))
          button.addEventListener("click", () => saveFigure(view, name, button.dataset.as === "png"));
        if (instances) {
          instances.views.push(view);
          view.addEventListener("click", (_, item) => {
            if (item && item.datum && (item.datum.example !== undefined || item.datum.measure)) instances.pick(item.datum, view, figure);
          });
        }
      }
    }
    document.documentElement.dataset.ready = "yes";
  };

  // ---- what is folded ---------------------------------------------------------------------------------
  // A figure that was folded when it was drawn learns its width when it is seen.
  document.addEventListener("toggle", (event) => { if (event.target.open) dispatchEvent(new Event("resize")); }, true);
  const unfold = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    if (target) target.scrollIntoView({ behavior: "instant" });
  };
  addEventListener("hashchange", unfold);
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    folded.forEach((one) => { one.open = true; });
  });
  addEventListener("afterprint", () => folded.forEach((one) => { one.open = false; }));
  for (const button of document.querySelectorAll("button.all-methods"))
    button.addEventListener("click", () => {
      const all = button.closest("section").classList.toggle("every-method");
      button.setAttribute("aria-pressed", String(all));
    });

  drawAll().then(unfold);
})();
