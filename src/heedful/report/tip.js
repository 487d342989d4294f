// A touch shows what a pointer that rests shows: the number of a word.
(() => {
  let tip = null;
  const drop = () => { tip?.remove(); tip = null; };
  document.addEventListener("click", (event) => {
    const word = event.target.closest?.(".hf-text span[title]");
    drop();
    if (!word) return;
    tip = document.createElement("div");
    tip.className = "tip";
    tip.setAttribute("role", "status");
    tip.textContent = `${word.textContent}: ${word.title}`;
    document.body.append(tip);
    const box = word.getBoundingClientRect(), own = tip.getBoundingClientRect();
    const top = box.bottom + own.height + 8 > innerHeight ? box.top - own.height - 4 : box.bottom + 4;
    tip.style.left = `${scrollX + Math.max(4, Math.min(box.left, document.documentElement.clientWidth - own.width - 4))}px`;
    tip.style.top = `${scrollY + top}px`;
  });
})();
