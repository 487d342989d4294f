// Draws a Vega-Lite figure where it stands, and gives it as a file. Shared by the report and by `heedful serve`.
// Vega runs without `eval` (its interpreter), and brings no style of its own.
const drawFigure = (place, spec, theme) => window.vegaEmbed(place, spec, {
  ast: true, actions: false, renderer: "svg", defaultStyle: false, config: theme, tooltip: { disableDefaultStyle: true },
}).then(({ view }) => {
  place.dataset.drawn = "yes";
  return view;
});

// The colours are those of the page at this moment.
const saveFigure = (view, name, png) => view.toSVG().then((svg) => {
  const style = getComputedStyle(document.documentElement);
  const plain = svg.replace(/var\(--(\w+)\)/g, (_, key) => style.getPropertyValue(`--${key}`).trim());
  const address = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(plain);
  const give = (href, ending) => {
    const link = document.createElement("a");
    link.href = href;
    link.download = `${name}.${ending}`;
    link.click();
  };
  if (!png) return give(address, "svg");
  const image = new Image();
  image.onload = () => {
    const canvas = document.createElement("canvas");
    canvas.width = 2 * image.width;
    canvas.height = 2 * image.height;
    const pen = canvas.getContext("2d");
    pen.fillStyle = style.getPropertyValue("--surface");
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(image, 0, 0, canvas.width, canvas.height);
    give(canvas.toDataURL("image/png"), "png");
  };
  image.src = address;
  return undefined;
});
