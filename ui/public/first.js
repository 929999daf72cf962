// Runs before anything is painted: the theme and the text size that the program put into the address.
(() => {
  const root = document.documentElement;
  const wanted = new URLSearchParams(location.search);
  const theme = wanted.get("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = theme === "dark" || theme === "light" ? theme : dark ? "dark" : "light";
  const text = Number(wanted.get("text"));
  if (text >= 0.8 && text <= 1.6) root.style.setProperty("--text", String(text));
})();
